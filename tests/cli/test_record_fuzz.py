"""Damaged records, as a hand or a program may leave them: each is shown, or refused in one line, by
what reads records. A failure prints the seed, and how to play it again.
"""

import copy
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import CommandLine

from numatwin import load_record
from numatwin.sim.run.record_files import HEAD_FILE, SERIES_FILE
from numatwin.topologies.emulator.traffic import MATRICES

# Seeds that once ended as a bug: NaN and numbers as words, ranges and shifts of the wrong kind,
# series and figures too large to draw and to square, half a surrogate pair, odd traffic, integers
# of more than 64 bits.
KEPT = (41, 44, 47, 51, 102, 130, 174, 186, 453)
SEEDS = range(300)

VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 0.5, 5e-324, 1e35, -1e35, 1e308, -1e308, 2**64, -(2**80)),
    *("", "x", "<b>", "\ud800", "nan", "1e308", [], [1], [None], [[1, 2], [3]], [1e35, "x"]),
    *({}, {"a": None}, {"a": {"b": None}}, {"x": 1e35}),
)
FACTORS = (-1, 0, 1e6, 1e-6, 1e30)
COLUMN_VALUES = (float("nan"), float("inf"), -1e308, 1e35, -1.0, 0.0)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Records with something in every field."""
    from numatwin.cli import main

    folder = tmp_path_factory.mktemp("whole")
    event, flow, counted = (folder / name for name in ("event", "flow", "counted"))
    short = ("nam-fig6-rsi", "--set", "horizon=2 ms", "--replications", "2")
    assert main(("run", *short, "--out", str(event))) == 0
    assert main(("run", "gru-scan", "--assumptions", "--out", str(flow))) == 0
    head = json.loads((flow / HEAD_FILE).read_text()) | {
        "uncertainty": {
            "level": 0.9,
            "doubts": [{"name": "a", "setting": "machine.name", "stream": "a"}],
            "most": [{"name": "machine.name", "low": -0.1, "high": 0.2}],
            "throughput": {"scan": [5.0, 6.0]},
            "shifts": {"throughput": {"scan": [0.9 + 0.002 * k for k in range(100)]}},
        },
        "idle_settings": [
            {"setting": "seed=2", "throughput": {"scan": 0.0}, "changes": [], "instead": None}
        ],
    }
    counted.mkdir()
    _write(counted, _counted(head), _series(flow))
    _write(flow, head, _series(flow))
    return [event, flow, counted]


def _counted(head: dict[str, Any]) -> dict[str, Any]:
    """The record of the same machine in the emulator, with made-up counts."""
    machine = head["machine"]
    ids = [node["id"] for node in machine["nodes"]]
    square = [[3 * a + b for b in range(len(ids))] for a in range(len(ids))]
    links = [
        {"name": "link", "data_bytes": 3, "message_bytes": 2}
        | {name: link[name] for name in ("ends", "bandwidth_Bps")}
        for link in machine["links"]
    ]
    traffic = {
        "span": "regions",
        "regions": 2,
        "levels": [1, 2, 3],
        "remote_share": 0.3,
        "user_remote_share": 0.2,
        "pairs": dict.fromkeys(MATRICES, square),
        "memory": [{"node": name, "read_bytes": 5, "written_bytes": 7} for name in ids],
        "links": links,
    }
    nothing: dict[str, Any] = {
        "throughput": {},
        "latency_ns": {},
        "why": {},
        "resources": [],
        "energy_J": None,
    }
    return head | nothing | {"traffic": traffic, "horizon_s": 0.0}


def _series(folder: Path) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = pq.read_table(folder / SERIES_FILE).to_pydict()
    return columns


def _write(folder: Path, head: dict[str, Any], series: dict[str, list[Any]]) -> None:
    """Without the digest: of what was changed it would tell that alone."""
    rest = {name: value for name, value in head.items() if name != "digest"}
    (folder / HEAD_FILE).write_text(json.dumps(rest))
    pq.write_table(pa.table(series), folder / SERIES_FILE)


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all parts, of lists of the first three."""
    keys: list[Any] = list(value) if isinstance(value, dict) else []
    if isinstance(value, list):
        keys = list(range(min(3, len(value))))
    for key in keys:
        yield (*path, key)
        yield from _places(value[key], (*path, key))


def damage_json(head: dict[str, Any], rng: random.Random) -> str:
    """Changes one part, of each field as often; returns what was done."""
    field = rng.choice(sorted(head))
    path = rng.choice([(field,), *((field, *more) for more in _places(head[field]))])
    parent: Any = head
    for key in path[:-1]:
        parent = parent[key]
    old, new = parent[path[-1]], copy.deepcopy(rng.choice(VALUES))
    match rng.randrange(8):
        case 0 if isinstance(parent, dict):
            del parent[path[-1]]
            return f"{path} deleted"
        case 1 if isinstance(old, dict):
            old["a"] = new
            return f"{path} with a: {new!r}"
        case 2 if isinstance(old, list):
            old.append(new)
            return f"{path} with {new!r} at its end"
        case 3 if isinstance(old, (int, float)):
            new = old * rng.choice(FACTORS)
    parent[path[-1]] = new
    return f"{path} = {new!r}"


def _damage_series(series: dict[str, list[Any]], rng: random.Random) -> str:
    name = rng.choice(sorted(series))
    column = series[name]
    match rng.choice(("delete", "one", "all", "reverse", "unknown", "words", "empty")):
        case "delete":
            del series[name]
            return f"{name} deleted"
        case "one" if column:
            column[rng.randrange(len(column))] = rng.choice(COLUMN_VALUES)
        case "all":
            column[:] = [rng.choice(COLUMN_VALUES)] * len(column)
        case "reverse":
            column.reverse()
        case "unknown":
            column[:] = [None] * len(column)
        case "words":
            column[:] = ["x"] * len(column)
        case _:
            for each in series.values():
                each.clear()
    return f"{name} = {column[:3]!r} …"


def _play(whole: list[Path], seed: int, numatwin: CommandLine) -> None:
    rng = random.Random(seed)
    source = rng.choice(whole)
    head, series = json.loads((source / HEAD_FILE).read_text()), _series(source)
    done = [damage_json(head, rng)] if rng.random() < 0.8 else [_damage_series(series, rng)]
    damaged = Path("damaged")
    damaged.mkdir(exist_ok=True)
    _write(damaged, head, series)
    told = f"seed {seed}, {source.name}: {done[0]}; again: _play(whole, {seed}, numatwin)"
    commands = [
        ("report", str(damaged), "--out", "one.html"),
        ("compare", str(damaged), str(source)),
        ("compare", str(source), str(damaged), "--json"),
        ("report", str(source), str(damaged), "--out", "both.html"),
    ]
    for words in commands:
        ended = numatwin(*words)
        assert ended.status in (0, 2), f"{told}: {words[0]}: {ended.err}"
        assert ended.err.count("\n") == (ended.status == 2), f"{told}: {ended.err}"
        if ended.status == 2:  # whoever reads it is told the same
            return
    record = load_record(damaged)
    shown: tuple[Callable[[], Any], ...] = (record.figures, record.as_json, record._repr_html_)
    for show in shown:
        show()
    record.save("again")


@pytest.mark.parametrize("seed", KEPT)
def test_damaged_records(whole: list[Path], seed: int, numatwin: CommandLine) -> None:
    _play(whole, seed, numatwin)


@pytest.mark.sweep
def test_many_damaged_records(whole: list[Path], numatwin: CommandLine) -> None:
    for seed in SEEDS:
        _play(whole, seed, numatwin)
