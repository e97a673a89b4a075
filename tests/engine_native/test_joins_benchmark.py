"""The benchmark of joins where one takes longer than it may."""

import pytest
from benchmark_runs import printed_by

from numatwin.engine_native import _engine

pytestmark = pytest.mark.skipif(not _engine.HAS_UCX, reason="needs libucx-dev")


def test_what_does_not_end_in_time_has_no_figure() -> None:
    # So many groups sent over TCP, so often, that they take longer than a second anywhere.
    sizes = ["--outer", "100000", "--groups", "50000", "--rounds", "100"]
    some = ["--operator", "rdma-aggregation", "--repeat", "1", "--seconds", "0"]
    printed, told_all = printed_by("native_joins", *sizes, *some)
    lines = {line["name"]: line for line in printed}
    assert set(lines) == {f"native_joins/rdma-aggregation/{name}" for name in ("shm", "tcp")}
    stopped = lines["native_joins/rdma-aggregation/tcp"]
    assert (stopped["value"], stopped["ratio"]) == (None, None)
    told = "rdma-aggregation/tcp: the native engine took longer than 1 s"
    assert told in told_all.splitlines()
