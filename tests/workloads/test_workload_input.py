"""Workload files: bad input told in one line with its place; a round trip of descriptions."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from refusals import told_by

from numatwin.inputs import InputError, load_yaml, parse_yaml
from numatwin.workloads import (
    WorkloadDescription,
    load_workload,
    workload_from_document,
    workload_names,
)
from numatwin.workloads.catalogue import BUNDLED

GOOD = """\
name: test
objects:
  index: {kind: index, keys: 1000}
  column: {kind: column, entries: 10}
operations:
  lookup:
    kind: lookup
    object: index
    share: 0.5
    keys:
      distribution: hot_range
      from: 0
      to: 500
      share: 0.9
  scan: {kind: scan, object: column}
phases:
  - start: 10 s
    name: later
    operations:
      lookup: {share: 2}
  - start: 20 s
    name: last
    operations:
      lookup:
        keys: {distribution: moving_hot_range, from: 100, to: 200, step: -50, every: 1 s}
"""


def test_the_good_file_is_good() -> None:
    assert workload_from_document(parse_yaml(GOOD, "w.yaml"), Path()).name == "test"


@pytest.mark.parametrize(
    ("change", "expected"),
    {
        ("name: test", "name: test\nnmae: x"): "2:1: unknown field 'nmae'",
        ("keys: 1000", "keys: 1e-3"): "3:30: found '0.001', expected a whole number, "
        "such as 1_000_000",
        ("keys: 1000", "keys: 0"): "3:30: found '0', expected at least 1",
        ("keys: 1000", "keys: 99999999999999999999"): "3:30: expected at most 9007199254740992",
        ("keys: 1000", "keys: 1000, key_bits: 9"): "3:30: keys: "
        "9 key_bits distinguish at most 512 apart",
        ("keys: 1000", "keys: 1000, prefix_bits: 17"): "3:49: expected at most 16",
        ("keys: 1000", "keys: 1000, value_size: 8"): "3:48: a bare number has no unit",
        ("keys: 1000", "keys: 1000, value_size: 8 s"): "3:48: not a unit of size",
        ("keys: 1000", "keys: 1000, entries: 5"): "3:45: objects.index.entries: "
        "does not belong to kind 'index'",
        (", keys: 1000", ""): "3:3: missing field 'keys' of kind 'index'",
        ("entries: 10", "entries: -10"): "4:35: found '-10', expected at least 1",
        ("kind: index", "kind: tree"): "3:17: expected 'index', 'column' or 'table'",
        ("hot_range\n", "hot\n"): "11:21: unknown distribution: found 'hot', expected one of 'uni",
        ("share: 0.5", "share: -1"): "9:12: found '-1', expected at least 0",
        ("share: 0.5", "share: .nan"): "9:12: found 'nan'",
        ("share: 0.5", "share: .inf"): "9:12: found 'inf'",
        ("share: 0.5", "share: much"): "9:12: found 'much', expected a number",
        ("share: 0.9", "share: 1.1"): "14:14: expected at most 1",
        ("share: 0.9", "share: -0.1"): "14:14: expected at least 0",
        ("to: 500", "to: 1001"): "13:11: beyond the domain: expected at most 1000, its keys",
        ("to: 500", "to: 1000"): "14:14: no key is left for the rest: expected 1: found '0.9'",
        ("from: 0", "from: 500"): "13:11: expected above 500, where the range begins",
        ("from: 0", "from: -1"): "12:13: found '-1', expected at least 0",
        ("object: index", "object: idnex"): "8:13: no such object: expected one of index, column",
        ("object: index", "object: column"): "8:13: a lookup needs an index: found 'column'",
        ("object: column", "object: index"): "15:30: a scan needs a column: found 'index'",
        ("object: column", "object: column, selectivity: 1.5"): "15:51: expected at most 1",
        ("object: column", "object: column, keys: {distribution: uniform}"): "15:38: "
        "operations.scan.keys: does not belong to kind 'scan'",
        ("    share: 0.5", "    result: bitmap"): "9:13: operations.lookup.result: "
        "does not belong to kind 'lookup'",
        ("start: 20 s", "start: 10 s"): "21:12: expected a rising order, steps above 1 ns: "
        "found '10 s'",
        ("start: 10 s", "start: 0 s"): "17:12: above 0",
        ("lookup: {share: 2}", "lokup: {share: 2}"): "20:7: lokup: no such operation: "
        "expected one of lookup, scan",
        ("lookup: {share: 2}", "lookup: {share: -2}"): "20:23: expected at least 0",
        ("lookup: {share: 2}", "scan: {keys: {distribution: uniform}}"): "20:14: has no keys",
        ("      lookup: {share: 2}", "      {}"): "19:5: expected at least 1 in it",
        ("name: test", "name: a/b"): "1:7: name: found 'a/b', expected at most 64 letters",
        ("name: test", "name: test\nnotes: one"): "2:8: found 'one', expected a list",
        ("name: test", "name: test\ntitle: 7"): "2:8: title: found '7', expected text",
        ("{kind: scan, object: column}", "scan"): "15:9: found 'scan', expected a mapping",
        ("step: -50", "step: 0"): "25:74: step: found '0', expected a whole number other than 0",
        ("step: -50", "step: -150"): "25:74: leaves the domain of 1000 keys after 0 moves",
        ("every: 1 s", "every: 1 s, moves: 3"): "25:98: leaves the domain of 1000 keys after 2",
        ("every: 1 s", "every: 1 us"): "25:86: every: found '1 us', expected at least 1 ms",
        ("to: 200", "to: 2000"): "25:63: beyond the domain",
        ("name: test", "name: test\nclients: {kind: closed, arrival_rate: 1 MHz}"): "2:39: "
        "clients.arrival_rate: does not belong to kind 'closed'",
        ("name: test", "name: test\nclients: {kind: open, arrival_rate: 1 s}"): "2:37: rate",
    }.items(),
)
def test_bad_input_is_told_with_its_place(change: tuple[str, str], expected: str) -> None:
    assert change[0] in GOOD
    document = parse_yaml(GOOD.replace(*change, 1), "w.yaml")
    error = told_by(workload_from_document, document, Path())
    place, message = expected.split(" ", 1)
    assert error.startswith(f"w.yaml:{place} ")
    assert message in error


@pytest.mark.parametrize("exponent", ["0", "-1", ".nan", ".inf", "11", "one"])
def test_bad_zipf_exponents(exponent: str) -> None:
    text = GOOD.replace("share: 2", f"keys: {{distribution: zipf, exponent: {exponent}}}")
    with pytest.raises(InputError, match=r"w\.yaml:20:\d+: .*exponent"):
        workload_from_document(parse_yaml(text, "w.yaml"), Path())


@pytest.mark.parametrize(
    "text", ["- 1", "just text", "name: x", "{name: x, objects: {}, operations: {}}"]
)
def test_files_that_are_no_workload(text: str) -> None:
    with pytest.raises(InputError, match=r"^w\.yaml:1:"):
        workload_from_document(parse_yaml(text, "w.yaml"), Path())


def with_file(name: str) -> str:
    return GOOD.replace("share: 2", f"keys: {{distribution: recorded, file: {name}}}")


@pytest.mark.parametrize("name", ["missing.csv", "../missing.csv", "."])
def test_a_missing_recording_is_told_where_it_is_named(tmp_path: Path, name: str) -> None:
    document = parse_yaml(with_file(name), "w.yaml")
    with pytest.raises(InputError, match=r"w\.yaml:20:\d+: .*keys\.file: cannot be read: "):
        workload_from_document(document, tmp_path)


def test_a_bad_recording_is_told_with_its_own_line(tmp_path: Path) -> None:
    (tmp_path / "keys.csv").write_text("key_from,key_to,count\n0,10,1\n5,10,1\n")
    (tmp_path / "w.yaml").write_text(with_file("keys.csv"))
    assert "keys.csv:3:1: key_from: out of order" in told_by(load_workload, tmp_path / "w.yaml")


def test_a_recording_lies_beside_the_workload(tmp_path: Path) -> None:
    (tmp_path / "keys.csv").write_text("key_from,key_to,count\n0,10,1\n")
    (tmp_path / "w.yaml").write_text(with_file("keys.csv"))
    keys = load_workload(tmp_path / "w.yaml").at(10).operations["lookup"].keys
    assert keys is not None
    assert keys.shares([0, 10]).tolist() == [1.0]


def test_a_bundled_recording_is_found_from_anywhere(tmp_path: Path) -> None:
    text = with_file("lookup-recorded.csv").replace("keys: 1000", "keys: 512_000_000")
    (tmp_path / "w.yaml").write_text(text)
    assert load_workload(tmp_path / "w.yaml").at(10).operations["lookup"].keys is not None


def test_unknown_names_get_a_hint(tmp_path: Path) -> None:
    assert "found 'lookup-zpif', expected 'lookup-zipf'" in told_by(load_workload, "lookup-zpif")
    assert "unknown workload" in told_by(load_workload, "")
    assert "none.yaml" in told_by(load_workload, tmp_path / "none.yaml")


def written(description: WorkloadDescription) -> str:
    return yaml.safe_dump(description.model_dump(mode="json"), allow_unicode=True)


@pytest.mark.parametrize("name", workload_names())
def test_bundled_descriptions_survive_a_round_trip(name: str) -> None:
    description = load_yaml(BUNDLED / f"{name}.yaml").read_as(WorkloadDescription)
    assert parse_yaml(written(description), "w").read_as(WorkloadDescription) == description


counts = st.integers(1, 2**53)
weights = st.floats(1e-6, 1e6)
shares = st.floats(0.0, 1.0, exclude_min=True)
quantity = {
    "time": st.integers(1, 10**9).map("{} us".format),
    "size": st.integers(1, 2**40).map("{} B".format),
    "rate": st.floats(1e-3, 1e3).map("{:.6f} MHz".format).filter(lambda q: float(q[:-4]) > 0),
}
bounds = st.tuples(st.integers(0, 10**9), counts).map(lambda b: {"from": b[0], "to": sum(b)})
key_forms: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.just({"distribution": "uniform"}),
    st.fixed_dictionaries(
        {"distribution": st.just("zipf"), "exponent": st.floats(0.01, 10)},
        optional={"order": st.sampled_from(["scattered", "sorted"])},
    ),
    st.builds(
        lambda form, range_: {**form, **range_},
        st.fixed_dictionaries({"distribution": st.just("hot_range")}, optional={"share": shares}),
        bounds.filter(lambda b: b["to"] <= 2**53),
    ),
    st.builds(
        lambda form, range_: {**form, **range_},
        st.fixed_dictionaries(
            {
                "distribution": st.just("moving_hot_range"),
                "step": st.integers(-(10**9), -1) | st.integers(1, 10**9),
                "every": st.integers(1, 10**6).map("{} ms".format),
            },
            optional={"moves": counts, "first_move": quantity["time"], "share": shares},
        ),
        bounds.filter(lambda b: b["to"] <= 2**53),
    ),
    st.just({"distribution": "recorded", "file": "keys.csv"}),
)
names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,10}", fullmatch=True)
objects = st.one_of(
    st.fixed_dictionaries(
        {"kind": st.just("index"), "keys": counts},
        optional={"prefix_bits": st.integers(1, 16), "value_size": quantity["size"]},
    ),
    st.fixed_dictionaries(
        {"kind": st.just("column"), "entries": counts}, optional={"entry_size": quantity["size"]}
    ),
)
operations = st.one_of(
    st.fixed_dictionaries(
        {"kind": st.sampled_from(["lookup", "upsert"]), "object": names},
        optional={"share": weights, "keys": key_forms},
    ),
    st.fixed_dictionaries(
        {"kind": st.just("scan"), "object": names},
        optional={
            "share": weights,
            "selectivity": st.floats(0, 1),
            "result": st.sampled_from(["sum", "bitmap", "positions"]),
        },
    ),
)
clients = st.one_of(
    st.fixed_dictionaries({"kind": st.just("closed")}, optional={"think_time": quantity["time"]}),
    st.fixed_dictionaries({"kind": st.just("open"), "arrival_rate": quantity["rate"]}),
)
phases = st.fixed_dictionaries(
    {
        "start": quantity["time"],
        "name": names,
        "operations": st.dictionaries(
            names,
            st.fixed_dictionaries({}, optional={"share": weights, "keys": key_forms}),
            min_size=1,
            max_size=3,
        ),
    }
)
workload_files = st.fixed_dictionaries(
    {
        "name": names,
        "objects": st.dictionaries(names, objects, min_size=1, max_size=3),
        "operations": st.dictionaries(names, operations, min_size=1, max_size=3),
    },
    optional={
        "title": st.text(st.characters(exclude_categories=("Cc", "Cf", "Cs")), max_size=20),
        "clients": clients,
        "phases": st.lists(phases, max_size=3),
    },
)


@given(workload_files)
def test_descriptions_survive_a_round_trip(form: dict[str, Any]) -> None:
    description = WorkloadDescription.model_validate(form)
    text = written(description)
    again = parse_yaml(text, "w").read_as(WorkloadDescription)
    assert written(again) == text


@given(workload_files)
def test_forms_make_a_workload_or_one_clear_line(form: dict[str, Any]) -> None:
    document = parse_yaml(yaml.safe_dump(form, allow_unicode=True), "w.yaml")
    made = refusal = None
    try:
        made = workload_from_document(document, Path("nowhere"))
    except InputError as failure:
        refusal = str(failure)
    if made is None:
        assert refusal is not None
        assert refusal.startswith("w.yaml:")
        assert len(refusal.splitlines()) == 1
    else:
        assert made.name == form["name"]
