"""Baseline files: kept whole, compared with what is alike only, wherever files lie."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import told_by
from small_suites import FLOW, KEEPS, PROMPT, write

from numatwin import __version__
from numatwin.sim.run.scenario import Scenario
from numatwin.validate.baseline import (
    Entry,
    baseline_of,
    digests,
    load_baseline,
    save_baseline,
    what_fits,
)
from numatwin.validate.suite import Suite, load_suite


def entry(suite: Suite, name: str) -> Entry:
    (check,) = (one for one in suite.checks if one.name == name)
    scenario = check.scenario
    assert isinstance(scenario, Scenario)
    return Entry(str(check.metric), 0, True, 0.0, (5.0,), digests(scenario))


def baseline(suite: Suite) -> Path:
    save_baseline(
        suite.baseline_path, suite.name, {c.name: entry(suite, c.name) for c in suite.checks}
    )
    return suite.baseline_path


FIGURES = st.floats(0, 1e300, allow_nan=False)


@settings(deadline=None)
@given(
    st.dictionaries(
        st.text(),
        st.builds(
            Entry,
            metric=st.text(),
            seed=st.integers(0, 2**64 - 1),
            exact=st.booleans(),
            warm_up_s=FIGURES,
            values=st.lists(FIGURES, min_size=1).map(tuple),
            conditions=st.dictionaries(st.text(), st.text()),
        ),
        max_size=3,
    )
)
def test_what_is_kept_is_read_again(
    tmp_path_factory: pytest.TempPathFactory, entries: dict[str, Entry]
) -> None:
    path = tmp_path_factory.mktemp("baseline") / "a.json"
    save_baseline(path, "mine", entries)
    assert load_baseline(path) == entries


def refused(path: Path, suite: Suite | None = None) -> str:
    told = told_by(load_baseline, path) if suite is None else told_by(baseline_of, suite, path)
    assert told.startswith(str(path))
    return told


def changed(path: Path, **fields: Any) -> Path:
    raw = json.loads(path.read_text()) | fields
    path.write_text(json.dumps(raw))
    return path


def test_no_file(tmp_path: Path) -> None:
    told = refused(tmp_path / "none.json")
    assert "cannot be read: No such file" in told
    assert "regress SUITE --update" in told
    assert "Is a directory" in refused(tmp_path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", ":1:1: not a baseline: not JSON"),
        ('{"schema": 1,\n ?', ":2:2: not a baseline: not JSON"),
        ("\ud800", "not JSON"),
        ("[" * 100_000, "nested too deeply"),
        ("[]", "found 'no schema', expected schema 1"),
        ('{"schema": true}', "found 'schema True'"),
        ('{"schema": 2}', "found 'schema 2', expected schema 1"),
        ('{"schema": 1}', "not a baseline: version: Field required"),
        ('{"schema": 1, "version": "0", "suite": "a", "checks": []}', "checks"),
        ('{"schema": 1, "version": "0", "suite": "a", "checks": {"b": {}}}', "checks.b.metric"),
    ],
)
def test_no_baseline(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    assert said in refused(path)


@pytest.mark.parametrize("values", ["[]", "[NaN]", "[Infinity]", "[-1.0]", '["1"', "[null]"])
def test_figures_that_are_none(values: str, tmp_path: Path) -> None:
    path = baseline(load_suite(write(tmp_path, FLOW)))
    path.write_text(path.read_text().replace("[\n    5.0\n   ]", values))
    assert values in path.read_text()
    assert "values" in refused(path) or "JSON" in refused(path)


def test_another_version(tmp_path: Path) -> None:
    path = baseline(load_suite(write(tmp_path, FLOW)))
    told = refused(changed(path, version="0.0.9"))
    assert "another version of numatwin, whose figures may be others: found '0.0.9'" in told
    assert __version__ in told


def test_a_check_that_it_does_not_have(tmp_path: Path) -> None:
    path = baseline(load_suite(write(tmp_path, FLOW)))
    told = refused(path, load_suite(write(tmp_path, FLOW, KEEPS)))
    assert "check 'keeps': it has no baseline" in told


def test_another_metric(tmp_path: Path) -> None:
    path = baseline(load_suite(write(tmp_path, FLOW)))
    suite = load_suite(write(tmp_path, FLOW, change=("throughput.lookup", "energy_J")))
    assert "is of metric throughput.lookup, not of energy_J" in refused(path, suite)


OTHERS = [
    (("eris-fig8-amd", "eris-fig8-amd-shared"), "another scenario than 'eris-fig8-amd-shared'"),
    ("    machine: intel-4s-qpi\n", "another machine than 'intel-4s-qpi'"),
    ("    workload: lookup-zipf\n", "another workload than 'lookup-zipf'"),
    ("    settings: {machine.node_types.opteron-6274-die.cores: 4}\n", "another machine"),
    ("    settings: {horizon: 2 s}\n", "another horizon"),
    ("    scale: 0.5\n", "another scale"),
    ("    plane: event\n", "another plane"),
]


@pytest.mark.parametrize(("change", "said"), OTHERS, ids=[said for _, said in OTHERS])
def test_other_conditions(change: str | tuple[str, str], said: str, tmp_path: Path) -> None:
    path = baseline(load_suite(write(tmp_path, FLOW)))
    if isinstance(change, tuple):
        suite = load_suite(write(tmp_path, FLOW, change=change))
    else:
        suite = load_suite(write(tmp_path, FLOW + change))
    told = refused(path, suite)
    assert f"check 'flow': its baseline was made with {said}" in told
    assert "--update" in told
    assert what_fits(suite, path)[0] == {}


def test_a_machine_file_that_was_changed(tmp_path: Path) -> None:
    import numatwin.topologies

    file = Path(numatwin.topologies.__file__).parent / "amd-8n-ht.yaml"
    shutil.copy(file, tmp_path / "amd-8n-ht.yaml")
    text = FLOW + "    machine: ./amd-8n-ht.yaml\n"
    path = baseline(load_suite(write(tmp_path, text)))
    assert baseline_of(load_suite(write(tmp_path, text)), path)
    mine = tmp_path / "amd-8n-ht.yaml"
    mine.write_text(mine.read_text().replace("value: 2.2 GHz", "value: 2.3 GHz"))
    assert "another machine than 'amd-8n-ht'" in refused(path, load_suite(write(tmp_path, text)))


def test_words_about_a_machine_are_of_no_matter(tmp_path: Path) -> None:
    import numatwin.topologies

    file = Path(numatwin.topologies.__file__).parent / "amd-8n-ht.yaml"
    mine = tmp_path / "amd-8n-ht.yaml"
    mine.write_text(file.read_text())
    text = FLOW + "    machine: ./amd-8n-ht.yaml\n"
    path = baseline(load_suite(write(tmp_path, text)))
    words = (
        mine.read_text().replace("title: 4 ×", "title: four of").replace("notes:", "notes:\n  - x")
    )
    words = words.replace("base frequency, turbo not counted", "another source")
    assert words.count("another source") == words.count("four of") == 1
    mine.write_text(f"{words}\nwarnings: [noisy]\n")
    assert baseline_of(load_suite(write(tmp_path, text)), path)


@pytest.mark.parametrize(
    "change", ["    policy: ma-8\n", "    settings: {system.buffer_commands: 64}\n"]
)
def test_policies_and_parameters_may_change(change: str, tmp_path: Path) -> None:
    path = baseline(load_suite(write(tmp_path, FLOW)))
    assert baseline_of(load_suite(write(tmp_path, FLOW + change)), path)


RECORDED = """\
name: mine
objects:
  index: {kind: index, keys: 1000000}
