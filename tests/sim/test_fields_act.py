"""Every field of machine, workload and scenario is read by a model, or listed with a reason.

Each case is a scenario and one setting: with and without it something that is predicted differs.
"""

from functools import cache
from pathlib import Path

import pytest
from pydantic import BaseModel
from schema_fields import fields_of

from numatwin.sim.run.replications import play
from numatwin.sim.run.runner import maker_of
from numatwin.sim.run.scenario import Scenario, load_scenario
from numatwin.sim.run.scenario_description import description_of
from numatwin.sim.run.what_if import flow_plane
from numatwin.sim.systems.commits.build import commit_parameters
from numatwin.sim.systems.registry import system_named
from numatwin.topologies.schema import MachineDescription
from numatwin.workloads.schema import WorkloadDescription

Base = tuple[str, ...]
"""A scenario and its settings; ``machine=M`` and ``plane=P`` among them are options."""

OPTERON = "machine.node_types.opteron-6274-die"
LOOKUP: Base = ("eris-fig8-amd",)
MIXED: Base = ("eris-mixed-amd", "machine=epyc-2s-cxl")
SCAN: Base = ("eris-fig12-scan", "machine=xeon-2s-spr-snc4")
SHARED: Base = ("eris-fig8-amd-upsert-shared", "machine=intel-4s-qpi")
SMALL_PAGES: Base = ("eris-fig8-intel", "system.page_size=4 KiB")
MOVING: Base = ("eris-fig13-small", "policy=ma-8", "horizon=600 ms")
EVENTS: Base = (
    *("eris-fig8-amd", "plane=event", "horizon=300 us", "system.threads=1", "system.nodes=2"),
    *("system.buffer_commands=16", "workload.objects.index.keys=1000000"),
)
NO_WARM_UP = "statistics.warm_up=0 s"
RSI: Base = ("nam-fig6-rsi", "horizon=600 us", "system.clients=20", NO_WARM_UP)
IPOIB: Base = ("nam-fig6-ipoib", "horizon=4 ms", "system.clients=20", NO_WARM_UP)
MANY: Base = ("nam-fig6-rsi", "horizon=600 us", "system.clients=100", NO_WARM_UP)
SKIP: Base = ("nam-rsi-straggler-skip", NO_WARM_UP)
LEASE: Base = ("nam-rsi-dead-client-lease", NO_WARM_UP)
HOST: Base = ("host-commit-tcp", "machine=zen5-2c", "plane=event")
PROFILE = Path(__file__).parents[2] / "docs" / "examples" / "my-engine.yaml"
HOT = "workload.operations.lookup.keys={distribution: hot_range, from: 0, to: 1000, share: 0.5}"
OPEN = "workload.clients={kind: open, arrival_rate: 1 M/s}"

PHASES: Base = (
    *MIXED,
    "workload.phases=[{start: 1 ms, name: b, operations: {upsert: {share: 50}}}]",
)
CACHED: Base = (*LOOKUP, "workload.objects.index.keys=200000")
LOADED: Base = (
    *LOOKUP,
    f"{OPTERON}.outstanding_misses=3",
    "machine.loaded_latency=[{bandwidth: 1 GB/s, latency: 85 ns}, "
    "{bandwidth: 9 GB/s, latency: 99 ns}, {bandwidth: 12 GB/s, latency: 500 ns}]",
)
SHIFTING: Base = ("eris-fig13-small",)
UPSERT: Base = ("eris-fig8-amd-upsert",)
INTERRUPTED: Base = (*EVENTS, "machine.interruptions=[{length: 9 us, every: 90 us}]")
ZIPF: Base = (*LOOKUP, "workload.operations.lookup.keys={distribution: zipf, exponent: 0.9}")
STOLEN: Base = ("hana-fig11-low", "policies.stealing=always")
DIRECT: Base = ("host-commit", "machine=zen5-2c", "plane=event")


def table_of(local: str, other: str) -> str:
    """A pair table of eight nodes."""
    rows = (", ".join(local if i == j else other for j in range(8)) for i in range(8))
    return f"[[{'], ['.join(rows)}]]"


