"""``numatwin scenario list`` and its like: every name, with what it is for."""

from command_line import CommandLine

from numatwin.sim.run.scenario import CATALOGUE as SCENARIOS
from numatwin.sim.run.scenario import load_scenario, scenario_names
from numatwin.workloads import workload_names
from numatwin.workloads.catalogue import CATALOGUE as WORKLOADS


def test_scenarios_with_their_machines(numatwin: CommandLine) -> None:
    rows = numatwin("scenario", "list", "--json").json()["scenarios"]
    assert [row["name"] for row in rows] == list(scenario_names())
    for row in rows:
        scenario = load_scenario(row["name"])
        assert row == {
            "name": scenario.name,
            "title": scenario.title,
            "machine": scenario.machine.name,
        }
    lines = numatwin("scenario", "list").out.splitlines()
    assert lines[0].split() == ["scenario", "what", "machine"]
    assert [line.split()[0] for line in lines[1:]] == list(scenario_names())
    assert [line.split()[-1] for line in lines[1:]] == [row["machine"] for row in rows]


def test_workloads_and_titles(numatwin: CommandLine) -> None:
    rows = numatwin("workload", "list", "--json").json()["workloads"]
    assert all(row.keys() == {"name", "title"} and row["title"] for row in rows)
    names = [row["name"] for row in rows]
    assert set(names) >= set(workload_names())
    lines = numatwin("workload", "list").out.splitlines()[1:]
    assert [line.split()[0] for line in lines if line[0] != " "] == names


def test_policies_by_what_they_control(numatwin: CommandLine) -> None:
    rows = numatwin("policy", "list", "--json").json()["policies"]
    assert all(row.keys() == {"name", "title", "family", "system"} for row in rows)
    assert all(row["title"] for row in rows)
    assert {(row["family"], row["system"]) for row in rows} == {
        ("balancing", "eris"),
        ("placer", "tasks"),
        ("stealing", "tasks"),
        ("cores", "tasks"),
        ("access-path", "tasks"),
        ("operator", "joins"),
    }
    names = [row["name"] for row in rows]
    assert set(names) >= {"none", "ma-1"}
    head, *lines = numatwin("policy", "list").out.splitlines()
    assert head.split() == ["policy", "what", "family", "system"]
    assert [line.split()[0] for line in lines if line[0] != " "] == names


def test_a_start_of_your_own_names_no_schema_that_is_not_there(numatwin: CommandLine) -> None:
    for kind, name, catalogue in (
        ("scenario", "eris-fig13", SCENARIOS),
        ("workload", "lookup-zipf", WORKLOADS),
    ):
        bundled = catalogue.path(name).read_text("utf-8")
        assert bundled.startswith("# yaml-language-server: ")
        assert numatwin(kind, "show", name).out == bundled.partition("\n")[2]
