"""Damaged files of all kinds that are read: each is read, or refused in one line that names it, and
the line at fault where the file is written by hand. A failure prints the seed that plays it again.
"""

import json
import random
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_record_fuzz import damage_json

from numatwin import load_record, load_scenario
from numatwin.inputs import InputError
from numatwin.reports.study_page import study_html
from numatwin.sim.run.scenario_parts import load_engine
from numatwin.sim.studies.results import load_results
from numatwin.sim.studies.run_study import progressed, run_study
from numatwin.sim.studies.study import load_study
from numatwin.sim.systems.tasks.access_path import FEATURES, FORMAT, load_access_model
from numatwin.topologies import load_machine
from numatwin.validate.baseline import Entry, load_baseline, save_baseline
from numatwin.validate.calibrate.engine_rows import load_rows
from numatwin.validate.decision_cases import CaseFile
from numatwin.validate.suite import load_suite
from numatwin.workloads import load_workload
from numatwin.workloads.key_specs import load_histogram
from numatwin.workloads.task_trace import COLUMNS, load_trace

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs" / "examples"
STUDY = EXAMPLES / "buffers.yaml"
SCENARIOS, TOPOLOGIES = ROOT / "sim" / "scenarios", ROOT / "topologies"
WORKLOADS, SUITES = ROOT / "workloads", ROOT / "validate" / "suites"
DECISIONS = ROOT / "validate" / "decisions"
MACHINES = ("epyc-2s-cxl", "opteron-4n", "ib-fdr-8n", "intel-4s-qpi")
NAMES = (
    *("record", "study", "model", "baseline", "trace", "histogram", "engine rows"),
    *("scenarios", "machines", "workloads", "studies", "suites", "profiles", "decisions"),
)
FEW, MANY = range(12), range(12, 300)

TOKENS = (
    *(b"null", b"true", b"[]", b"{}", b"-1", b"0", b"1e999", b"1e308", b"9" * 30, b'""', b"1 GB"),
    *(b"\x00", b"\x01", b"\x7f", b"\x85", b"\xff", b"\xe2\x80\xae", b"\xef\xbf\xbe"),
    *(b"*a", b"&a x", b"!!x", b"---", b"\t", b"{", b"[", b": ", b"- ", b"<<: x", b"'", b'"', b"|"),
    *(b"\xed\xa0\x80", b"none.yaml", b"nan", b"\r", b"[" * 200, "²".encode()),
)  # fmt: skip
COLUMN_VALUES: tuple[Any, ...] = (
    *([1, 2], [], {"a": 1}, "x", b"x", True, 0.5, -1, 2**62, float("nan"), None),
)


@dataclass(frozen=True)
class Kind:
    """Files of a kind below ``folder``, and what reads one (or the folder, where ``of_folder``).

    ``by_hand``: written by people, so that what is refused has a line.
    """

    folder: Path
    load: Callable[[Path], Any]
    by_hand: bool = False
    of_folder: bool = False


def _damaged(content: bytes, rng: random.Random) -> bytes:
    """With parts cut out, doubled, or replaced; whole lines too."""
    for _ in range(rng.randint(1, 3)):
        start = rng.randint(0, len(content))
        end = min(len(content), start + rng.randint(0, 60))
        lines = content.split(b"\n")
        k = rng.randrange(len(lines))
        match rng.choice(("cut", "end", "twice", "insert", "replace", "value", "line", "swap")):
            case "cut":
                content = content[:start] + content[end:]
            case "end":
                content = content[:start]
            case "twice":
                content = content[:end] + content[start:]
            case "insert":
                content = content[:start] + rng.choice(TOKENS) + content[start:]
            case "replace":
                content = content[:start] + rng.choice(TOKENS) + content[start + 1 :]
            case "value":
                key, colon, _ = lines[k].partition(b": ")
                lines[k] = key + colon + (rng.choice(TOKENS) if colon else b"")
                content = b"\n".join(lines)
            case "line":
                del lines[k]
                content = b"\n".join(lines)
            case "swap":
                other = rng.randrange(len(lines))
                lines[k], lines[other] = lines[other], lines[k]
                content = b"\n".join(lines)
    return content


def _damaged_table(path: Path, rng: random.Random) -> None:
    """A column deleted, or with other values in it, whose type fits the first of them."""
    columns: dict[str, Any] = pq.read_table(path).to_pydict()
    name = rng.choice(sorted(columns))
    match rng.choice(("delete", "one", "all", "rename")):
        case "delete":
            del columns[name]
        case "rename":
            columns[rng.choice(("x", "é", "", "point", "a.b"))] = columns.pop(name)
        case "one" if columns[name]:
            value = rng.choice(COLUMN_VALUES)
            columns[name][rng.randrange(len(columns[name]))] = value
        case _:
            columns[name] = [rng.choice(COLUMN_VALUES)] * len(columns[name])
    try:
        table = pa.table(columns)
    except (pa.ArrowException, OverflowError):
        table = pa.table({key: [str(one) for one in column] for key, column in columns.items()})
    pq.write_table(table, path)