HELD: Base = ("eris-fig8-amd-shared",)
ACROSS: Base = (
    *("eris-fig12-scan", "system.placement=single-ram", "system.home=0", "system.nodes=[3]"),
)
LATENCIES: Base = ("eris-fig8-amd-shared", f"machine.pair_latency={table_of('85 ns', '200 ns')}")
BANDWIDTHS: Base = (
    *("eris-fig8-amd-shared", f"machine.pair_bandwidth={table_of('16.4 GB/s', '4 GB/s')}"),
)

CASES: dict[str, tuple[Base, str]] = {
    # How each was found: other values for what bundled scenarios say, one at a time.
    "Cache.shared_by_cores": (
        LOOKUP,
        "machine.node_types.opteron-6274-die.caches.1.shared_by_cores=3",
    ),
    "ClientDeath.at": (LEASE, "system.deaths.0.at=3000000 ns"),
    "ClientDeath.client": (LEASE, "system.deaths.0.client=8"),
    "Coherence.completion": (LOOKUP, "machine.coherence.completion=true"),
    "Coherence.replacement_probes": (LOOKUP, "machine.coherence.replacement_probes=true"),
    "Coherence.directory_in_memory": (STOLEN, "machine.coherence.directory_in_memory=false"),
    "Coherence.owned": (LOOKUP, "machine.coherence.owned=false"),
    "Coherence.protocol": (LOOKUP, "machine.coherence.protocol=snoop"),
    "Coherence.snoop_domain": (LOOKUP, "machine.coherence.snoop_domain=group"),
    "CommitSystem.client_nodes": (RSI, "system.client_nodes=3"),
    "CommitSystem.clients": (RSI, "system.clients=21"),
    "CommitSystem.compute_spread": (RSI, "system.compute_spread=0.35"),
    "CommitSystem.copy_bandwidth": (RSI, "system.copy_bandwidth=1.5 GB/s"),
    "CommitSystem.lease": (LEASE, "system.lease=2000 ns"),
    "CommitSystem.manager_threads": (IPOIB, "system.manager_threads=per-client"),
    "CommitSystem.storage_threads": (
        (*IPOIB, "system.manager_threads=per-client"),
        "system.storage_threads=per-client",
    ),
    "CommitSystem.managers": (IPOIB, "system.managers=storage-nodes"),
    "CommitSystem.message_header": (IPOIB, "system.message_header=48 B"),
    "CommitSystem.message_threads": (IPOIB, "system.message_threads=hardware-threads"),
    "CommitSystem.ports": (IPOIB, "system.ports=2"),
    "CommitSystem.record_header": (IPOIB, "system.record_header=24 B"),
    "CommitSystem.retries": (SKIP, "system.retries=1"),
    "CommitSystem.skip_after": (SKIP, "system.skip_after=150000 ns"),
    "CommitSystem.snapshot_every": (RSI, "system.snapshot_every=2"),
    "CommitSystem.storage_nodes": (RSI, "system.storage_nodes=2"),
    "CommitSystem.timestamp_bits": (RSI, "system.timestamp_bits=60001"),
    "CommitSystem.versions": (RSI, "system.versions=2"),
    "DataObject.entries": (SCAN, "workload.objects.column.entries=1000000001"),
    "DataObject.entry_size": (SCAN, "workload.objects.column.entry_size=12 B"),
    "DataObject.key_size": (LOOKUP, "workload.objects.index.key_size=12 B"),
    "DataObject.keys": (LOOKUP, "workload.objects.index.keys=1000000001"),
    "DataObject.prefix_bits": (LOOKUP, "workload.objects.index.prefix_bits=9"),
    "DataObject.record_size": (RSI, "workload.objects.product.record_size=1.5 KiB"),
    "DataObject.records": (RSI, "workload.objects.product.records=1000001"),
    "DataObject.value_size": (LOOKUP, "workload.objects.index.value_size=12 B"),
    "DistanceClass.bandwidth": (HELD, "machine.distance_classes.1.bandwidth=8.7 GB/s"),
    "DistanceClass.hops": (ACROSS, "machine.distance_classes.4.hops=3"),
    "DistanceClass.latency": (LOOKUP, "machine.distance_classes.1.latency=204 ns"),
    "ErisSystem.buffer_commands": (LOOKUP, "system.buffer_commands=129"),
    "ErisSystem.command_size": (LOOKUP, "system.command_size=24 B"),
    "ErisSystem.inline_values": (LOOKUP, "system.inline_values=4 B"),
    "ErisSystem.page_size": (SHARED, "system.page_size=1 MiB"),
    "ErisSystem.placement": (LOOKUP, "system.placement=interleaved"),
    "ErisSystem.threads": (MIXED, "system.threads=cores"),
    "Fact.value": (LOOKUP, "machine.node_types.opteron-6274-die.ipc.value=0.7"),
    "Generator.shape": (SHARED, "machine.generate.0.shape=ring"),
    "LinkType.bandwidth": (LOOKUP, "machine.link_types.ht-full.bandwidth=6.4 GB/s"),
    "LinkType.carried": (HELD, "machine.link_types.ht-full.carried=2 GB/s"),
    "LinkType.response": (
        (*LOOKUP, "machine.coherence.completion=true"),
        "machine.link_types.ht-full.response=96 B",
    ),
    "LinkType.data_header": (LOOKUP, "machine.link_types.ht-full.data_header=12 B"),
    "LinkType.request": (LOOKUP, "machine.link_types.ht-full.request=18 B"),
    "Memory.bandwidth": (LOOKUP, "machine.node_types.opteron-6274-die.memory.bandwidth=24.6 GB/s"),
    "Memory.latency": (LOOKUP, "machine.node_types.opteron-6274-die.memory.latency=127.5 ns"),
    "Nic.bandwidth": (RSI, "machine.nics.0.bandwidth=10.2 GB/s"),
    "Nic.message_rate": (RSI, "machine.nics.0.message_rate=68.5 M/s"),
    "Nic.ports": (RSI, "machine.nics.0.ports=3"),
    "NicPoint.latency": (RSI, "machine.nics.0.transports.RDMA.points.0.latency=1500 ns"),
    "NicPoint.read_latency": (RSI, "machine.nics.0.transports.RDMA.points.0.read_latency=3000 ns"),
    "NodeType.die_bandwidth": (HELD, f"{OPTERON}.die_bandwidth=1 GB/s"),
    "NodeType.die_cores": ((*HELD, f"{OPTERON}.die_bandwidth=1 GB/s"), f"{OPTERON}.die_cores=2"),
    "NodeType.clock": (LOOKUP, "machine.node_types.opteron-6274-die.clock=3.3 GHz"),
    "NodeType.cores": (LOOKUP, "machine.node_types.opteron-6274-die.cores=9"),
    "NodeType.threads_per_core": (LOOKUP, "machine.node_types.opteron-6274-die.threads_per_core=2"),
    "Operation.changed_size": (IPOIB, "workload.operations.checkout.changed_size=12 B"),
    "Operation.inserts": (RSI, "workload.operations.checkout.inserts.order=2"),
    "Operation.reads": (RSI, "workload.operations.checkout.reads=4"),
    "Operation.result": (SCAN, "workload.operations.scan.result=bitmap"),
    "Operation.updates": (RSI, "workload.operations.checkout.updates=2"),
    "ScenarioDescription.engine": (LOOKUP, f"engine={PROFILE}"),
    "ScenarioDescription.horizon": (RSI, "horizon=900000 ns"),
    "ScenarioDescription.scale": (LOOKUP, "scale=0.7"),
    "ScenarioDescription.seed": (RSI, "seed=1"),
    "SlowClient.client": (SKIP, "system.stragglers.0.client=8"),
    "SlowClient.factor": (SKIP, "system.stragglers.0.factor=101"),
    "Transport.bandwidth": (RSI, "machine.nics.0.transports.RDMA.bandwidth=3.4 GB/s"),
    "Transport.header": (RSI, "machine.nics.0.transports.RDMA.header=39 B"),
    "Transport.inline_limit": (RSI, "machine.nics.0.transports.RDMA.inline_limit=5120 B"),
    "Transport.interrupt_share": (IPOIB, "machine.nics.0.transports.IPoIB.interrupt_share=0.4"),
    "Transport.packet": (RSI, "machine.nics.0.transports.RDMA.packet=3 KiB"),
    "Transport.receive_queues": (IPOIB, "machine.nics.0.transports.IPoIB.receive_queues=2"),
    "Transport.window": (IPOIB, "machine.nics.0.transports.IPoIB.window=218.88 B"),
    "ZipfSpec.exponent": (SKIP, "workload.operations.checkout.keys.exponent=0.63"),
    # What no bundled scenario says, or says where it does not bind.
    "BalancingSpec.policy": (MOVING, "policies.balancing.policy=ma-2"),
    "BalancingSpec.period": (MOVING, "policies.balancing.period=20 ms"),
    "BalancingSpec.threshold": (MOVING, "policies.balancing.threshold=0.9"),
    "Cache.latency": (CACHED, f"{OPTERON}.caches.1.latency=90 ns"),
    "Cache.level": (LOOKUP, f"{OPTERON}.caches.1.level=4"),
    "Cache.size": (LOOKUP, f"{OPTERON}.caches.1.size=1 MiB"),
    "Change.keys": (SHIFTING, "workload.phases.0.operations.lookup.keys={distribution: uniform}"),
    "Change.share": (PHASES, "workload.phases.0.operations.upsert.share=9"),
    "Clients.arrival_rate": ((*LOOKUP, OPEN), "workload.clients.arrival_rate=2 M/s"),
    "Clients.kind": (LOOKUP, OPEN),
    "Clients.think_time": (LOOKUP, "workload.clients.think_time=1 ms"),
    "CommitSystem.architecture": (IPOIB, "system.architecture=ipoeth"),
    "CommitSystem.backoff": ((*SKIP, "system.retries=3"), "system.backoff=20 us"),
    "CommitSystem.deaths": (RSI, "system.deaths=[{client: 1, at: 100 us}]"),
    "CommitSystem.faults": (RSI, "system.faults=[{kind: stop, server: 4, at: 100 us}]"),
    "CommitSystem.failover": (
        (
            *RSI,
            "system.faults=[{kind: stop, server: 4, at: 100 us}]",
            "system.retransmission={timeout: 10 us}",
            "system.replicas=1",
            "system.failover=200 us",
        ),
        "system.failover=20 us",
    ),
    "CommitSystem.replicas": (RSI, "system.replicas=1"),
    "CommitSystem.retransmission": (
        (*RSI, "system.faults=[{kind: stop, server: 4, at: 100 us, lasts: 50 us}]"),
        "system.retransmission={timeout: 10 us}",
    ),
    "CommitSystem.host_transport": (HOST, "system.host_transport=shm"),
    "CommitSystem.layout": ((*IPOIB[:1], "system.client_nodes=null"), "system.layout=together"),
    "CommitSystem.poll": ((*RSI, "system.timestamp_bits=20"), "system.poll=10 us"),
    "CommitSystem.prepare": (
        (
            *IPOIB,
            "workload.operations.checkout.reads=1",
            "workload.operations.checkout.updates=1",
            "workload.operations.checkout.inserts={order: 1}",
        ),
        "system.prepare=holders",
    ),
    "CommitSystem.send_queue": (RSI, "system.send_queue=1"),
    "CommitSystem.snapshot_size": (RSI, "system.snapshot_size=8 B"),
    "CommitSystem.thread_switch": (MANY, "system.thread_switch=9 us"),
    "DistanceClass.route": (LOOKUP, "machine.distance_classes.1.route.ht-full=2"),
    "ErisSystem.batch": (LOOKUP, "system.batch=1"),
    "ErisSystem.home": (
        (*LOOKUP[:1], "system.placement=single-ram", "workload.objects.index.keys=1000000"),
        "system.home=3",
    ),
    "ErisSystem.incoming_size": (EVENTS, "system.incoming_size=256 B"),
    "Shards.shards": ((*LOOKUP[:1], "system.placement={shards: 2}"), "system.placement.shards=4"),
    "ErisSystem.memory": (
        (*LOOKUP[:1], "system.placement=single-ram", "workload.objects.index.keys=1000000"),
        "system.memory={policy: bind, nodes: 3}",
    ),
    "ErisSystem.nodes": (LOOKUP, "system.nodes=7"),
    "ErisSystem.result_size": (LOOKUP, "system.result_size=64 B"),
    "ErisSystem.round_commands": (LOOKUP, "system.round_commands=100"),
    "WriteTurnaround.value": (UPSERT, f"{OPTERON}.memory.write_turnaround=2"),
    "Generator.link": (SHARED, "machine.link_types.qpi.bandwidth=5 GB/s"),
    "HotRangeSpec.distribution": (LOOKUP, HOT),
    "HotRangeSpec.from": ((*LOOKUP, HOT), "workload.operations.lookup.keys.from=500"),
    "HotRangeSpec.share": ((*LOOKUP, HOT), "workload.operations.lookup.keys.share=0.1"),
    "HotRangeSpec.to": ((*LOOKUP, HOT), "workload.operations.lookup.keys.to=99999999"),
    "Interruption.every": (INTERRUPTED, "machine.interruptions.0.every=50 us"),
    "Interruption.length": (INTERRUPTED, "machine.interruptions.0.length=90 us"),
    "LinkType.energy": (LOOKUP, "machine.link_types.ht-full.energy=90 pJ/bit"),
    "LoadedPoint.bandwidth": (LOADED, "machine.loaded_latency.1.bandwidth=4 GB/s"),
    "LoadedPoint.latency": (LOADED, "machine.loaded_latency.1.latency=400 ns"),
    "MachineDescription.pair_latency": (LATENCIES, "machine.pair_latency.0.1=90 ns"),
    "MachineDescription.pair_bandwidth": (BANDWIDTHS, "machine.pair_bandwidth.0.1=1 GB/s"),
    "MovingHotRangeSpec.from": (SHIFTING, "workload.phases.0.operations.lookup.keys.from=2000000"),
    "MovingHotRangeSpec.to": (SHIFTING, "workload.phases.0.operations.lookup.keys.to=7000000"),
    "MovingHotRangeSpec.step": (SHIFTING, "workload.phases.0.operations.lookup.keys.step=-100000"),
    "MovingHotRangeSpec.every": (SHIFTING, "workload.phases.0.operations.lookup.keys.every=300 ms"),
    "MovingHotRangeSpec.moves": (SHIFTING, "workload.phases.0.operations.lookup.keys.moves=2"),
    "MovingHotRangeSpec.first_move": (
        SHIFTING,
        "workload.phases.0.operations.lookup.keys.first_move=100 ms",
    ),
    "MovingHotRangeSpec.share": (SHIFTING, "workload.phases.0.operations.lookup.keys.share=0.7"),
    "NicPoint.bandwidth": (RSI, "machine.nics.0.transports.RDMA.points.2.bandwidth=1 GB/s"),
    "NicPoint.size": (RSI, "machine.nics.0.transports.RDMA.points.1.size=1.5 KiB"),
    "NodeEnergy.core_active": (LOOKUP, f"{OPTERON}.energy.core_active=30 W"),
    "NodeEnergy.core_idle": ((*LOOKUP, "system.nodes=4"), f"{OPTERON}.energy.core_idle=3 W"),
    "NodeEnergy.memory": (LOOKUP, f"{OPTERON}.energy.memory=90 pJ/bit"),
    "Operation.kind": (LOOKUP, "workload.operations.lookup.kind=upsert"),
    "Operation.selectivity": (
        (*SCAN, "workload.operations.scan.result=positions"),
        "workload.operations.scan.selectivity=0.5",
    ),
    "Operation.share": (MIXED, "workload.operations.lookup.share=66.5"),
    "Phase.start": (SHIFTING, "workload.phases.0.start=300 ms"),
    "Tlb.entries": (SMALL_PAGES, "machine.node_types.e7-4860.tlbs.0.entries=2"),
    "Tlb.page": (SMALL_PAGES, "machine.node_types.e7-4860.tlbs.0.page=8 KiB"),
    "Tlb.shared_by_cores": (SHARED, "machine.node_types.e7-4860.tlbs.1.shared_by_cores=2"),
    "ZipfSpec.order": (ZIPF, "workload.operations.lookup.keys.order=sorted"),
    "ProcessFacts.clock": (HOST, "machine.processes.clock=9 us"),
    "ProcessFacts.give_way": (HOST, "machine.processes.give_way=0.1 us"),
    "ProcessFacts.line": (DIRECT, "machine.processes.line=9 us"),
    "ProcessFacts.slice": (HOST, "machine.processes.slice=1 ms"),
    "ProcessFacts.turn": (HOST, "machine.processes.turn=9 us"),
    "ProcessFacts.word_add": (DIRECT, "machine.processes.word_add=9 us"),
    "ProcessFacts.word_get": (DIRECT, "machine.processes.word_get=9 us"),
    "ProcessFacts.words_get": (DIRECT, "machine.processes.words_get=9 us"),
}


