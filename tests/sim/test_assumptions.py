"""What a run assumed is listed with its source, and changing it changes a prediction."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from known import known

from numatwin import Scenario
from numatwin.inputs import parse_yaml
from numatwin.sim.machine import defaults
from numatwin.sim.machine.assumptions import Assumed, Assumption
from numatwin.sim.run.assumptions import assumptions_in, varied
from numatwin.sim.run.record import Record, load_record
from numatwin.sim.run.runner import run_scenario
from numatwin.sim.run.scenario import load_scenario
from numatwin.sim.run.what_if import Predictor, costs_of, first_moment
from numatwin.sim.systems.descriptor import Default
from numatwin.sim.systems.registry import systems
from numatwin.topologies import MachineDescription, build_machine

# Nothing but what a machine file must say.
BARE = """\
name: bare
node_types:
  node: {cores: 4, memory: {size: 64 GiB}}
nodes: [{ids: 0-1, type: node}]
link_types: {link: {bandwidth: 4 GB/s}}
links: [{ends: [0, 1], type: link}]
"""
# So slow a memory and so fast links that these do not hide each other; no latency of the links.
PARTLY = """\
name: partly
node_types:
  node:
    cores: 4
    caches: [{level: 2, size: 1 MiB}, {level: 3, size: 8 MiB, shared_by_cores: 4}]
    outstanding_misses: 8
    memory: {size: 64 GiB, bandwidth: 3 GB/s, latency: 80 ns}
    energy: {core_active: 5 W, core_idle: 1 W, memory: 20 pJ/bit}