def _damage(path: Path, rng: random.Random) -> None:
    if path.suffix == ".parquet" and rng.random() < 0.5:
        _damaged_table(path, rng)
    elif path.suffix == ".json" and rng.random() < 0.5:
        value = json.loads(path.read_text())
        damage_json(value, rng)
        path.write_text(json.dumps(value))
    else:
        path.write_bytes(_damaged(path.read_bytes(), rng))


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Kind]:
    """Each kind that is read, by name."""
    from numatwin.cli import main

    whole = tmp_path_factory.mktemp("whole")
    study = load_study(STUDY)
    run_study(study, whole / "study", jobs=1, limit=6)
    short = ("--set", "horizon=2 ms", "--replications", "2", "--out", str(whole / "record"))
    assert main(("run", "nam-fig6-rsi", *short)) == 0
    (whole / "record" / "report.html").unlink(missing_ok=True)
    _write_made_up(whole)

    def read_study(folder: Path) -> None:
        progressed(study, folder)
        study_html(load_results(study, folder))

    def by_hand(name: str, files: Iterable[Path], load: Callable[[Path], Any]) -> Kind:
        (whole / name).mkdir()
        for file in files:
            shutil.copy(file, whole / name)
        return Kind(whole / name, load, by_hand=True)

    return {
        "record": Kind(whole / "record", load_record, of_folder=True),
        "study": Kind(whole / "study", read_study, of_folder=True),
        "model": Kind(whole / "model", load_access_model),
        "baseline": Kind(whole / "baseline", load_baseline),
        "trace": Kind(whole / "trace", lambda path: load_trace(path, ("T1",))),
        "histogram": Kind(whole / "histogram", lambda path: load_histogram(path, 100)),
        "engine rows": Kind(whole / "engine rows", load_rows),
        "scenarios": by_hand("scenarios", SCENARIOS.glob("*.yaml"), load_scenario),
        "machines": by_hand(
            "machines", (TOPOLOGIES / f"{name}.yaml" for name in MACHINES), load_machine
        ),
        "workloads": by_hand("workloads", WORKLOADS.glob("*.yaml"), load_workload),
        "studies": by_hand("studies", [STUDY], load_study),
        "profiles": by_hand("profiles", [EXAMPLES / "my-engine.yaml"], load_engine),
        "decisions": by_hand("decisions", DECISIONS.glob("*.yaml"), _read_case),
        "suites": by_hand("suites", SUITES.glob("*.yaml"), lambda path: load_suite(str(path))),
    }


def _read_case(path: Path) -> None:
    file = CaseFile(path)
    for name in file.case.alternatives if file.case.scenario is not None else ():
        file.scenario(name)


def _machine(name: str) -> Path:
    return TOPOLOGIES / f"{name}.yaml"


def _write_made_up(whole: Path) -> None:
    for name in ("model", "baseline", "trace", "histogram", "engine rows"):
        (whole / name).mkdir()
    line = {"weights": [1e-9] * len(FEATURES), "intercept": 0.0}
    tree = {"feature": [0, -1, -1], "threshold": [1.0, 0.0, 0.0], "below": [1, 0, 0]}
    tree |= {"above": [2, 0, 0], "engine": [False, False, True]}
    model = {"format": FORMAT, "version": 1, "features": FEATURES, "machine": "m", "on": "flow"}
    model |= {"observations": 9, "seed": 1, "cpu": line, "engine": line, "tree": tree}
    (whole / "model" / "model.json").write_text(json.dumps(model))
    entries = {"faster": Entry("throughput.x", 1, False, 0.0, (1.0, 2.0), {"machine": "abc"})}
    save_baseline(whole / "baseline" / "baseline.json", "mine", entries)
    columns: dict[str, list[Any]] = {name: [10.0, 0.0, 5.0] for name in COLUMNS}
    columns |= {"operator": ["scan", "probe", "scan"], "part": ["T1"] * 3}
    pq.write_table(pa.table(columns), whole / "trace" / "trace.parquet")
    lines = [
        ",".join(COLUMNS),
        *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True)),
    ]
    (whole / "trace" / "trace.csv").write_text("\n".join(lines))
    (whole / "histogram" / "keys.csv").write_text("key_from,key_to,count\n0,50,7\n50,100,1\n")
    shutil.copy(EXAMPLES / "store.csv", whole / "engine rows")


def _play(kind: Kind, name: str, seed: int, folder: Path) -> None:
    rng = random.Random(f"{name} {seed}")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(kind.folder, folder)
    path = rng.choice(sorted(path for path in folder.rglob("*") if path.is_file()))
    _damage(path, rng)
    again = f"_play(kinds[{name!r}], {name!r}, {seed}, tmp_path / 'x'): {path}"
    refused: InputError | None = None
    try:
        kind.load(folder if kind.of_folder else path)
    except InputError as failure:
        refused = failure
    except Exception as failure:
        raise AssertionError(f"{again}: {failure!r}") from failure
    if refused is not None:
        assert str(refused).isprintable(), again
        assert str(refused).startswith(str(folder)), f"{again}: {refused}"
        assert refused.line is not None or not kind.by_hand, f"{again}: {refused}"


@pytest.mark.parametrize("name", NAMES)
def test_damaged_files(kinds: dict[str, Kind], name: str, tmp_path: Path) -> None:
    for seed in FEW:
        _play(kinds[name], name, seed, tmp_path / "x")


@pytest.mark.sweep
@pytest.mark.parametrize("name", NAMES)
def test_many_damaged_files(kinds: dict[str, Kind], name: str, tmp_path: Path) -> None:
    for seed in MANY:
        _play(kinds[name], name, seed, tmp_path / "x")
