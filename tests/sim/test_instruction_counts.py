"""The instruction counts of the cost model, measured again where callgrind and GCC are present."""

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from benchmark_runs import imported

from numatwin.sim.systems.eris.costs import INSTRUCTIONS

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "instruction_counts.py"
UNITS = 64
# Of what the loops do not have, only machines that were measured know a time.
WITHOUT_LOOPS = (
    "generate_value", "choose", "lookup_serial", "upsert_serial", "batch", "batch_executed",
    "round", "gather", "group", "part", "scan", "scan_handed",
)  # fmt: skip


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    return imported("instruction_counts")


def test_counts_of_the_model_are_those_of_callgrind(benchmark: ModuleType) -> None:
    if reason := benchmark.missing():
        pytest.skip(reason)
    command = [benchmark.compiler(), "-E", "-dM", "-x", "c++", os.devnull]
    macros = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    if "__clang__" in macros or "__GNUC__" not in macros:
        pytest.skip("the counts are those of GCC; CXX is another compiler")
    command = [sys.executable, str(SCRIPT), "--units", str(UNITS)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert all(set(line) == {"name", "value", "unit", "versus", "ratio"} for line in lines)
    measured = {line["name"].removeprefix("instruction_counts/"): line["value"] for line in lines}
    # Another release of GCC may choose other instructions, but not many.
    counts = dataclasses.asdict(INSTRUCTIONS)
    not_counted = dict.fromkeys(WITHOUT_LOOPS, 0.0) | {
        "generate_ranked": INSTRUCTIONS.generate,
        "scatter": ((1.0, 0.0),),
        "upsert_level": None,
        "scan_line_positions": INSTRUCTIONS.scan_line_bitmap,
    }
    assert {name: counts.pop(name) for name in not_counted} == not_counted
    assert measured == pytest.approx(counts, rel=0.25)
    # 4 vectors of 16 bytes are read, 4 are written, and the loop is closed. A call of memcpy, or
    # vectors of another size, would not be in this range.
    assert 8 < measured["flush_line"] <= 12


def test_loops_do_what_they_should_under_sanitizers(benchmark: ModuleType, tmp_path: Path) -> None:
    if reason := benchmark.missing():
        pytest.skip(reason)
    sanitizers = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    empty = tmp_path / "empty.cpp"
    empty.write_text("int main() { return 0; }\n")
    build = [benchmark.compiler(), *sanitizers, str(empty), "-o", str(tmp_path / "empty")]
    if subprocess.run(build, capture_output=True).returncode != 0:
        pytest.skip("the compiler has no sanitizer runtime")
    program = tmp_path / "instruction_counts"
    flags = ["-std=c++20", "-O1", "-msse4.2", *benchmark.WARNINGS, "-Werror", *sanitizers]
    build = [benchmark.compiler(), *flags, str(benchmark.SOURCE), "-o", str(program)]
    built = subprocess.run(build, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr[:4000]
    # The leak check needs ptrace, which containers deny; memory here has an owner that frees it.
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
    run = subprocess.run([str(program), "32"], capture_output=True, text=True, env=environment)
    assert run.returncode == 0, run.stderr[:4000]


def test_without_a_compiler_one_line_says_so() -> None:
    environment = {**os.environ, "CXX": "no-such-compiler"}
    command = [sys.executable, str(SCRIPT)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0
    assert done.stdout == ""
    assert done.stderr.startswith("instruction_counts: skipped: ")
    assert done.stderr.count("\n") == 1


def test_without_valgrind_one_line_says_how_to_get_it(
    benchmark: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(benchmark.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(
        benchmark.shutil, "which", lambda name: None if name == "valgrind" else f"/usr/bin/{name}"
    )
    monkeypatch.setattr(sys, "argv", [str(SCRIPT)])
    benchmark.main()
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == (
        "instruction_counts: skipped: needs valgrind, which is not installed "
        "(Debian, Ubuntu: apt-get install valgrind)\n"
    )


def test_on_another_architecture_the_counts_of_the_model_stand(
    benchmark: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(benchmark.platform, "machine", lambda: "aarch64")
    assert benchmark.missing() == "counts x86-64 instructions, not those of aarch64"


# 8 values of 64 bits or 16 of 32 bits lie on a line; a tenth of them is written.
@pytest.mark.parametrize(
    ("result", "entry_bytes", "expected"),
    [
        ("sum", 8, INSTRUCTIONS.scan_line_sum),
        ("sum", 4, INSTRUCTIONS.scan_line_sum_32),
        ("bitmap", 8, INSTRUCTIONS.scan_line_bitmap),
        ("bitmap", 4, INSTRUCTIONS.scan_line_bitmap_32),
        ("positions", 8, INSTRUCTIONS.scan_line_bitmap + 0.8 * INSTRUCTIONS.scan_position),
        ("positions", 4, INSTRUCTIONS.scan_line_bitmap_32 + 1.6 * INSTRUCTIONS.scan_position),
    ],
)
def test_scan_of_a_line(result: str, entry_bytes: float, expected: float) -> None:
    assert INSTRUCTIONS.scan_line(result, entry_bytes, 0.1) == pytest.approx(expected)
