"""The compiled engine's setup from a scenario: objects, operations, buffers, phases.

The engine of a scenario of ERIS, loaded and running on this host or in a guest.
"""

import math
import time
from collections.abc import Sequence
from typing import Any, TypedDict, cast

import numpy as np
from numpy.typing import NDArray

from ....inputs import InputError, Quantity
from ....inputs.progress import Progress
from ....sim.kernel.arrays import Floats
from ....sim.planes.plane import Experiment
from ....sim.systems.eris.index import block_bytes
from ....sim.systems.eris.spec import ErisSystem, Shards
from ....workloads import KeyDistribution
from ....workloads.schema import DataObject
from ....workloads.workload import PhaseState
from ....workloads.zipf import Zipf
from ... import _engine
from ..._engine import Engine, EngineSetup, HostFacts, KeyDraws
from ...host_mapping import HostMapping, map_workers, workers_that_fit
from ...outcomes import SLICE_S, no_memory

# Bytes that a key of a dense index may take, with its tree (what the project allows it), and an
# entry of a column.
KEY_BYTES, ENTRY_BYTES = 26, 8
# Of what the host can spare, an engine may take so much: its buffers and this process need some.
ROOM = 0.8

WORD_BYTES = 8
VALUE_BYTES_MAX = 1 << 20
MESSAGE_BYTES_MAX = 1024  # of a command, and of an answer (systems/eris/setup.cpp)
NS = 1e9

Counts = NDArray[np.uint64]


class Totals(TypedDict):
    """Sums since ``start``: [O, A] of operations and workers, [objects, A], [steps, A] or [A]."""

    time_s: float
    made: Counts
    """[O, A] commands; a scan is one."""
    executed: Counts
    """[O, A] commands; a scan counts for each worker that scans its part."""
    done: Counts
    """[O, A] whole operations."""
    latency_sum_ns: Counts
    """[O, A] of those done."""
    object_executed: Counts
    object_forwarded: Counts
    object_entries: Counts
    """[objects, A] keys or entries that each holds now."""
    object_execution_ns: Floats
    step_ns: Floats
    """[steps, A], see ``STEPS``."""
    busy_ns: Counts
    """[A] in rounds in which there was something to do."""
    rounds: Counts
    refused: Counts
    """[A] flushes that found no room."""
    retries: Counts
    """[A] exchanges of a descriptor that had to begin again."""
    flushes: Counts
    copied_bytes: Counts


def engine_setup(
    scenario: Experiment, nodes: list[int], mapping: HostMapping, module: Any = _engine
) -> EngineSetup:
    """Of workers of the nodes at positions ``nodes`` [A]; ``module``: the compiled engine.

    Raises InputError for what the native engine cannot store or do."""
    system = scenario.system
    assert isinstance(system, ErisSystem)
    machine, workload = scenario.machine, scenario.workload
    _check_sizes(system)
    _check_values(scenario, system)
    setup: EngineSetup = module.EngineSetup(nodes, list(mapping.cpu), list(mapping.host_node))
    positions: dict[str, int] = {}
    for name, stored in workload.objects.items():
        positions[name] = len(positions)
        _add_object(setup, name, stored)
    for name, operation in workload.operations.items():
        setup.add_operation(
            name,
            operation.kind,
            positions[operation.object],
            operation.selectivity,
            operation.result,
        )
    if system.memory is not None:
        raise InputError(
            "system.memory: the native engine binds each object to nodes itself",
            expected="none, and placement partitioned, interleaved or single-ram",
        )
    if system.faults:
        raise InputError(
            "system.faults: the native engine's workers do not stop, nor take longer",
            expected="none, or another plane, such as event",
        )
    if isinstance(system.placement, Shards):
        raise InputError(
            "system.placement: the native engine has a shard per worker, or one",
            expected="partitioned, interleaved or single-ram",
        )
    setup.placement = system.placement
    if system.placement == "single-ram":
        setup.home = system.home_position(machine)
    workers = len(nodes)
    setup.buffer_commands = system.buffer_commands
    setup.round_commands = system.commands_per_round(workers)
    setup.incoming_commands = system.incoming_commands(workers)
    setup.command_bytes = round(system.command_size.value)
    setup.result_bytes = round(system.result_size.value)
    setup.batch = system.batch
    setup.huge_pages = system.page_size.value > 4096
    clients = workload.description.clients
    if clients.kind == "open":
        assert clients.arrival_rate is not None
        setup.arrival_ns = NS * workers / clients.arrival_rate.value
    else:
        setup.think_ns = NS * clients.think_time.value
    setup.seed = scenario.seed
    setup.set_phase(*phase_setup(workload.at(0.0), 0.0, module))
    return setup


