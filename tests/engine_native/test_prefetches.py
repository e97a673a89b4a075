"""Compiled code still prefetches: GCC drops calls of functions that do nothing else."""

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

ENGINE = Path(__file__).parents[2] / "engine_native"
PREFETCH = re.compile(r"^\s+(prefetch|prfm)", re.MULTILINE)  # x86-64, Arm

READ = """
#include "storage/far_values.hpp"
using namespace numatwin::native;
std::uint64_t read(const FarValues& far, std::uint64_t* words, const std::uint8_t* found,
                   std::size_t count) {
    return far.read(words, found, count);
}
"""
WRITE = """
#include "storage/far_values.hpp"
using namespace numatwin::native;
void write(const FarValues& far, const std::uint64_t* words, const std::uint8_t* found,
           const std::uint64_t* values, std::size_t count) {
    far.write(words, found, values, count);
}
"""


@pytest.mark.parametrize("program", [READ, WRITE], ids=["read", "write"])
def test_values_out_of_line_are_prefetched(program: str) -> None:
    """Those at the head of the batch, and those ahead of the one that is read or written."""
    compiler = shlex.split(os.environ.get("CXX", "c++"))
    command = [*compiler, "-std=c++20", "-O3", "-I", str(ENGINE), "-S", "-o", "-", "-x", "c++", "-"]
    done = subprocess.run(command, input=program, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(PREFETCH.findall(done.stdout)) >= 2, done.stdout
