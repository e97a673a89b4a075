"""Scenarios as files: what is bundled, what a file may say, and what comes of it."""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from fresh_processes import printed_alike
from refusals import told_by
from small_scenarios import eris_of

from numatwin.sim.control.policy import NoPolicy
from numatwin.sim.run.real_planes import planes_of
from numatwin.sim.run.scenario import (
    BUNDLED,
    Scenario,
    load_scenario,
    scenario_from_settings,
    scenario_names,
)
from numatwin.sim.systems.eris.balancing import MovingAverage, OneShot
from numatwin.sim.systems.registry import system_of
from numatwin.topologies.catalogue import BUNDLED as MACHINES
from numatwin.workloads.catalogue import BUNDLED as WORKLOADS

MINE = """\
name: mine
machine: amd-8n-ht
workload: eris-moving-range
horizon: 2 s
"""
POLICY = """\
class Mine:
    def __init__(self, gain=1):
        self.gain = gain

    def decide(self, observation):
        return []
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _file(path: str, text: str) -> Path:
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")
    return target


def _refused(*arguments: Any, **options: Any) -> str:
    return told_by(load_scenario, *arguments, **options)


@cache
def _titles() -> list[str]:
    return [load_scenario(name).title for name in scenario_names()]


@pytest.mark.parametrize("name", scenario_names())
def test_loads_and_says_what_it_is(name: str) -> None:
    scenario = load_scenario(name)
    assert scenario.name == name
    assert scenario.title
    assert scenario.source
    assert (BUNDLED / f"{name}.yaml").read_text(encoding="utf-8").startswith("# ")
    assert scenario.plane in planes_of(system_of(scenario.system))
    assert _titles().count(scenario.title) == 1
    # --machine may name another one.
    assert re.search("machine|AMD|Intel|SGI", scenario.title) is None


@pytest.mark.parametrize("name", scenario_names())
def test_made_again_from_its_settings(name: str) -> None:
    """Through JSON, as a record keeps them."""
    fields = {
        "commits": "send_queue",
        "eris": "buffer_commands",
        "tasks": "concurrency",
        "joins": "signal_every",
    }
    field = fields[load_scenario(name).system.kind]
    scenario = load_scenario(name, settings=["seed=7", f"system.{field}=99"])
    again = scenario_from_settings(json.loads(json.dumps(scenario.settings)))
    _assert_same(again, scenario)
    assert (again.seed, getattr(again.system, field)) == (7, 99)


def _state(policy: object) -> tuple[type, dict[str, Any]]:
    return type(policy), vars(policy)


def _assert_same(one: Scenario, other: Scenario) -> None:
    assert one.settings == other.settings
    assert one.hash == other.hash
    assert one.machine.description == other.machine.description
    assert one.workload.description == other.workload.description
    assert one.system == other.system
    assert [_state(chosen.make()) for chosen in one.policies.values()] == [
        _state(chosen.make()) for chosen in other.policies.values()
    ]


def test_the_experiments_of_the_paper() -> None:
    """What eris.md says of each: machine, AEUs, keys or entries, horizon, policy."""
    facts = {
        name: (
            scenario.machine.name,
            len(eris_of(scenario).aeu_nodes(scenario.machine)),
            next(iter(scenario.workload.objects.values())).keys
            or next(iter(scenario.workload.objects.values())).entries,
            scenario.horizon_s,
            scenario.policy_name,
        )
        for name in ("eris-fig1", "eris-fig8-intel", "eris-fig8-amd", "eris-fig9", "eris-fig13")
        for scenario in [load_scenario(name)]
    }
    assert facts == {
        "eris-fig1": ("sgi-uv2000-64n", 512, 10**9, 1.0, "none"),
        "eris-fig8-intel": ("intel-4s-qpi", 80, 10**9, 1.0, "none"),
        "eris-fig8-amd": ("amd-8n-ht", 64, 10**9, 1.0, "none"),
        "eris-fig9": ("sgi-uv2000-64n", 61 * 8, 8 * 10**9, 1.0, "none"),
        "eris-fig13": ("amd-8n-ht", 64, 512 * 10**6, 110.0, "ma-8"),
    }


@pytest.mark.parametrize(
    ("baseline", "of", "placement"),
    [
        ("eris-fig8-intel-shared", "eris-fig8-intel", "interleaved"),
        ("eris-fig8-amd-shared", "eris-fig8-amd", "interleaved"),
        ("eris-fig8-amd-upsert-shared", "eris-fig8-amd-upsert", "interleaved"),
        ("eris-fig9-interleaved", "eris-fig9", "interleaved"),
        ("eris-fig9-single-ram", "eris-fig9", "single-ram"),
        ("eris-fig11-shared", "eris-fig11", "interleaved"),
    ],
)
def test_a_baseline_differs_by_its_placement_alone(baseline: str, of: str, placement: str) -> None:
    base, eris = dict(load_scenario(baseline).settings), dict(load_scenario(of).settings)
    assert eris["system"]["placement"] == "partitioned"
    assert base["system"] == eris["system"] | {"placement": placement}
    for part in ("name", "title", "system"):
        del base[part], eris[part]
    assert base == eris


def test_defaults(here: Path) -> None:
    scenario = load_scenario(_file("mine.yaml", MINE))
    assert (scenario.name, scenario.title, scenario.source) == ("mine", "", None)
    assert scenario.horizon_s == 2.0
    assert scenario.seed == 0
    assert scenario.period_s == 0.5
    assert scenario.policy_name == "none"
    assert scenario.policies["balancing"].make() == NoPolicy()
    system = eris_of(scenario)
    assert (system.placement, system.buffer_commands) == ("partitioned", 128)
    assert system.command_size.value == 16.0


def test_a_balancer_with_its_settings(here: Path) -> None:
    text = MINE + "policies: {balancing: {policy: ma-3, threshold: 0.25, period: 50 ms}}\n"
    scenario = load_scenario(_file("mine.yaml", text))
    assert scenario.policy_name == "ma-3"
    assert scenario.policies["balancing"].make() == MovingAverage(0.25, 3)
    assert scenario.period_s == 0.05
    other = load_scenario("mine.yaml", policy="one-shot")  # period and threshold stay
    assert (other.policy_name, other.period_s) == ("one-shot", 0.05)
    assert other.policies["balancing"].make() == OneShot(0.25)


def test_paths_are_relative_to_their_file_or_to_the_current_folder(here: Path) -> None:
    """In a scenario to the scenario, in a workload to the workload, when typed to where one is."""
    machine = (MACHINES / "amd-8n-ht.yaml").read_text(encoding="utf-8")
    _file("a/machines/m.yaml", machine.replace("name: amd-8n-ht", "name: from-a"))
    _file("m.yaml", machine.replace("name: amd-8n-ht", "name: from-here"))
    workload = (WORKLOADS / "lookup-recorded.yaml").read_text(encoding="utf-8")
    _file("a/loads/w.yaml", workload.replace("lookup-recorded.csv", "mine.csv"))
    _file("a/loads/mine.csv", "key_from,key_to,count\n0,512000000,1\n")
    _file("a/p.py", POLICY)
    _file(
        "a/s.yaml",
        "name: s\nmachine: machines/m.yaml\nworkload: loads/w.yaml\nhorizon: 1 s\n"
        "policies: {balancing: {file: p.py, class: Mine, options: {gain: 3}}}\n",
    )
    _file("b/t.yaml", "name: t\nextends: ../a/s.yaml\nhorizon: 3 s\n")
    for path in ("a/s.yaml", "b/t.yaml", here / "b" / "t.yaml"):
        scenario = load_scenario(path)
        assert scenario.machine.name == "from-a"
        assert scenario.policy_name == "Mine"
        assert vars(scenario.policies["balancing"].make()) == {"gain": 3}
    _file("p.py", POLICY.replace("class Mine", "class Here"))
    other = load_scenario("b/t.yaml", machine="./m.yaml", policy="p.py:Here")
    assert other.machine.name == "from-here"
    assert (other.policy_name, vars(other.policies["balancing"].make())) == ("Here", {"gain": 1})
    assert load_scenario("b/t.yaml", settings=["machine=./m.yaml"]).machine.name == "from-here"


def test_settings_lead_to_the_same_files_from_anywhere(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    test_paths_are_relative_to_their_file_or_to_the_current_folder(here)
    scenario = load_scenario("b/t.yaml")
    elsewhere = here / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    again = scenario_from_settings(json.loads(json.dumps(scenario.settings)))
    assert again.settings == scenario.settings
    assert again.hash == scenario.hash
    assert vars(again.policies["balancing"].make()) == {"gain": 3}


def test_the_hash_is_of_what_is_said_and_not_of_where(here: Path) -> None:
    test_paths_are_relative_to_their_file_or_to_the_current_folder(here)
    first = load_scenario("a/s.yaml").hash
    assert len(first) == 64
    (here / "a").rename(here / "moved")
    commented = _file("moved/s.yaml", "# a comment\n" + Path("moved/s.yaml").read_text())
    assert load_scenario(commented).hash == first
    histogram = Path("moved/loads/mine.csv")
    before = histogram.read_text()
    histogram.write_text("key_from,key_to,count\n0,256000000,1\n")
    assert load_scenario(commented).hash != first
    histogram.write_text(before)
    assert load_scenario(commented).hash == first
    _file("moved/p.py", POLICY + "\n# changed\n")
    assert load_scenario(commented).hash != first


@pytest.mark.parametrize(
    "setting",
    [
        "seed=1",
        "horizon=111 s",
        "system.nodes=7",
        "machine.link_types.ht-full.bandwidth=13 GB/s",
        "workload.objects.index.keys=512_000_001",
        "policies.balancing.threshold=0.11",
        "policies.balancing.period=499 ms",
    ],
)
def test_every_setting_changes_the_hash(setting: str) -> None:
    assert load_scenario("eris-fig13", settings=[setting]).hash != load_scenario("eris-fig13").hash


def test_the_hash_is_the_same_in_every_process() -> None:
    code = (
        "from numatwin.sim.run.scenario import load_scenario; "
        "print(load_scenario('eris-fig13').hash)"
    )
    assert printed_alike(code).strip() == load_scenario("eris-fig13").hash


def test_extends_mapping_by_mapping(here: Path) -> None:
    """Lists and single values are replaced as a whole; the nearer file wins."""
    _file(
        "a.yaml",
        MINE.replace("mine", "a")
        + "title: A\nnotes: [one, two]\nsystem: {nodes: [0, 1], buffer_commands: 64}\n",
    )
    _file("b.yaml", "name: b\nextends: ./a.yaml\nsystem: {nodes: [5]}\nnotes: [three]\n")
    _file("c.yaml", "name: c\nextends: b.yaml\nsystem: {threads: 2}\nhorizon: 9 s\n")
    scenario = load_scenario("c.yaml")
    assert (scenario.name, scenario.title, scenario.horizon_s) == ("c", "A", 9.0)
    assert scenario.settings["notes"] == ["three"]
    system = eris_of(scenario)
    assert (system.nodes, system.buffer_commands, system.threads) == ((5,), 64, 2)


def test_extends_a_bundled_scenario(here: Path) -> None:
    _file("mine.yaml", "name: mine\nextends: eris-fig9-single-ram\nsystem: {home: 3}\n")
    scenario = load_scenario("mine.yaml")
    assert eris_of(scenario).home_position(scenario.machine) == 3
    assert eris_of(scenario).nodes == 61


def test_a_machine_without_cores_is_what_is_at_fault(here: Path) -> None:
    """Such as one from a tool that only measures memory; not the file of the scenario."""
    _file(
        "odd.yaml",
        "name: odd\nnode_types: {a: {memory: {size: 8 GiB}}}\nnodes: [{id: 0, type: a}]\n",
    )
    assert _refused("eris-fig12-scan", machine="./odd.yaml") == (
        "--machine ./odd.yaml: no node of machine 'odd' has cores, so nothing can run there: "
        "expected 'cores' in a node type of its file"
    )


def test_errors_name_the_file_that_says_so(here: Path) -> None:
    _file("a.yaml", MINE + "system:\n  nodes: 9\n  threads: some\n")
    _file("b.yaml", "name: b\nextends: a.yaml\nsystem:\n\n\n  threads: 3\n")
    assert _refused("b.yaml").startswith("a.yaml:6:10: system.nodes: machine 'amd-8n-ht' has 8")
    _file("b.yaml", "name: b\nextends: a.yaml\nsystem: {nodes: 4}\n")
    assert _refused("b.yaml").startswith("a.yaml:7:12: system.threads: found 'some', expected h")
    _file("b.yaml", "name: b\nextends: a.yaml\nsystem: {nodes: 4, threads: 3,\n  foo: 1}\n")
    assert _refused("b.yaml").startswith("b.yaml:4:3: unknown field 'foo' in system")


# Policies, as the balancer's, and the message.
BAD_POLICIES = {
    "{policy: ma8}": ":5:32: unknown policy: found 'ma8', expected 'ma-8'",
    "{policy: ma-8, threshold: -1}": ":5:49: policies.balancing.threshold: ",
    "{policy: ma-8, threshold: .nan}": "policies.balancing.threshold: ",
    "{policy: ma-8, period: 1 us}": "period: found '1 us', expected at least 1 ms",
    "{policy: ma-8, k: 3}": "unknown field 'k' in policies.balancing",
    "{policy: ma-8, options: {k: 3}}": "class and options belong to a file: expected file",
    "{policy: ma-8, file: p.py, class: Mine}": "expected either policy or file, not both",
    "{policy: p.py:Mine, class: Other}": "expected the class in policy or in class, not both",
    "{file: p.py}": "expected class, the name of the policy in the file",
    "{class: Mine}": "class and options belong to a file",
    "{file: p.py, class: Mine, threshold: 1}": "threshold belongs to bundled policies: exp",
    "{file: q.py, class: Mine}": "q.py: cannot be read: No such file",
    "{file: p.py, class: Min}": "p.py: no such class: found 'Min', expected 'Mine'",
    "{file: p.py, class: Mine, options: {gian: 1}}": "p.py:5: "
    "policy Mine raised TypeError: Mine.__init__() got an unexpected keyword",
    "{file: p.py, class: Mine, options: [1]}": "policies.balancing.options: ",
}.items()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("extends: [a]\n", ":1:1: extends: expected the name or path of a scenario"),
        ("extends: eris-fig31\n", ":1:10: unknown scenario: found 'eris-fig31', expected 'eris-fi"),
        ("extends: mine.yaml\n", "mine.yaml:1:10: extends too many: expected at most 16, and no"),
        ("extends: other.yaml\n", "mine.yaml:1:10: other.yaml: cannot be read: No such file"),
        (MINE + "engine: no.yaml\n", "mine.yaml:5:9: no.yaml: cannot be read: No such file"),
        (
            MINE + "policies: {balancing: 'no.py:P'}\n",
            "mine.yaml:5:23: no.py: cannot be read: No such file",
        ),
        ("- 1\n", "mine.yaml:1:1: file: expected a mapping"),
        ("just text\n", "mine.yaml:1:1: file: found 'just text', expected a mapping"),
        (MINE.replace("machine: amd-8n-ht\n", ""), "missing field 'machine'"),
        (MINE.replace("2 s", "0 s"), ":4:10: horizon: found '0 s', expected a time above 0"),
        (MINE.replace("2 s", "-1 s"), ":4:10: horizon: found '-1 s', expected a time above 0"),
        (MINE.replace("2 s", "2"), "horizon: a bare number has no unit"),
        (MINE.replace("2 s", "2 GB"), "horizon: 'GB' is not a unit of time"),
        (MINE.replace("amd-8n-ht", "amd-8n-th"), ":2:10: unknown machine: found 'amd-8n-th', exp"),
        (MINE.replace("amd-8n-ht", "no.yaml"), "no.yaml: cannot be read"),
        (MINE.replace("amd-8n-ht", "3"), ":2:10: machine: "),
        (MINE.replace("moving-range", "moving"), ":3:11: unknown workload: found 'eris-moving'"),
        (MINE + "sytem: {}\n", ":5:1: unknown field 'sytem': expected 'system'"),
        (MINE + "seed: 1.5\n", ":5:7: seed: "),
        (MINE + "scale: 1.5\n", ":5:8: scale: "),
        (MINE + "plane: paper\n", ":5:8: unknown plane: found 'paper', expected flow"),
        (MINE + "policies: ma-8\n", ":5:11: policies: expected a mapping"),
        (MINE + "policies: {balancing: [ma-8]}\n", ":5:12: policies.balancing: "),
        (
            MINE + "policies: {balancing: p.py}\n",
            ":5:23: policies.balancing: found 'p.py', expected FILE.py:CLASS",
        ),
        (MINE + "policies: {balancin: {}}\n", "unknown kind of policy 'balancin': expec"),
        (
            MINE + "system: {kind: gru}\n",
            ":5:16: system: unknown kind: found 'gru', expected one of 'eris', 'commits'",
        ),
        (MINE + "system: {nodes: [0, 0]}\n", "system.nodes: a node id is listed twice"),
        (MINE + "system: {nodes: []}\n", "system.nodes: expected at least one node id"),
        (MINE + "system: {nodes: [0, 8]}\n", ":5:21: system.nodes.1: node 8 of machine 'amd-8n-h"),
        (MINE + "system: {nodes: true}\n", "system.nodes: found 'True', expected how many nodes"),
        (MINE + "system: {threads: 9}\n", "threads: node 0 of machine 'amd-8n-ht' has 8 hardware"),
        (MINE + "system: {home: 1}\n", "system: placement partitioned has no home: expected sin"),
        (
            MINE + "system: {placement: single-ram, home: 8}\n",
            ":5:39: system.home: node 8 of machine 'amd-8n-ht' does not exist",
        ),
        (MINE + "system: {batch: 0}\n", "system.batch: "),
        *((MINE + f"policies: {{balancing: {of}}}\n", message) for of, message in BAD_POLICIES),
    ],
)
def test_a_file_that_will_not_do(here: Path, text: str, message: str) -> None:
    _file("p.py", POLICY)
    _file("mine.yaml", text)
    error = _refused("mine.yaml")
    assert message in error
    assert "\n" not in error


def test_options_reach_the_users_policy_as_written(here: Path) -> None:
    _file("p.py", POLICY)
    spec = "{file: p.py, class: Mine, options: {gain: {a: null, b: [1.5, x]}}}"
    _file("mine.yaml", MINE + f"policies: {{balancing: {spec}}}\n")
    scenario = load_scenario("mine.yaml")
    assert vars(scenario.policies["balancing"].make()) == {"gain": {"a": None, "b": [1.5, "x"]}}
    again = scenario_from_settings(json.loads(json.dumps(scenario.settings)))
    assert vars(again.policies["balancing"].make()) == vars(scenario.policies["balancing"].make())


def test_a_users_policy_can_be_set_aside(here: Path) -> None:
    _file("p.py", POLICY)
    spec = "{file: p.py, class: Mine, options: {gain: 2}, period: 1 s}"
    _file("mine.yaml", MINE + f"policies: {{balancing: {spec}}}\n")
    scenario = load_scenario("mine.yaml", policy="one-shot")
    assert (scenario.policy_name, scenario.period_s) == ("one-shot", 1.0)
    assert scenario.policies["balancing"].make() == OneShot()


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("ma8", "--policy ma8: unknown policy: found 'ma8', expected 'ma-8'"),
        ("p.py", "--policy p.py: no policy class: expected FILE.py:CLASS"),
        ("p.py:", "--policy p.py:: no policy class: expected FILE.py:CLASS"),
        ("p.py:a b", "--policy p.py:a b: no policy class: expected FILE.py:CLASS"),
        ("no.py:Mine", "no.py: cannot be read: No such file"),
        ("p.py:Mien", "p.py: no such class: found 'Mien', expected 'Mine'"),
    ],
)
def test_a_policy_option_that_will_not_do(here: Path, policy: str, message: str) -> None:
    _file("p.py", POLICY)
    assert _refused("eris-fig13", policy=policy).startswith(message)


def test_threads_and_nodes_of_the_aeus() -> None:
    """Two hardware threads per core on the Intel machine: 20 per node, 10 cores."""

    def counts(*settings: str) -> dict[int, int]:
        scenario = load_scenario("eris-fig8-intel", settings=settings)
        nodes = eris_of(scenario).aeu_nodes(scenario.machine).tolist()
        assert nodes == sorted(nodes)
        return {node: nodes.count(node) for node in nodes}

    assert counts() == {0: 20, 1: 20, 2: 20, 3: 20}
    assert counts("system.threads=cores") == {0: 10, 1: 10, 2: 10, 3: 10}
    assert counts("system.threads=7", "system.nodes=2") == {0: 7, 1: 7}
    assert counts("system.nodes=[3, 1]") == {1: 20, 3: 20}


def test_nodes_without_cores_or_memory(here: Path) -> None:
    """Node 1 has memory alone, node 4 cores alone; ids are not positions."""
    machine = """
      name: odd
      node_types:
        memory: {cores: 0, memory: {size: 1 GiB}}
        cores: {cores: 2, memory: {size: 0 B}}
        both: {cores: 3, memory: {size: 1 GiB}}
      nodes: [{id: 1, type: memory}, {id: 4, type: cores}, {id: 7, type: both}]