nodes: [{ids: 0-1, type: node}]
link_types: {link: {bandwidth: 1 GB/s}}
links: [{ends: [0, 1], type: link}]
"""
ROOMY = (
    PARTLY.replace("bandwidth: 3 GB/s, ", "bandwidth: 90 GB/s, ")
    .replace("1 GB/s", "90 GB/s")
    .replace("misses: 8", "misses: 20")
)
FEW_MISSES = ROOMY.replace("misses: 20", "misses: 8")
ZIPF = "workload.operations.lookup.keys={distribution: zipf, exponent: 0.99, order: scattered}"
SMALL = ("workload.objects.index.keys=30000",)
# (machine, scenario, settings): together they show each assumption at work.
FLOWS = (
    (BARE, "eris-fig8-amd", ()),
    (BARE, "eris-fig8-amd-shared", ()),
    (BARE, "eris-fig12-scan", ("workload.objects.column.entries=100000000",)),
    (PARTLY, "eris-fig8-amd-upsert", ()),
    (PARTLY, "eris-fig8-amd-shared", ()),
    (PARTLY, "eris-fig8-amd-upsert-shared", ()),
    (ROOMY, "eris-fig8-amd", ()),
    (FEW_MISSES, "eris-fig5", ()),
    (ROOMY, "eris-fig8-amd", SMALL),
    (ROOMY, "eris-fig8-amd-upsert", SMALL),
    (ROOMY, "eris-fig8-amd-upsert-shared", ("workload.objects.index.keys=30000",)),
    (ROOMY, "eris-fig5-raw", ("system.buffer_commands=2",)),
    (ROOMY, "eris-fig8-amd", (*SMALL, "workload.clients.think_time=1 us")),
    (ROOMY, "eris-fig8-amd", (*SMALL, ZIPF)),
)
COMMITS = ("nam-fig6-rsi", "nam-rsi-zipf")


@cache
def scenario_of(machine: str, name: str, settings: tuple[str, ...]) -> Scenario:
    loaded = load_scenario(name, settings=settings)
    description = parse_yaml(machine, "machine.yaml").read_as(MachineDescription)
    system = loaded.system.model_copy(update={"nodes": None, "threads": "cores"})
    system.model_fields_set.discard("nodes")
    return replace(loaded, machine=build_machine(description), system=system)


def assumed(scenario: Scenario) -> tuple[Assumption, ...]:
    return assumptions_in(scenario, first_moment(scenario).costs)


def flows() -> Iterator[Scenario]:
    for case in FLOWS:
        yield scenario_of(*case)
    yield load_scenario("eris-fig13", policy="ma-8")


@cache
def effects() -> dict[str, float]:
    return effects_in(flows())


def effects_in(scenarios: Iterator[Scenario]) -> dict[str, float]:
    """The largest change that the variation of each assumption makes, over all these scenarios."""
    found: dict[str, float] = {}
    for scenario in scenarios:
        predictor = Predictor(scenario)
        for one in assumed(scenario):
            largest = found.setdefault(one.name, 0.0)
            for variant in (one.low, one.high):
                if variant is None:
                    continue
                other = predictor(varied(scenario, variant))
                pairs = [
                    (sum(other.throughput.values()), sum(predictor.own.throughput.values())),
                    (other.power_W or 1.0, predictor.own.power_W or 1.0),
                ]
                largest = max(largest, *(abs(now / own - 1.0) for now, own in pairs))
            found[one.name] = largest
    return found


def test_all_numbers_of_the_cost_model_are_listed() -> None:
    """Each that stands in for a fact is an Assumed, and shows in a run that has not the fact."""
    numbers = {
        name: value for name, value in vars(defaults).items() if isinstance(value, (int, float))
    }
    assert len(numbers) >= 8
    mapped = (
        load_scenario(
            "host-queries", settings=["system.intermediates=materialised", f"system.pages={pages}"]
        )
        for pages in ("small", "huge")
    )
    of_kernel = {name: change for name, change in effects_in(mapped).items() if change > 0}
    for name, value in numbers.items():
        assert isinstance(value, Assumed), name
        assert value.source, name
        assert value.name in (of_kernel if value.place[0] == "kernel" else effects()), name
    curve = "rise of latency under load"
    assert curve in effects()


def test_no_number_is_assumed_elsewhere() -> None:
    from numatwin import sim

    for path in Path(str(sim.__file__)).parent.rglob("*.py"):
        if path.name != "defaults.py":
            text = path.read_text(encoding="utf-8")
            assert not any(line.startswith(("ASSUMED", "TYPICAL")) for line in text.splitlines())


# What only balancing does: after the first moments.
LATER = {"instructions of flatten_key", "instructions of rebuild_key", "instructions of link_level"}
# What decides only for values that are larger than those of all bundled workloads.
LARGE_VALUES = {"inline values"}
# What no setting states.
UNSTATED = {"power of cores and memory", "links"}


def test_each_variation_is_real() -> None:
    idle = {name for name, change in effects().items() if change < 1e-9}
    assert idle - LATER - LARGE_VALUES - UNSTATED == set()


def test_inline_values_decide_for_large_values() -> None:
    large = ["workload.objects.index.value_size=64 B", "workload.objects.index.keys=10000000"]
    own, inline = (
        Predictor(load_scenario("eris-fig8-amd", settings=[*large, *more])).own.throughput["lookup"]
        for more in ([], ["system.inline_values=64 B"])
    )
    assert abs(inline / own - 1.0) > 0.01


@pytest.mark.parametrize("name", sorted(LATER - {"instructions of link_level"}))
def test_what_balancing_takes(name: str) -> None:
    """Copies take longer: the whole run does less."""
    scenario = load_scenario("eris-fig13", policy="ma-8", settings=["horizon=30 s"])
    one = next(one for one in assumed(scenario) if one.name == name)
    slower = run_scenario(varied(scenario, known(one.high))).throughput["lookup"]
    assert slower < run_scenario(scenario).throughput["lookup"]


@pytest.mark.parametrize("case", FLOWS)
def test_stating_what_was_assumed_changes_nothing(case: Any) -> None:
    """A number of the cost model means what a machine file would state by it."""
    scenario = scenario_of(*case)
    own = Predictor(scenario).own
    costs = first_moment(scenario).costs
    for number, values in costs.notes.values():
        for kind, value in values.items():
            place = ("machine", number.part, kind, *number.place)
            from numatwin.sim.machine.assumptions import Variant, written

            stated = varied(scenario, Variant("", {place: written(value, number.unit)}))
            again = Predictor(stated).own.throughput
            assert again == pytest.approx(own.throughput, rel=1e-6), number.name
            assert number.name not in {one.name for one in assumed(stated) if len(values) == 1}, (
                number.name
            )


def test_defaults_of_specs_are_listed_until_stated() -> None:
    marked = {
        (system.name, name)
        for system in systems()
        for name, field in system.spec.model_fields.items()
        if any(isinstance(mark, Default) for mark in field.metadata)
    }
    assert {name for kind, name in marked if kind == "eris"} >= {"page_size", "command_size"}
    scenario = load_scenario("eris-fig8-amd")
    before = {one.name for one in scenario.system.assumptions(scenario.machine)}
    assert "page size" in before
    stated = load_scenario("eris-fig8-amd", settings=["system.page_size=2 MiB"])
    assert {one.name for one in stated.system.assumptions(stated.machine)} == before - {"page size"}


def test_groups_of_defaults_are_listed_one_by_one() -> None:
    """Tasks: what an entry takes in each loop of a column store."""
    scenario = load_scenario("hana-fig10")
    names = [one.name for one in scenario.system.assumptions(scenario.machine)]
    assert names[:3] == ["switch", "wake", "task"]
    assert "instructions of scan_row" in names
    stated = load_scenario("hana-fig10", settings=["system.instructions.scan_row=3.0"])
    left = [one.name for one in stated.system.assumptions(stated.machine)]
    assert left == [name for name in names if name != "instructions of scan_row"]
    row = next(
        one
        for one in scenario.system.assumptions(scenario.machine)
        if one.name.endswith("scan_row")
    )
    fewer = varied(scenario, known(row.low)).system.model_dump()["instructions"]
    assert fewer["scan_row"] == pytest.approx(2.25)


@pytest.mark.parametrize("name", COMMITS)
def test_commits(name: str) -> None:
    """The flow plane of transactions tells what each decides."""
    scenario = load_scenario(name, settings=["horizon=2 ms", "system.timestamp_bits=512"])
    predictor = Predictor(scenario)
    assert predictor.plane == "flow"
    changed = {
        one.name: any(
            predictor(varied(scenario, variant)).throughput != predictor.own.throughput
            for variant in (one.low, one.high)
            if variant is not None
        )
        for one in assumptions_in(scenario, None)
    }
    assert {"message header", "copy bandwidth", "compute spread"} <= changed.keys()
    assert all(changed[one] for one in ("copy bandwidth", "compute spread"))


def test_doubtful_facts_are_assumptions() -> None:
    text = PARTLY.replace(
        "latency: 80 ns",
        "latency: {value: 80 ns, range: [60 ns, 99 ns], source: a guess, doubtful: true}",
    )
    scenario = scenario_of(text, "eris-fig8-amd", ())
    (one,) = (one for one in assumed(scenario) if one.name == "node_types.node.memory.latency")
    assert (one.value, one.unit, one.source) == (80.0, "ns", "a guess")
    assert one.settings == ("machine.node_types.node.memory.latency",)
    assert one.ranged
    assert one.low is not None
    assert one.high is not None
    # Its range is stated, so that counts: 99 ns, and not a tenth more.
    assert (one.low.value, one.high.value) == (60.0, 99.0)
    assert varied(scenario, one.high).machine.nodes[0].memory_latency_ns == pytest.approx(99.0)


def test_a_doubtful_fact_without_a_range_is_varied_by_a_tenth() -> None:
    text = PARTLY.replace("latency: 80 ns", "latency: {value: 80 ns, doubtful: true}")
    scenario = scenario_of(text, "eris-fig8-amd", ())
    (one,) = (one for one in assumed(scenario) if one.name == "node_types.node.memory.latency")
    assert not one.ranged
    assert one.low is not None
    assert (one.low.value, known(one.high).value) == pytest.approx((72.0, 88.0))


def test_a_doubtful_protocol_is_varied() -> None:
    """Firmware chooses it: over both protocols, not by a tenth."""
    for text, ranged in (
        (PARTLY, False),
        (PARTLY + "coherence: {protocol: directory, doubtful: true}\n", True),
    ):
        found = assumed(scenario_of(text, "eris-fig8-amd", ()))
        (one,) = (one for one in found if one.name == "coherence")
        assert one.ranged == ranged


def test_the_record_keeps_them(tmp_path: Path) -> None:
    scenario = load_scenario("eris-fig8-intel")
    plain, record = run_scenario(scenario), run_scenario(scenario, effects=True)
    assert [one["name"] for one in plain.assumptions] == [one["name"] for one in record.assumptions]
    assert plain.throughput == record.throughput
    page = next(one for one in record.assumptions if one["name"] == "page size")
    assert page["settings"] == ["system.page_size"]
    assert page["low"]["throughput"] < -0.05
    by_hand = load_scenario("eris-fig8-intel", settings=["system.page_size=4 KiB"])
    change = run_scenario(by_hand).throughput["lookup"] / record.throughput["lookup"] - 1.0
    assert page["low"]["throughput"] == pytest.approx(change, abs=1e-6)
    assert "throughput" not in plain.assumptions[0]["low"]
    assert load_record(record.save(tmp_path / "r")).assumptions == record.assumptions


@pytest.mark.parametrize("plane", ["event", "reference"])
def test_other_planes_list_the_same(plane: str) -> None:
    settings = ["horizon=50 us", "system.threads=1", "system.nodes=4", "statistics.warm_up=0 s"]
    settings += ["statistics.replications=1", "system.buffer_commands=16"]

    def names(plane: str) -> list[str]:
        scenario = load_scenario("eris-fig8-amd", plane=plane, settings=settings)
        record: Record = run_scenario(scenario)
        return [one["name"] for one in record.assumptions]

    assert names(plane) == names("flow")


def test_a_tenth_more_may_be_beyond_the_range() -> None:
    """A tenth more of -0.85 is no ``write_turnaround``: only the other end has an effect."""
    text = PARTLY.replace(
        "latency: 80 ns", "latency: 80 ns, write_turnaround: {value: -0.85, doubtful: true}"
    )
    scenario = scenario_of(text, "eris-fig8-amd", ())
    found = run_scenario(scenario, effects=True).assumptions
    (fact,) = (fact for fact in found if "write_turnaround" in fact["name"])
    assert fact["high"]["throughput"] is None
    assert fact["low"]["throughput"] is not None


def test_loops_of_an_engine_whose_lines_in_flight_are_stated() -> None:
    """They stay those of ERIS as published: more instructions take longer."""
    setting = "machine.engines.eris.lines_in_flight=3.0"
    scenario = load_scenario("eris-fig8-amd", settings=[setting])
    predictor = Predictor(scenario)
    for found in assumptions_in(scenario, costs_of(scenario)):
        if found.name == "instructions of generate" and found.low and found.high:
            rates = [predictor(varied(scenario, end)).throughput for end in (found.low, found.high)]
            assert rates[0]["lookup"] > predictor.own.throughput["lookup"] > rates[1]["lookup"]
            return
    pytest.fail("not assumed")