def scenario_of(base: Base, *more: str) -> Scenario:
    name, *settings = base
    options: dict[str, str | None] = {"machine": None, "plane": None, "policy": None}
    for option in options:
        for setting in [one for one in settings if one.startswith(f"{option}=")]:
            settings.remove(setting)
            options[option] = setting.partition("=")[2]
    return load_scenario(
        name,
        settings=(*settings, *more),
        machine=options["machine"],
        plane=options["plane"],
        policy=options["policy"],
    )


def predicted(scenario: Scenario) -> str:
    """All that a short run says; of a host's processes, what the model is given."""
    if getattr(scenario.system, "layout", "") == "host":
        return repr(commit_parameters(scenario)[0])
    if scenario.plane != "flow":
        outcome = play(maker_of(scenario), scenario, 2, 0.0).outcome
        means = {name: found.count and found.mean for name, found in outcome.latencies_ns.items()}
        return repr((outcome.throughput, outcome.resources, outcome.energy_J, means))
    if scenario.policies or len(scenario.workload.phases) > 1:
        from numatwin.sim.run.runner import outcome_of_flows

        outcome = outcome_of_flows(scenario)
    else:
        plane = flow_plane(scenario)
        plane.advance(1e-3)
        outcome = plane.outcome(with_gains=False)
    return repr((outcome.throughput, outcome.resources, outcome.energy_J, outcome.events))