def phase_setup(
    phase: PhaseState, time_s: float, module: Any = _engine
) -> tuple[list[float], list[KeyDraws | None]]:
    """Shares and keys of the phase's operations at ``time_s`` of the run, in their order."""
    elapsed_s = max(time_s - phase.start_s, 0.0)
    operations = phase.operations.values()
    return (
        [operation.share for operation in operations],
        [
            None if operation.keys is None else _draws(operation.keys, elapsed_s, module)
            for operation in operations
        ],
    )


def _draws(keys: KeyDistribution, elapsed_s: float, module: Any) -> KeyDraws:
    draws: type[KeyDraws] = module.KeyDraws
    if isinstance(keys, Zipf):
        return draws.zipf(keys.keys, keys.exponent, keys.scattered)
    density = keys.density(elapsed_s)
    return draws(density.breaks.tolist(), density.mass.tolist(), keys.scattered)


def _add_object(setup: EngineSetup, name: str, stored: DataObject) -> None:
    if stored.kind == "index":
        assert stored.keys is not None
        message = f"object '{name}': the native engine stores 64-bit keys"
        _expect_word(stored.key_size, message, "key_size ")
        value = stored.value_size.value
        if not WORD_BYTES <= value <= VALUE_BYTES_MAX or value % 1:
            raise InputError(
                f"object '{name}': not a value that the native engine stores",
                token=f"value_size {value:g} B",
                expected=f"whole bytes, {WORD_BYTES} to {VALUE_BYTES_MAX:,} of them",
            )
        setup.add_index(name, stored.keys, stored.key_bits, stored.prefix_bits, int(value))
    else:
        assert stored.entries is not None
        message = f"object '{name}': the native engine stores 64-bit entries"
        _expect_word(stored.entry_size, message, "entry_size ")
        setup.add_column(name, stored.entries)


def _expect_word(size: Quantity, message: str, field: str = "") -> None:
    if size.value != WORD_BYTES:
        raise InputError(message, token=f"{field}{size.value:g} B", expected="8 B")


def _check_values(scenario: Experiment, system: ErisSystem) -> None:
    """Larger ones lie out of line, and stay where they are."""
    message = "system.inline_values: the native engine's trees hold words of 8 B"
    _expect_word(system.inline_values, message)
    large = [
        name
        for name, stored in scenario.workload.objects.items()
        if stored.kind == "index" and stored.value_size.value > WORD_BYTES
    ]
    if large and any(name != "none" for name in scenario.policy_names.values()):
        raise InputError(
            f"object '{large[0]}': the native engine does not move values of more than 8 B",
            expected="policy none, or value_size 8 B",
        )


def _check_sizes(system: ErisSystem) -> None:
    """Of what travels: whole words, as few as an entry's header can tell."""
    for name, least in ("command_size", 8), ("result_size", 0):
        size = getattr(system, name).value
        if not least <= size <= MESSAGE_BYTES_MAX or size % 8 != 0:
            raise InputError(
                f"system.{name}: the native engine sends words of 8 B",
                token=f"{size:g} B",
                expected=f"{least} to {MESSAGE_BYTES_MAX} B, a multiple of 8",
            )


def data_bytes(objects: Sequence[DataObject]) -> int:
    """What they take at most."""
    return sum(
        (described.keys or 0) * (KEY_BYTES + int(block_bytes(described.value_size.value)))
        if described.kind == "index"
        else (described.entries or 0) * ENTRY_BYTES
        for described in objects
    )


def totals_of(engine: Any) -> Totals:
    """Of ``engine``, here or in a guest: it tells lists, for processes without NumPy."""
    return as_totals(engine.totals())


def as_totals(found: dict[str, Any]) -> Totals:
    """What ``totals`` of an engine told."""
    return cast("Totals", {name: np.array(part) for name, part in found.items()})


