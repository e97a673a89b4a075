"""Writers that are killed, or find the disk full, at each operation on files.

The old content or the new one is whole, and the next writer leaves nothing else behind.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_record import made_up

from numatwin.inputs import InputError, write_text_atomically
from numatwin.sim.run.record import load_record
from numatwin.sim.studies.store import Store
from numatwin.sim.systems.tasks.access_path import FEATURES, AccessModel, Line, load_access_model
from numatwin.topologies import load_machine
from numatwin.topologies.export import machine_yaml
from numatwin.validate.baseline import Entry, load_baseline, save_baseline

OPERATIONS = ("open", "os.", "fcntl.", "shutil.")
Save = Callable[[Path, int], object]
Load = Callable[[Path], object]


def save_record(path: Path, number: int) -> None:
    times = np.arange(number + 1.0)
    made_up(seed=number, series={"time_s": times, "duration_s": times + 1}).save(path)


def load_saved_record(path: Path) -> int:
    record = load_record(path)
    assert len(record.series["time_s"]) == record.seed + 1
    return record.seed


def save_study(path: Path, number: int) -> None:
    """As a run with --restart does."""
    store = Store(path)
    if store.identity() is not None:
        store.restart()
    store.begin({"study": number})
    for point in range(3):
        store.add([{"point": point, "figure": number}], point)
    store.compact()


def load_study(path: Path) -> int:
    """Its rows so far: those of one study only, all of the earlier one."""
    identity = Store(path).identity()
    assert identity is not None
    number = int(identity["study"])
    rows = Store(path).read().to_pylist()
    assert [row["point"] for row in rows] == list(range(len(rows)))
    assert all(row["figure"] == number for row in rows)
    assert len(rows) == 3 or number == 2
    return number


def save_machine(path: Path, number: int) -> None:
    """Measured, built, imported and fitted ones go this way, and so do profiles of engines."""
    machine = load_machine("amd-8n-ht").description.model_copy(update={"title": f"{number}"})
    write_text_atomically(path, machine_yaml(machine))


def save_model(path: Path, number: int) -> None:
    line = Line(weights=(0.0,) * len(FEATURES), intercept=1.0)
    AccessModel(
        format="numatwin access-path model",
        version=1,
        features=FEATURES,
        machine="m",
        on="flow",
        observations=1,
        seed=number,
        cpu=line,
        engine=line,
        tree=None,
    ).save(path)


def save_entries(path: Path, number: int) -> None:
    save_baseline(path, "s", {"c": Entry("m", number, True, 0.0, (1.0,), {})})


KINDS: dict[str, tuple[Save, Load]] = {
    "record": (save_record, load_saved_record),
    "study": (save_study, load_study),
    "machine.yaml": (save_machine, lambda p: int(load_machine(str(p)).description.title or 0)),
    "model.json": (save_model, lambda p: load_access_model(p).seed),
    "baseline.json": (save_entries, lambda p: load_baseline(p)["c"].seed),
}


def stopped_at(operation: int, act: Callable[[], object], folder: Path, *, full: bool) -> int:
    """Runs ``act`` in a process that dies (or finds the disk ``full``) before its operation of that
    number on files in ``folder``; the status: 0 where there are no so many.
    """
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    left = [operation]

    def stop(what: str, handle: int | None = None) -> None:
        left[0] -= 1
        if left[0]:
            return
        if full and what in ("open", "os.rename", "fsync", "os.mkdir"):
            raise OSError(28, "No space left on device")
        if not full:
            if handle is not None and os.path.isfile(f"/proc/self/fd/{handle}"):
                os.ftruncate(handle, os.fstat(handle).st_size // 2)  # as far as it came
            os._exit(9)

    def audit(event: str, arguments: tuple[Any, ...]) -> None:
        if event.startswith(OPERATIONS) and str(folder) in str(arguments):
            stop(event)

    fsync = os.fsync

    def counted_fsync(handle: int) -> None:
        stop("fsync", handle)
        fsync(handle)

    status = 70
    try:
        os.fsync = counted_fsync  # type: ignore[assignment]
        sys.addaudithook(audit)
        act()
        status = 0 if left[0] > 0 else 75
    except InputError:
        status = 75
    finally:
        os._exit(status)


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("full", [False, True], ids=["killed", "disk full"])
@pytest.mark.parametrize("kind", KINDS)
def test_at_every_operation(tmp_path: Path, kind: str, full: bool) -> None:
    save, load = KINDS[kind]
    path, fresh = tmp_path / kind, tmp_path / "fresh" / kind
    fresh.parent.mkdir()
    save(path, 1)
    save(fresh, 2)
    found = set()
    for operation in range(1, 200):
        save(path, 1)
        status = stopped_at(operation, lambda: save(path, 2), tmp_path, full=full)
        assert status in (0, 75 if full else 9)
        found.add(load(path))
        if not status:
            break
        save(path, 2)
        assert load(path) == 2
        parts = {p.name.split("-")[0] for p in path.rglob("*")} if path.is_dir() else set()
        assert parts == ({p.name.split("-")[0] for p in fresh.rglob("*")} if parts else set())
        assert {p.name for p in tmp_path.iterdir()} == {kind, "fresh"}
    assert operation > 3
    assert found == {1, 2}
