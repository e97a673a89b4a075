"""Every bundled workload loads, is named after its file and says what it is."""

import numpy as np
import pytest
from known import known

from numatwin.workloads import load_workload, workload_names
from numatwin.workloads.catalogue import BUNDLED


def test_the_bundled_workloads() -> None:
    assert workload_names() == [
        *("checkout", "checkout-zipf", "eris-lookup-1e9", "eris-mixed-1e9", "eris-moving-range"),
        *("eris-moving-range-small", "eris-route", "eris-scan-8e9", "eris-scan-8gb"),
        *("eris-upsert-1e9", "hana-aggregates", "hana-four-tables", "hana-hot-columns"),
        *("hana-two-tables", "host-queries", "join", "lookup-hot-ends", "lookup-hot-range"),
        *("lookup-recorded", "lookup-zipf", "short-and-long", "tpch-1", "tpch-100"),
    ]


@pytest.mark.parametrize("name", workload_names())
def test_loads_and_is_ready_to_run(name: str) -> None:
    workload = load_workload(name)
    assert workload.name == name
    assert workload.description.title
    assert (BUNDLED / f"{name}.yaml").read_text().startswith("# ")
    for state in workload.phases:
        assert sum(op.share for op in state.operations.values()) == pytest.approx(1.0)
        for operation in state.operations.values():
            if operation.kind == "query":
                assert (operation.object, operation.keys) == ("", None)
                continue
            stored = workload.objects[operation.object]
            keys = stored.records if stored.kind == "table" else stored.keys
            if operation.keys is None:
                assert operation.kind == "scan"
            else:
                bounds = np.linspace(0, keys or 0, 513)
                assert operation.keys.shares(bounds).sum() == pytest.approx(1.0)


def test_hot_ends_change_in_turn_and_all_alike() -> None:
    workload = load_workload("lookup-hot-ends")
    changes = workload.change_times(2.72)
    assert np.diff([*changes, 2.72]) == pytest.approx([0.4] * 6)
    hot = [workload.at(at).operations["lookup"].keys for at in (0.0, *changes)]
    shares = [keys.shares(np.array([0, 2_560_000]))[0] for keys in hot if keys is not None]
    assert shares == [1, 0, 1, 0, 1, 0, 1]


def test_scan_sizes_are_those_of_the_paper() -> None:
    large = load_workload("eris-scan-8e9").objects["column"]
    assert large.entries == 8 * 10**9
    small = load_workload("eris-scan-8gb").objects["column"]
    assert known(small.entries) * small.entry_size.value == 8e9


def test_the_recording_has_its_two_warm_regions() -> None:
    keys = known(load_workload("lookup-recorded").at(0).operations["lookup"].keys)
    density = keys.density()
    middles = (density.breaks[:-1] + density.breaks[1:]) / 2
    height = density.mass / np.diff(density.breaks)
    peaks = middles[1:-1][(height[1:-1] > height[:-2]) & (height[1:-1] >= height[2:])]
    assert np.abs(peaks - [140e6, 400e6]).max() <= 4e6
