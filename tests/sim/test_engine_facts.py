"""What a machine file has of engines: today's form and the earlier one, errors with their place."""

from pathlib import Path

import pytest

from numatwin.inputs import InputError
from numatwin.sim.run.doubts import doubts_about
from numatwin.sim.run.scenario import load_scenario
from numatwin.sim.systems.commits.facts import CommitFacts
from numatwin.sim.systems.eris.costs import ErisCosts
from numatwin.sim.systems.eris.facts import NATIVE, PUBLISHED, ErisFacts
from numatwin.sim.systems.registry import check_engines, systems
from numatwin.topologies import Machine, load_machine

MEASURED = "zen5-2c"
SMALL = """\
name: small
node_types:
  node:
    cores: 2
    clock: 3 GHz
    memory: {size: 16 GiB, bandwidth: 40 GB/s, latency: 160 ns}
nodes: [{id: 0, type: node}]
"""
ENGINE = """\
engines:
  eris:
    message: {value: 50 ns, range: [40 ns, 60 ns], doubtful: true}
    handed_line: 8 ns
    route:
    - {targets: 1, time: 1 ns}
    - {targets: 8, time: 4 ns}
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "small.yaml"
    path.write_text(text)
    return path


def loaded(folder: Path, text: str, *settings: str) -> Machine:
    """As a scenario reads it."""
    path = written(folder, text)
    return load_scenario("host-lookup", machine=str(path), settings=settings).machine


def test_a_part_in_both_places_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"small\.yaml:15:1: unknown field 'engine'"):
        loaded(tmp_path, SMALL + ENGINE + "engine: {message: 40 ns}\n")


def test_facts_of_an_engine_reach_its_costs(tmp_path: Path) -> None:
    with_engine = ErisCosts(loaded(tmp_path, SMALL + ENGINE))
    assert with_engine.implementation == NATIVE
    assert with_engine.hand_overs.line_s[0, 0] == pytest.approx(50e-9)
    assert with_engine.hand_overs.additive
    assert "uncertain value used: engines.eris.message" in with_engine.warnings
    without = ErisCosts(loaded(tmp_path, SMALL))
    assert without.implementation == PUBLISHED
    assert not without.hand_overs.additive
    # Whose times were measured, the file can say.
    other = ENGINE.replace("  eris:\n", "  eris:\n    implementation: published\n")
    published = ErisCosts(loaded(tmp_path, SMALL + other))
    assert published.implementation == PUBLISHED
    assert published.hand_overs.line_s[0, 0] == pytest.approx(50e-9)
    assert not published.hand_overs.additive


def test_ranges_and_doubts_of_engines_are_seen(tmp_path: Path) -> None:
    machine = loaded(tmp_path, SMALL + ENGINE)
    assert machine.doubtful == ("engines.eris.message",)
    (doubt,) = (one for one in doubts_about(machine) if one.name == "engines.eris.message")
    ends = [next(iter(doubt.at(part).values())) for part in (0.0, 1.0)]
    assert ends == ["40 ns", "60 ns"]


# What is wrong, in place of what; the message, and the text at which it points.
BAD = [
    ("handed_line: 8 ns", "handed_line: 8", "a bare number has no unit", "8\n"),
    ("handed_line: 8 ns", "handed_line: 8 GB", "'GB' is not a unit of time", "8 GB"),
    ("handed_line: 8 ns", "handed_lime: 8 ns", "unknown field 'handed_lime' in engines.eris: "
     "expected 'handed_line'", "handed_lime: 8 ns\n    route"),
    ("time: 4 ns", "time: [4 ns]", "engines.eris.route.1.time", "time: [4"),
    ("targets: 8", "targets: 0", "engines.eris.route.1.targets: found '0'", "0, time: 4"),
    ("targets: 8", "targets: 1", "expected rising sizes", "route:"),
    (ENGINE, "engines: {eris: 5}\n", "engines.eris: found '5', expected a mapping", "5}"),
    ("  eris:", "  eriss:", "unknown engine 'eriss' in engines: expected 'eris'", "eriss"),
    ("  eris:", "  leveldb:", "unknown engine 'leveldb' in engines: expected one of eris, commits",
     "leveldb"),
    ("  eris:", "  commits:", "missing field 'key_draw' in engines.commits", "commits"),
    (ENGINE, "processes:\n  key_draw: 5\n", "processes", "processes"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "message", "token"), BAD)
def test_mistakes_are_told_with_their_place(
    tmp_path: Path, old: str, new: str, message: str, token: str
) -> None:
    text = (SMALL + ENGINE).replace(old, new)
    with pytest.raises(InputError) as failure:
        loaded(tmp_path, text)
    told = str(failure.value)
    assert message in told
    position = text.index(token, len(SMALL))
    line = text.count("\n", 0, position) + 1
    column = position - text.rfind("\n", 0, position)
    assert (failure.value.file, failure.value.line) == (str(tmp_path / "small.yaml"), line), told
    assert failure.value.column == column, told


def test_settings_reach_engines(tmp_path: Path) -> None:
    """Also where the file has none; mistakes name the setting."""
    machine = loaded(tmp_path, SMALL, "machine.engines.eris.message=70 ns")
    assert ErisCosts(machine).hand_overs.line_s[0, 0] == pytest.approx(70e-9)
    machine = loaded(tmp_path, SMALL + ENGINE, "machine.engines.eris.message=70 ns")
    assert ErisCosts(machine).hand_overs.line_s[0, 0] == pytest.approx(70e-9)
    bad = "machine.engines.eris.message=70"
    with pytest.raises(InputError, match=f"--set {bad}: engines.eris.message: a bare number"):
        loaded(tmp_path, SMALL + ENGINE, bad)


def test_each_bundled_machine_has_engines_that_are_known() -> None:
    machine = load_machine(MEASURED)
    known = {system.name for system in systems() if system.facts is not None}
    assert known == {"eris", "commits", "joins", "tasks"}
    assert set(machine.description.engines) == {"eris", "commits"}
    check_engines(machine)
    facts = machine.description.facts_of("eris", ErisFacts)
    assert facts is machine.description.facts_of("eris", ErisFacts)  # read once
    assert machine.description.facts_of("commits", CommitFacts) is not None