@pytest.mark.parametrize("field", CASES)
def test_changing_it_changes_a_prediction(field: str) -> None:
    base, change = CASES[field]
    assert predicted(scenario_of(base, change)) != predicted_before(base)


@cache
def predicted_before(base: Base) -> str:
    """Of a scenario to which several cases belong, once."""
    return predicted(scenario_of(base))


# What a line costs on its way is one thing for all systems; of event planes see
# test_one_hardware.py.
REMOTE: Base = ("eris-fig12-scan", "system.placement=interleaved", "machine=xeon-4s-ivb")
SYSTEMS: dict[str, Base] = {
    "eris": REMOTE,
    "tasks": ("hana-steal-worst", "policies.stealing=always"),
}
OF_LINES = (
    "machine.coherence.directory_in_memory=false",
    "machine.coherence.completion=true",
    "machine.coherence.replacement_probes=true",
    "machine.coherence={protocol: snoop, snoop_domain: machine}",
    "machine.link_types.qpi.data_header=30 B",
    "machine.link_types.qpi.request=40 B",
    "machine.link_types.qpi.bandwidth=7 GB/s",
)


@pytest.mark.parametrize("change", OF_LINES)
@pytest.mark.parametrize("system", SYSTEMS)
def test_what_lines_cost_counts_in_all_systems(system: str, change: str) -> None:
    base = SYSTEMS[system]
    assert predicted(scenario_of(base, change)) != predicted_before(base)


