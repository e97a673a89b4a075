"""Runs of studies: the same rows whoever runs them; nothing finished is lost, whatever comes."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from refusals import told_by
from study_files import SMALL, study_file

from numatwin.inputs import InputError
from numatwin.inputs.errors import DiskFull
from numatwin.sim.studies.evaluate import WALL
from numatwin.sim.studies.results import load_results
from numatwin.sim.studies.run_study import run_study
from numatwin.sim.studies.store import Store
from numatwin.sim.studies.study import Study, load_study

POINTS = 18


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return load_study(study_file(tmp_path))


def rows(folder: Path) -> list[dict[str, Any]]:
    """All rows, without how long they took."""
    return [
        {name: value for name, value in row.items() if name != WALL}
        for row in Store(folder).read().to_pylist()
    ]


def test_same_rows_from_any_workers_in_any_order(study: Study, tmp_path: Path) -> None:
    one, two, parts = tmp_path / "one", tmp_path / "two", tmp_path / "parts"
    assert run_study(study, one, jobs=1).complete
    assert run_study(study, two, jobs=2).complete
    for limit in (5, 1, 20):
        run_study(study, parts, jobs=1, limit=limit)
    assert rows(one) == rows(two) == rows(parts)
    assert [row["point"] for row in rows(one)] == list(range(POINTS))
    # Beside what a single run says: the first one of the last nodes.
    (run,) = [row for row in rows(one) if row["point"] == 5]
    assert run["throughput.lookup"] > 0
    assert run["system.nodes"] == 8


def test_results(study: Study, tmp_path: Path) -> None:
    run_study(study, tmp_path / "rows", jobs=1)
    results = load_results(study, tmp_path / "rows")
    costs = {row["cost"] for row in results.rows}
    assert costs == {2000 + 8 * 1000 + 5 * results.rows[0]["machine.memory_GB"]}
    best = results.best(3)
    assert len(best) == 3
    per_euro = [results.rows[k]["throughput.lookup"] / results.rows[k]["cost"] for k in best]
    assert per_euro == sorted(per_euro, reverse=True)
    assert all(results.rows[k]["utilisation.link.busiest"] < 0.8 for k in best)
    most = max(row["throughput.lookup"] for row in results.rows)
    assert results.rows[best[0]]["throughput.lookup"] == most


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("[16, 64, 256]", "[16, 64, 257]", "the study has changed since: factors"),
        ("name: small", "name: other", "rows of another study, 'small'"),
        ("eris-fig8-amd", "eris-fig8-amd-shared", "changed since: scenario"),
        ("name: small", "name: small\nset: {scale: 0.5}", "changed since: scenario, settings"),
    ],
)
def test_a_changed_study_is_noticed(
    study: Study, tmp_path: Path, before: str, after: str, message: str
) -> None:
    run_study(study, tmp_path / "rows", jobs=1, limit=2)
    changed = load_study(study_file(tmp_path, SMALL.replace(before, after, 1)))
    assert message in told_by(run_study, changed, tmp_path / "rows", jobs=1)
    assert len(rows(tmp_path / "rows")) == 2


def test_another_version_is_noticed(study: Study, tmp_path: Path) -> None:
    run_study(study, tmp_path / "rows", jobs=1, limit=2)
    manifest = tmp_path / "rows" / "study.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"version": "0.0.1"}))
    assert "version (rows of version 0.0.1)" in told_by(run_study, study, tmp_path / "rows", jobs=1)
    assert run_study(study, tmp_path / "rows", jobs=1, restart=True, limit=3).done == 3


def test_goals_may_change(study: Study, tmp_path: Path) -> None:
    """Constraints of metrics that are kept anyway, objective and prices need no new runs."""
    run_study(study, tmp_path / "rows", jobs=1)
    text = SMALL.replace("per_node: 1000", "per_node: 1").replace("80%", "20%")
    changed = load_study(study_file(tmp_path, text))
    assert run_study(changed, tmp_path / "rows", jobs=1).new == 0
    assert len(load_results(changed, tmp_path / "rows").best(99)) < POINTS
    for objective in ("minimise cost", "maximise throughput.lookup", "minimise power_W"):
        text = SMALL.replace("maximise throughput.lookup per cost", objective)
        changed = load_study(study_file(tmp_path, text))
        assert run_study(changed, tmp_path / "rows", jobs=1).new == 0
        assert load_results(changed, tmp_path / "rows").best()


def test_a_failed_run_is_a_row_and_may_be_tried_again(tmp_path: Path) -> None:
    study = load_study(study_file(tmp_path, SMALL.replace("[4, 8]", "[4, 99]")))
    done = run_study(study, tmp_path / "rows", jobs=1)
    assert (done.done, done.failed) == (POINTS, POINTS // 2)
    failed = [row for row in rows(tmp_path / "rows") if row["error"]]
    assert all("expected at most 8" in row["error"] or "99" in row["error"] for row in failed)
    assert failed[0]["replay"].startswith("numatwin run eris-fig8-amd --set ")
    assert run_study(study, tmp_path / "rows", jobs=1).new == 0
    again = run_study(study, tmp_path / "rows", jobs=1, retry=True)
    assert (again.new, again.done, again.failed) == (POINTS // 2, POINTS, POINTS // 2)
    assert len(rows(tmp_path / "rows")) == POINTS


MANY = """\
name: many
scenario: eris-fig8-amd
factors:
  system.buffer_commands: "1:4000:4000"
  system.nodes: [4, 5, 6, 8]
