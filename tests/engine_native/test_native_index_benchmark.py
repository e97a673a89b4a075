"""A tiny run of the indexes' benchmark."""

import os
import shutil
import subprocess

import pytest
from benchmark_runs import printed_by

HASH = "c349b2d5f4919aee"


def has_libnuma() -> bool:
    compiler = os.environ.get("CXX", "g++")
    if shutil.which(compiler) is None:
        return False
    command = [compiler, "-x", "c++", "-fsyntax-only", "-"]
    return (
        subprocess.run(command, input=b"#include <numa.h>\n", capture_output=True).returncode == 0
    )


@pytest.mark.sweep
@pytest.mark.skipif(not has_libnuma(), reason="no C++ compiler, or no libnuma headers")
def test_tiny_run_prints_figures_and_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = ["--keys", "20000", "--repeat", "2", "--lookups", "5000"]
    monkeypatch.delenv("NUMATWIN_UNODB", raising=False)
    lines, told = printed_by("native_index", *sizes)
    for line in lines:
        assert set(line) == {"name", "value", "unit", "versus", "ratio"}
        assert line["value"] > 0
    names = [line["name"].removeprefix("native_index/") for line in lines]
    alone = ["upsert", "memory", "lookup"]
    shared = ["upsert", "lookup", "memory"]
    # The B-tree's two come before, where Abseil is.
    assert [name for name in names if name.endswith("random_keys")][-6:] == [
        f"{name}/20000_random_keys" for name in [*shared, *alone]
    ]
    assert [name for name in names if name.endswith("dense_keys")] == [
        f"{name}/20000_dense_keys" for name in alone
    ]
    # Every answer of every turn.
    assert told.split()[-1] == HASH