"""
    text = MINE.replace(" amd-8n-ht\n", machine)
    _file("mine.yaml", text)

    def load(*settings: str) -> Scenario:
        return load_scenario("mine.yaml", settings=settings)

    scenario = load("system.placement=single-ram")
    assert eris_of(scenario).aeu_nodes(scenario.machine).tolist() == [1, 1, 2, 2, 2]
    assert eris_of(scenario).home_position(scenario.machine) == 2
    first = load("system.nodes=1")
    assert eris_of(first).aeu_nodes(first.machine).tolist() == [1, 1]
    far = load("system.placement=single-ram", "system.home=1", "system.nodes=[4]")
    assert eris_of(far).home_position(far.machine) == 0
    for settings, message in (
        (["system.nodes=3"], "machine 'odd' has 2 nodes with cores: expected at most 2"),
        (["system.nodes=[1]"], "system.nodes.0: node 1 of machine 'odd' has no cores"),
        (
            ["system.placement=single-ram", "system.home=4"],
            "system.home: node 4 of machine 'odd' has no memory",
        ),
        (
            ["system.placement=single-ram", "system.nodes=1"],
            "system.home: none of the nodes has memory: expected a home",
        ),
        (
            ["machine.node_types.cores.cores=0", "machine.node_types.both.cores=0"],
            "no node of machine 'odd' has cores",
        ),
    ):
        assert message in _refused("mine.yaml", settings=settings)
