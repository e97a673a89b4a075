"""The tool that shows that a change of the code changed no result: it sees what differs."""

import json

from result_hashes import STORED, differences, hashes_of, played

from numatwin import run_scenario
from numatwin.sim.run.scenario import scenario_names

NAME, PLANE = "eris-fig8-amd", "flow"


def test_another_result_has_another_hash() -> None:
    record = run_scenario(played(NAME, PLANE))
    other = record.throughput["lookup"] * (1.0 + 1e-15)
    changed = type(record)(**{**vars(record), "throughput": {"lookup": other}})
    before, after = hashes_of(record), hashes_of(changed)
    assert differences({"run": before}, {"run": before}) == []
    assert differences({"run": before}, {"run": after}) == ["run: throughput"]


def test_a_run_that_is_missing_is_told() -> None:
    assert differences({"a": {}, "b": {}}, {"b": {}, "c": {}}) == ["a: only stored", "c: only now"]


def test_every_bundled_scenario_is_stored() -> None:
    stored = {run.partition(" on ")[0] for run in json.loads(STORED.read_text())}
    assert stored == set(scenario_names())
