"""The search for the stealing threshold, on machines whose answer is known and on a bundled one.

By hand: two nodes of 4 cores, 1 instruction a ns, a value of 8 B and its n-th power 3 n + 1 ns, so
that 4 tasks draw 32 / (3 n + 1) GB/s of their node. Of 4 GB/s that is all for n = 1 and 2, and a
task then has 1 GB/s; with n = 3 it draws 0.8, and stealing begins to pay.
"""

import math
from itertools import pairwise

import pytest

from numatwin.inputs import InputError, parse_yaml
from numatwin.sim.run.scenario import CATALOGUE as SCENARIOS
from numatwin.sim.run.scenario import load_scenario, scenario_names
from numatwin.sim.systems.tasks.facts import TasksFacts
from numatwin.sim.systems.tasks.threshold import GAIN_MIN, PowerPoint, search_threshold
from numatwin.topologies import Machine, build_machine, load_machine, machine_from_document
from numatwin.topologies.schema import Coherence
from numatwin.validate.systems.tasks import WITHOUT_BACKLOG

MACHINE = """\
name: by-hand
node_types:
  plain:
    cores: 4
    clock: 1 GHz
    ipc: 1
    outstanding_misses: 20
    memory: {{size: 8 GiB, bandwidth: {memory}, latency: 100 ns}}
nodes: [{{ids: 0-1, type: plain}}]
link_types: {{wire: {{bandwidth: {link}, latency: 50 ns, data_header: 8 B, request: 8 B}}}}
links: [{{ends: [0, 1], type: wire}}]
"""


def made(memory: str = "4 GB/s", link: str = "16 GB/s") -> Machine:
    """With that much bandwidth."""
    text = MACHINE.format(memory=memory, link=link)
    return machine_from_document(parse_yaml(text, "by-hand.yaml"))


@pytest.mark.parametrize("on", ["flow", "event"])
def test_with_wide_links_it_is_where_memory_ceases_to_be_the_limit(on: str) -> None:
    found = search_threshold(made(), on)
    (crossing,) = found.crossings  # both halves are node 0
    assert crossing.nodes == (0,)
    assert [point.power for point in crossing.points] == [1, 2, 3]
    bound = [math.isclose(p.alone_Bps, 4e9, rel_tol=0.02) for p in crossing.points]
    assert bound == [True, True, False]
    assert found.threshold.high == pytest.approx(1e9, rel=0.02)
    assert found.threshold.low == pytest.approx(0.8e9, rel=0.02)
    assert found.threshold.low < found.threshold.value < found.threshold.high


def test_directories_in_memory_lower_it() -> None:
    """Their updates take time of the controllers' that near readers then lack. Without, requests
    that wait for links still hold entries of home agents."""
    four = load_machine("xeon-4s-ivb")
    coherence = Coherence(protocol="directory")
    without = build_machine(four.description.model_copy(update={"coherence": coherence}))
    found = [search_threshold(one) for one in (four, without)]
    assert found[0].threshold.value < 0.8 * found[1].threshold.value
    for crossing in (*found[0].crossings, *found[1].crossings):
        gains = [point.gain for point in crossing.points]
        assert gains[0] < 0
        assert gains == sorted(gains)
        assert gains[-2] <= GAIN_MIN < gains[-1]


def test_where_no_tasks_wait_workers_with_vectors_take_those_of_others() -> None:
    """Four nodes, vectors on two of them, 0.5 GB/s from each to each. With tasks that wait, a node
    has its 4 GB/s for its own workers, however full the links are: stealing costs nothing. Without,
    any node has a quarter of the tasks, and a full link holds up all: at most 2 GB/s a node with
    vectors, 0.5 GB/s for each of its workers; less, as links are not full all the time."""
    text = MACHINE.format(memory="4 GB/s", link="0.5625 GB/s").replace("ids: 0-1", "ids: 0-3")
    ends = [f"  - {{ends: [{a}, {b}], type: wire}}" for a in range(4) for b in range(a)]
    text = "\n".join([text[: text.rindex("links:")] + "links:", *ends])
    machine = machine_from_document(parse_yaml(text, "by-hand.yaml"))
    waiting = search_threshold(machine, "event").crossings[0]
    assert waiting.points[0].stolen_Bps > 0.98 * 8e9
    mixed = search_threshold(machine, "event", backlog=False).crossings[0]
    assert 0.75 * 4e9 < mixed.points[0].stolen_Bps < 4e9
    assert 0.3e9 < mixed.value_Bps < 0.5e9 < 0.9e9 < waiting.value_Bps


@pytest.mark.parametrize(
    "name", ["xeon-4s-ivb", pytest.param("xeon-8s-ivb", marks=pytest.mark.sweep)]
)
def test_without_backlog_it_is_what_the_published_rows_say(name: str) -> None:
    found = search_threshold(load_machine(name), "event", backlog=False)
    assert found.threshold.value == WITHOUT_BACKLOG[name]


def test_without_backlog_the_flow_plane_is_refused() -> None:
    with pytest.raises(InputError, match="does not simulate which worker takes which task"):
        search_threshold(made(), "flow", backlog=False)


def test_both_planes_find_the_same() -> None:
    """Two threads a core: for each power the same throughput, with stealing and without; and a task
    with more instructions reads no faster."""
    machine = load_machine("xeon-4s-ivb")
    flow, event = (search_threshold(machine, on).crossings[0].points for on in ("flow", "event"))
    for one, other in zip(flow, event, strict=True):
        assert other.alone_Bps == pytest.approx(one.alone_Bps, rel=0.01)
        assert other.stolen_Bps == pytest.approx(one.stolen_Bps, rel=0.01)
    assert all(b.task_Bps < 1.001 * a.task_Bps for a, b in pairwise(event))


def test_it_reads_no_threshold_of_the_machine() -> None:
    machine = load_machine("xeon-4s-ivb")
    bare = build_machine(machine.description.with_facts("tasks", None))
    with_one = search_threshold(machine)
    assert search_threshold(bare).threshold == with_one.threshold
    facts = with_one.description.facts_of("tasks", TasksFacts)
    assert facts is not None
    assert facts.stealing_threshold == with_one.threshold
    assert facts.move_page is not None  # what else the file says stays


def test_gain() -> None:
    assert PowerPoint(1, 1e9, 4e9, 3e9).gain == pytest.approx(-0.25)


@pytest.mark.parametrize(
    ("memory", "link", "message"),
    [
        ("64 GB/s", "16 GB/s", r"pays for all of the tasks, which draw at most 1\.99 GB/s each"),
        ("4 GB/s", "1 MB/s", r"pays for none of the tasks, which draw at least 0\.0879 GB/s each"),
    ],
)
def test_without_a_crossing_it_says_which(memory: str, link: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        search_threshold(made(memory, link))


def test_scenarios_that_steal_by_the_published_threshold_say_so() -> None:
    by_threshold = [
        scenario
        for scenario in map(load_scenario, scenario_names())
        if scenario.policy_names.get("stealing") == "adaptive"
    ]
    assert by_threshold
    for scenario in by_threshold:
        facts = scenario.machine.description.facts_of("tasks", TasksFacts)
        assert facts is not None
        assert facts.stealing_threshold is not None
        assert "published threshold" in SCENARIOS.path(scenario.name).read_text(encoding="utf-8")