"""


def started(tmp_path: Path, *words: str) -> "subprocess.Popen[bytes]":
    study_file(tmp_path, MANY)
    command = [sys.executable, "-m", "numatwin", "study", "run", "study.yaml", "--out", "rows"]
    return subprocess.Popen(
        [*command, *words],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def wait_for_rows(tmp_path: Path, parts: int) -> None:
    until = time.time() + 900
    while len(list((tmp_path / "rows" / "rows").glob("0*.parquet"))) < parts:
        assert time.time() < until
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_killed_at_any_moment(tmp_path: Path, jobs: str) -> None:
    """What was in parts is there, whole; the next run goes on and adds what is missing."""
    process = started(tmp_path, "--jobs", jobs)
    wait_for_rows(tmp_path, 2)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    study, folder = load_study(tmp_path / "study.yaml"), tmp_path / "rows"
    before = rows(folder)
    assert len(before) >= 2
    done = run_study(study, folder, jobs=1, limit=8)
    after = rows(folder)
    assert done.done == len(after) == len(before) + 8
    assert [row for row in after if row["point"] in {b["point"] for b in before}] == before


@pytest.mark.slow
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_interrupted(tmp_path: Path, jobs: str) -> None:
    process = started(tmp_path, "--jobs", jobs)
    wait_for_rows(tmp_path, 1)
    before = len(rows(tmp_path / "rows"))
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=900)
    assert process.returncode == 130
    # A slow host has said before how long it will take.
    assert err.decode().endswith("numatwin: interrupted; what was finished is kept\n")
    assert len(rows(tmp_path / "rows")) >= before > 0


DEADLY = """\
import os, pathlib, signal
if "LokyProcess" in pathlib.Path("/proc/self/cmdline").read_text():
    os.kill(os.getpid(), signal.SIGKILL)
class Mine:
    def decide(self, observation):
        return ()