operations:
  lookup:
    kind: lookup
    object: index
    keys: {distribution: recorded, file: keys.csv}
"""


def test_a_suite_may_move_with_its_files(tmp_path: Path) -> None:
    """Keys that were recorded count by what they are: a CI machine has other folders."""
    folders = [tmp_path / name for name in ("here", "there")]
    texts = ["key_from,key_to,count\n0,1000,3\n5000,6000,7\n"] * 2
    suites = []
    for folder, keys in zip(folders, texts, strict=True):
        folder.mkdir()
        (folder / "workload.yaml").write_text(RECORDED)
        (folder / "keys.csv").write_text(keys)
        suites.append(load_suite(write(folder, FLOW + "    workload: ./workload.yaml\n")))
    path = baseline(suites[0])
    assert baseline_of(suites[1], path)
    (folders[1] / "keys.csv").write_text(texts[0].replace(",7", ",8"))
    other = load_suite(str(folders[1] / "mine.yaml"))
    assert "another workload" in refused(path, other)


def test_what_fits_and_what_does_not(tmp_path: Path) -> None:
    suite = load_suite(write(tmp_path, FLOW, PROMPT, KEEPS))
    save_baseline(
        suite.baseline_path, "mine", {name: entry(suite, name) for name in ("flow", "prompt")}
    )
    text = PROMPT.replace("horizon: 2 ms", "horizon: 3 ms")
    now = load_suite(write(tmp_path, FLOW, text, KEEPS))
    entries, misfits = what_fits(now, suite.baseline_path)
    assert list(entries) == ["flow"]
    assert ["another horizon" in str(one) for one in misfits] == [True]
    (tmp_path / "bad.json").write_text("{}")
    entries, misfits = what_fits(now, tmp_path / "bad.json")
    assert (entries, len(misfits)) == ({}, 1)
