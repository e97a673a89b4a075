"""A study on a dask cluster has the rows that it has on this machine."""

import contextlib
import socket
import threading
from pathlib import Path

import pytest
from study_files import study_file
from test_study_runs import rows

from numatwin.inputs import InputError
from numatwin.sim.studies.run_study import run_study
from numatwin.sim.studies.study import load_study

distributed = pytest.importorskip("distributed")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_same_rows_on_a_cluster(tmp_path: Path) -> None:
    study = load_study(study_file(tmp_path))
    options = {"dashboard_address": None, "processes": False, "threads_per_worker": 1}
    with distributed.LocalCluster(n_workers=2, **options) as cluster:
        done = run_study(study, tmp_path / "there", scheduler=cluster.scheduler_address)
    assert done.complete
    run_study(study, tmp_path / "here", jobs=1)
    assert rows(tmp_path / "there") == rows(tmp_path / "here")


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "none://1.2.3.4", "nonsense"])
def test_a_scheduler_that_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setattr("numatwin.sim.studies.engine.ANSWER_S", 0.5)
    study = load_study(study_file(tmp_path))
    with pytest.raises(InputError, match="no scheduler answers"):
        run_study(study, tmp_path / "rows", scheduler=address)
    assert not (tmp_path / "rows").exists()


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"", "nothing came within 0.5 s"),
        (b"HTTP/1.1 400 Bad request\r\n\r\n", "what is there is another program"),
    ],
)
def test_what_listens_is_no_scheduler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: bytes, message: str
) -> None:
    monkeypatch.setattr("numatwin.sim.studies.engine.ANSWER_S", 0.5)
    study = load_study(study_file(tmp_path))
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    taken.append(server.accept()[0])
                    taken[-1].sendall(answer)

        taken: list[socket.socket] = []
        threading.Thread(target=serve, daemon=True).start()
        with pytest.raises(InputError, match="no scheduler answers") as refused:
            run_study(
                study, tmp_path / "rows", scheduler=f"tcp://127.0.0.1:{server.getsockname()[1]}"
            )
        server.shutdown(socket.SHUT_RDWR)
    for connection in taken:
        connection.close()
    assert message in str(refused.value)
    assert not (tmp_path / "rows").exists()