def check_room(scenario: Experiment, host: HostFacts) -> None:
    """Raises InputError, which says what would fit, where the data do not fit into the host."""
    needed = data_bytes(list(scenario.workload.objects.values()))
    spare = int(host.available_bytes * ROOM)
    if needed <= spare:
        return
    fits = scenario.scale * spare / needed
    power = 10.0 ** math.floor(math.log10(fits))
    raise InputError(
        f"the data need {needed / 1e9:.3g} GB, and this host can spare {spare / 1e9:.3g} GB",
        expected=f"--scale {math.floor(fits / power) * power:.3g}, or less",
    )


LOOK_S = 0.1  # interval of progress reports while loading
SETTLE_S = 60.0  # how long nothing may move while partitions are made even again


class ErisHost:
    """The engine of a scenario, loaded and running.

    ``module``: the compiled engine of this process, or a remote one with the same interface.
    """

    def __init__(
        self, scenario: Experiment, loading: Progress | None = None, module: Any = _engine
    ) -> None:
        system = scenario.system
        assert isinstance(system, ErisSystem)
        self.module = module
        host: HostFacts = module.host_facts()
        check_room(scenario, host)
        wanted = system.aeu_nodes(scenario.machine).tolist()
        # A stated number of threads is kept, even if they have to share CPUs.
        stated = isinstance(system.threads, int)
        nodes = wanted if stated else workers_that_fit(wanted, host)
        self.worker_nodes = np.array(nodes, dtype=np.int64)
        self.mapping: HostMapping = map_workers(scenario.machine, nodes, host)
        self.left_out = len(wanted) - len(nodes)
        self.partitioned = system.placement == "partitioned"
        self.host = host
        try:
            setup = engine_setup(scenario, nodes, self.mapping, module)
            self.engine: Engine = module.Engine(setup)
            self._load(loading)
        except MemoryError as failure:
            raise no_memory(failure) from None
        except OSError as failure:
            workers = f"{len(nodes)} workers"
            raise InputError(f"no threads for {workers}: {failure.strerror}") from None
        except ValueError as failure:
            raise InputError(f"the native engine refuses: {failure}") from None
        self.memory = self.engine.memory()
        self.initial = [self.engine.bounds(k) for k in range(len(scenario.workload.objects))]
        self.sizes = totals_of(self.engine)["object_entries"].astype(np.float64)
        self.started = False

    def _load(self, loading: Progress | None) -> None:
        """Tells ``loading`` how far it is; an end in the middle leaves nothing running."""
        try:
            self.engine.begin_load()
            while not self.engine.wait_loaded(LOOK_S):
                if loading is not None:
                    loading(self.engine.loaded / max(self.engine.to_load, 1))
        except BaseException:
            self.engine.cancel()
            raise
        if loading is not None:
            loading(1.0)

    def close(self) -> None:
        """Ends the workers."""
        self.engine.cancel()

    def begin(self, scenario: Experiment) -> None:
        """The workload's first phase on even partitions."""
        if not self.started:
            self.engine.start()
            self.started = True
            return
        self.engine.set_phase(*phase_setup(scenario.workload.at(0.0), 0.0, self.module))
        if self.partitioned:
            self._even_out()

    def _even_out(self) -> None:
        """Partitions as they were when the engine was loaded; clients pause meanwhile."""
        self.engine.set_making(False)
        for k, bounds in enumerate(self.initial):
            self._wait_for_cycle(k)
            wanted = bounds if bounds else self.sizes[k].astype(int).tolist()
            self.engine.rebalance(k, wanted)
            self._wait_for_cycle(k)
        self.engine.set_making(True)

    def _wait_for_cycle(self, k: int) -> None:
        """As long as something moves: much data take long."""
        moved, since_s = -1, time.monotonic()
        while self.engine.balancing(k):
            self.check()
            now, now_s = int(totals_of(self.engine)["copied_bytes"].sum()), time.monotonic()
            if now != moved:
                moved, since_s = now, now_s
            elif now_s - since_s > SETTLE_S:
                raise InputError(f"a balancing cycle has not moved for {SETTLE_S:g} s")
            time.sleep(SLICE_S / 10)

    def check(self) -> None:
        """Raises InputError where a worker failed."""
        try:
            self.engine.check()
        except MemoryError as failure:
            raise no_memory(failure) from None