# Fields that no prediction depends on, and why; "Class" alone: all of that class.
DESCRIPTIVE = {
    "Cache.line": "What importers saw: models count lines of 64 B",
    "Cache.ways": "The emulator's caches have them: models count lines of a whole cache",
    "Coherence.doubtful": "As of Fact",
    "Coherence.source": "Where a fact is from",
    "DistanceClass.name": "What tables and pictures call it",
    "Fact.doubtful": "Warnings and the range of an answer, beside the prediction",
    "Fact.range": "The range of an answer, beside the prediction",
    "Fact.source": "Where a fact is from",
    "WriteTurnaround.doubtful": "As of Fact",
    "WriteTurnaround.range": "As of Fact",
    "WriteTurnaround.source": "As of Fact",
    "HostState": "What the host was like when it was measured",
    "Hub.group": "Placed together in pictures",
    "Hub.kind": "A symbol in pictures",
    "LinkType.source": "Where a fact is from",
    "MachineDescription.calibrated_on": "Printed with scores",
    "MachineDescription.name": "A name",
    "MachineDescription.notes": "Text",
    "MachineDescription.slit": "A hint for people: latencies stand for themselves",
    "MachineDescription.source": "Where a fact is from",
    "MachineDescription.title": "Text",
    "MachineDescription.warnings": "What measuring found doubtful",
    "Measurement": "What facts were measured by",
    "Memory.kind": "Listed, and what the catalogue of facts goes by on import",
    "MemorySideCache": "Listed and drawn: no model has memory-side caches",
    "Misfit": "Intervals and a note, beside the prediction",
    "NodeGroup.cpus": "Which CPUs of a host a node is: for measuring and real runs",
    "NodeGroup.group_size": "Drawn together; snoop domains by group have a case of their own",
    "NodeType.system_call": "For times of commands that were counted in the emulator",
    "NodeType.source": "Where a fact is from",
    "Parameters": "What a measurement was made with",
    "Phase.name": "A name",
    "ProcessorIdentity": "What the catalogue of facts goes by on import",
    "ReadWriteMix": "What `calibrate` fits the controllers' turnaround to",
    "ScenarioDescription.name": "A name",
    "ScenarioDescription.notes": "Text",
    "ScenarioDescription.source": "Where it is from",
    "ScenarioDescription.title": "Text",
    "Tlb.source": "Where a fact is from",
    "Transport.source": "Where a fact is from",
    "WorkloadDescription.name": "A name",
    "WorkloadDescription.notes": "Text",
    "WorkloadDescription.source": "Where it is from",
    "WorkloadDescription.title": "Text",
}
# What decides which parts there are, which are refused, or how a run is made: no figure of its own.
STRUCTURE = {
    "ClientFault": "test_commit_shaking.py changes each of its fields",
    "ClockFault": "test_commit_shaking.py changes each of its fields",
    "LinkFault": "test_commit_shaking.py changes each of its fields",
    "LockSpec": "tasks/test_locks.py changes each of its fields",
    "PartitionFault": "test_commit_shaking.py changes each of its fields",
    "PortFault": "test_commit_shaking.py changes each of its fields",
    "Retransmission": "test_commit_shaking.py changes each of its fields",
    "ServerFault": "test_commit_shaking.py changes each of its fields",
    "BalancingSpec.class": "A class of one's own: tests/sim/test_policies_user_file.py",
    "BalancingSpec.file": "As its class",
    "BalancingSpec.options": "As its class",
    "Clients.count": "Of systems whose clients are counted by the workload",
    "CommitSystem.kind": "Chooses the system",
    "DataObject.key_bits": "Bounds the keys; the native engine's tree has their width",
    "DataObject.kind": "Chooses the other fields",
    "ErisSystem.kind": "Chooses the system",
    "CommitSystem.memory": "Refused: nodes are hosts",
    **dict.fromkeys(("MemoryField", "MemoryPolicy"), "Tested in test_memory_policy.py"),
    "Generator.diagonals": "Which links: tests/topologies/test_generators.py",
    "Generator.dimensions": "As its diagonals",
    "Generator.hubs": "As its diagonals",
    "Generator.leaf_size": "As its diagonals",
    "Generator.members": "As its diagonals",
    "Generator.prefix": "What hubs are called",
    "Generator.spine_link": "As its diagonals",
    "Generator.spines": "As its diagonals",
    "Hub.bandwidth": "Of switches: tests/topologies",
    "Hub.id": "A name that links refer to",
    "Link.ends": "Which nodes are joined: tests/topologies",
    "Link.ports": "Which parts of a split link: tests/topologies",
    "Link.type": "Which type of link: tests/topologies",
    "LinkType.latency": "Routes without a measured latency: tests/topologies",
    "LinkType.splits": "Whether ports share a link: tests/topologies",
    "MachineDescription.engines": "Facts of engines: tests/sim/test_engine_facts.py",
    "Memory.size": "Refuses data that do not fit: tests/sim/test_value_sizes.py",
    "MovingHotRangeSpec.distribution": "Chooses the form",
    "Nic.nodes": "Which nodes have the adapter; transactions elsewhere are refused",
    "NodeGroup.group": "Snoop domains: see Coherence.snoop_domain",
    "NodeGroup.id": "A name that links refer to",
    "NodeGroup.ids": "Names that links refer to",
    "NodeGroup.memory_size": "As Memory.size",
    "NodeGroup.type": "Which type of node",
    "Operation.object": "Which object",
    "RecordedSpec.distribution": "Chooses the form",
    "RecordedSpec.file": "A histogram: tests/workloads",
    "ScenarioDescription.event_horizon": "How long planes play that draw at random",
    "ScenarioDescription.machine": "A machine of its own",
    "ScenarioDescription.native_horizon": "How long the native plane runs",
    "ScenarioDescription.plane": "Who plays",
    "ScenarioDescription.workload": "A workload of its own",
    "Statistics": "How often it is played, how sure figures are: tests/sim/test_replications.py",
    "UniformSpec.distribution": "Chooses the form",
    "Unknown": "What is drawn: tests/validate/test_inference.py",
    "ZipfSpec.distribution": "Chooses the form",
}
# Schemas of systems whose tests are their own: tasks; joins in tests/sim/test_join_input.py.
OF_TASKS = {
    *("Operation.groups", "Operation.outer", "Operation.result_size"),
    *(
        "Column",
        "CopyEngineFacts",
        "AggregateSpec",
        "CustomSpec",
        "JoinSpec",
        "LoopSpec",
        "MaterialiseSpec",
        "ScanSpec",
        "StructureSpec",
    ),
    *("DataObject.group", "DataObject.parts", "DataObject.rows", "Operation.clients"),
    *(
        f"RecordedSpec.{name}"
        for name in ("after", "concurrency", "kind", "structure", "task_class")
    ),
}


def test_every_field_has_a_case_or_a_reason() -> None:
    schemas: list[type[BaseModel]] = [
        MachineDescription,
        WorkloadDescription,
        *(description_of(system_named(name)) for name in ("eris", "commits")),
    ]
    listed = {**DESCRIPTIVE, **STRUCTURE, **dict.fromkeys(OF_TASKS, "")}
    missing = set()
    for kind, name in set().union(*map(fields_of, schemas)):
        field = f"{kind}.{name}"
        assert (field in CASES) + (field in listed) + (kind in listed) <= 1, f"{field}: twice"
        if not (field in CASES or field in listed or kind in listed):
            missing.add(field)
    assert not missing
    assert not {key for key, reason in {**DESCRIPTIVE, **STRUCTURE}.items() if not reason}