"""


def test_a_worker_that_is_killed(tmp_path: Path) -> None:
    """One line that says so; the next run goes on."""
    (tmp_path / "deadly.py").write_text(DEADLY)
    policies = 'policy: [none, "balancing=deadly.py:Mine"]'
    text = SMALL.replace("system.nodes: [4, 8]", policies)
    found = load_study(study_file(tmp_path, text))
    run_study(found, tmp_path / "rows", jobs=1, limit=4)
    with pytest.raises(InputError, match=r"a worker process was ended .* the same command again"):
        run_study(found, tmp_path / "rows", jobs=2)
    assert run_study(found, tmp_path / "rows", jobs=1).complete


def test_a_full_disk(study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The part that finds no room leaves nothing behind; those before it are kept."""
    run_study(study, tmp_path / "rows", jobs=1, limit=4)
    before, write = rows(tmp_path / "rows"), os.fsync

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DiskFull) as failure:
        run_study(study, tmp_path / "rows", jobs=1)
    assert "No space left on device; 4 finished runs are kept: make room" in str(failure.value)
    assert rows(tmp_path / "rows") == before
    assert [path.name for path in (tmp_path / "rows" / "rows").iterdir()] == ["0000001.parquet"]
    monkeypatch.setattr(os, "fsync", write)
    assert run_study(study, tmp_path / "rows", jobs=1).complete


def test_parts_that_cannot_be_merged_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is full once all rows are there: nothing is left to do."""
    store = Store(tmp_path)
    store.begin({})
    for k in range(3):
        store.add([{"point": k}], k)

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        store.compact()
    assert len(list((tmp_path / "rows").iterdir())) == 3
    store.compact()
    assert len(list((tmp_path / "rows").iterdir())) == 1
    assert store.read()["point"].to_pylist() == [0, 1, 2]


def test_parts_are_merged(tmp_path: Path) -> None:
    """Many hand-overs leave few parts, no row twice, and types that differ are joined."""
    store = Store(tmp_path)
    store.begin({})
    for k in range(300):
        value: Any = k if k % 50 else "many"
        store.add([{"point": k, "factor": value, "figure": k / 7 if k % 3 else None}], k)
    assert len(list((tmp_path / "rows").iterdir())) < 70
    store.compact()
    found = store.read().to_pylist()
    assert [row["point"] for row in found] == list(range(300))
    assert found[7]["factor"] == "7"
    assert found[50]["factor"] == "many"
    assert found[4]["figure"] == 4 / 7


def test_a_part_that_was_merged_but_not_removed(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.begin({})
    for k in range(3):
        store.add([{"point": k, "figure": float(k)}], k)
    kept = (tmp_path / "rows" / "0000001.parquet").read_bytes()
    store.compact()
    (tmp_path / "rows" / "0000001.parquet").write_bytes(kept)
    assert [row["point"] for row in store.read().to_pylist()] == [0, 1, 2]
    (tmp_path / "rows" / ".0000009.parquet.77").write_bytes(b"half of a part")
    assert len(store.read()) == 3


def test_a_broken_part_is_named(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.begin({})
    (tmp_path / "rows" / "0000001.parquet").write_bytes(b"nothing")
    assert "not rows of a study" in told_by(store.read)


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("²", {"point": [1]}),
        ("0000001 (copy)", {"point": [1]}),
        ("0000002", {"figure": [1.0]}),
        ("0000002", {"point": [None], "figure": [1.0]}),
        ("0000002", {"point": [[1]], "figure": [1.0]}),
        ("0000002", {"point": ["1"], "figure": [1.0]}),
        ("0000002", {"point": [1.0], "figure": [1.0]}),
    ],
)
def test_rows_that_are_of_no_run_do_not_count(
    tmp_path: Path, name: str, columns: dict[str, list[Any]]
) -> None:
    store = Store(tmp_path)
    store.begin({})
    store.add([{"point": 0, "figure": 1.0}], 0)
    pq.write_table(pa.table(columns), tmp_path / "rows" / f"{name}.parquet")
    assert f"{name}.parquet: not rows of a study" in told_by(store.done)


def test_rows_are_plain_parquet(study: Study, tmp_path: Path) -> None:
    run_study(study, tmp_path / "rows", jobs=1, limit=3)
    (part,) = (tmp_path / "rows" / "rows").glob("*.parquet")
    table = pq.read_table(part)
    assert table.schema.field("system.buffer_commands").type == "int64"
    assert table.schema.field("throughput.lookup").type == "double"
    assert table.schema.field("bottleneck.resource").type == "string"
