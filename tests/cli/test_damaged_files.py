"""Files that once ended as a bug, or took gigabytes: one clear line each, and status 2."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from command_line import CommandLine

ROOT = Path(__file__).parents[2]
CASES = ROOT.parent / "shared" / "cases" / "damaged"
STUDY = str(ROOT / "docs" / "examples" / "buffers.yaml")
SCENARIO = """\
name: mine
system: {kind: tasks}
machine: xeon-4s-ivb
horizon: 1 ms
workload:
  name: mine
  objects: {T1: {kind: table, rows: 1000, columns: {a: {distinct: 10}}}}
  operations:
    q: {kind: query, clients: 4, operators: {x: {kind: recorded, file: FILE, structure: 1 MiB}}}
"""

pytestmark = pytest.mark.skipif(not CASES.exists(), reason="no folder ../shared/cases/damaged")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["report", "record-unicode", "--out", "x.html"], "not a time series: a text that is not"),
        (["compare", "record-unicode", "record-unicode"], "not a time series: a text that is not"),
        (["study", "status", STUDY, "--out", "study-deep"], "nested too deeply"),
        (["study", "run", STUDY, "--out", "study-deep"], "nested too deeply"),
        (["study", "status", STUDY, "--out", "study-odd-row-name"], "study-odd-row-name"),
        (["study", "report", STUDY, "--out", "study-odd-row-name"], "study-odd-row-name"),
        (["run", "trace-bomb.yaml"], "trace-bomb.parquet:1:1: operator: not a name"),
        (["run", "trace-unicode.yaml"], "trace-unicode.parquet: not Parquet: "),
        (
            ["run", "hana-fig10", "--set", "policies.access-path={policy: tree, model: MODEL}"],
            "a model for other features: 5",
        ),
    ],
    ids=" ".join,
)
def test_one_line_and_status_2(words: Sequence[str], told: str, numatwin: CommandLine) -> None:
    shutil.copytree(CASES, ".", dirs_exist_ok=True, copy_function=shutil.copyfile)
    for name in ("trace-bomb", "trace-unicode"):
        Path(f"{name}.yaml").write_text(SCENARIO.replace("FILE", f"{name}.parquet"))
    done = numatwin(*(word.replace("MODEL", "model-features-number.json") for word in words))
    assert done.status == 2, done.err
    assert told in done.err
    assert done.err.count("\n") == 1
    assert done.out == ""
