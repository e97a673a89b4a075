"""ERIS for the event plane: the cost model's figures in picoseconds, and where commands go."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....workloads.schema import Clients
from ....workloads.workload import PhaseState
from ..._kernel import ErisDemands as KernelDemands
from ..._kernel import ErisMachine, SparseRows
from ...kernel.arrays import Floats, Ints
from ...kernel.picoseconds import PS_PER_S
from ...machine.costs import LINE_BYTES
from ...machine.hand_over_traffic import hand_over_traffic
from ...machine.threads import Workers
from .partitioned import CommandDemands, PartitionedDemands
from .partitions import ColumnPartitions
from .parts import Partitions
from .routing import passed_on_per_flush, routing_costs

# Lines of a scan after which other work of a controller gets its turn: 256 KiB.
SCAN_CHUNK_LINES = 4096

GUIDE_SLOTS_PER_CELL = 16
GUIDE_SLOTS_MAX = 8192


def machine_of(
    demands: PartitionedDemands, clients: Clients, phase: PhaseState | None = None
) -> ErisMachine:
    """The machine, its workers and their buffers as the kernel wants them.

    ``phase``: whose commands are made.
    """
    costs, system, workers = demands.costs, demands.system, demands.workers
    routing = routing_costs(costs, system, workers.count, phase)
    per_instruction_ps = PS_PER_S / costs.instructions_per_s
    handed = costs.hand_overs
    handed_ps = np.rint(handed.line_s * PS_PER_S).astype(np.int64)
    load, load_ratio = costs.loaded_latency
    own = np.arange(len(demands.home))
    line_ps = np.nan_to_num(LINE_BYTES * PS_PER_S / costs.memory_Bps, nan=0.0)
    reads = np.zeros((len(own), len(own)))
    reads[own, demands.home] = np.bincount(workers.node, minlength=len(own))
    updated = costs.directory_writes(reads) * costs.written_line_times
    return ErisMachine(
        node=workers.node,
        core=workers.core,
        home=demands.home,
        issue_ps=per_instruction_ps * routing.issue,
        receive_ps=per_instruction_ps * routing.receive,
        flush_ps=per_instruction_ps * routing.flush_fixed,
        batch_ps=per_instruction_ps * routing.batch_executed,
        round_ps=per_instruction_ps * routing.round,
        copy_ps=per_instruction_ps * routing.lines * routing.flush_line,
        own_cached=handed.own_cached,
        exchanged_at_once=costs.implementation.held_descriptor,
        flushed_late=costs.implementation.late_flush,
        swap_ps=np.diag(handed_ps) * (0.0 if handed.own_cached else 1.0),
        stream_slots=handed.write_slots,
        read_slots=handed.read_slots,
        part_ps=per_instruction_ps * routing.part,
        part_waits=costs.part_waits,
        read_waits=costs.read_waits,
        handed_additive=handed.additive,
        handed_ps=handed_ps,
        stream_stall=costs.stream_stall,
        memory_idle_ps=costs.idle_s[own, demands.home] * PS_PER_S,
        memory_line_ps=line_ps * (1.0 + updated),
        memory_write_ps=line_ps * costs.written_line_times,
        load=load,
        load_ratio=load_ratio,
        lines_per_command=routing.lines,
        answer_lines=routing.answer_lines,
        buffer_commands=system.buffer_commands,
        round_commands=system.commands_per_round(workers.count),
        incoming_commands=system.incoming_commands(workers.count),
        command_bytes=round(system.command_size.value),
        batch=system.batch,
        answers=routing.answer_lines > 0,
        scan_chunk_lines=SCAN_CHUNK_LINES,
        **times_of(clients, workers.count),
        **_of_links(demands),
        **_of_hand_overs(demands),
    )


def times_of(clients: Clients, workers: int) -> dict[str, Any]:
    """When workers, each a client, have something to do."""
    if clients.kind == "open":
        assert clients.arrival_rate is not None
        return {"arrival_ps": PS_PER_S * workers / clients.arrival_rate.value}
    return {"think_ps": PS_PER_S * clients.think_time.value}


def _of_links(demands: PartitionedDemands) -> dict[str, Any]:
    costs = demands.costs
    routes, count = costs.machine.routes, len(demands.home)
    if not costs.machine.links:
        return {}
    each_ps = PS_PER_S / costs.link_Bps
    lines = np.zeros((count, count))
    lines[np.arange(count), demands.home] = 1.0
    data, control = costs.wire_rows(lines)
    return {
        "link_data_ps": np.rint((LINE_BYTES + costs.link_header_bytes) * each_ps).astype(int),
        "link_request_ps": np.rint(costs.link_request_bytes * each_ps).astype(int),
        "line_data_ps": sparse(data * each_ps),
        "line_control_ps": sparse(control * each_ps),
        "line_bytes": sparse(data + control),
        "entering": routes.entering,
        "predecessor": routes.predecessor,
        "vertices": routes.vertices,
    }


def _of_hand_overs(demands: PartitionedDemands) -> dict[str, Any]:
    """What a flush to another node moves, where all workers make and take as much."""
    nodes = np.bincount(demands.workers.node, minlength=len(demands.home))
    share = nodes / nodes.sum()
    each = hand_over_traffic(demands.costs, share, share, passed_on_per_flush(demands.system))
    crossing = max(1.0 - float((share**2).sum()), 1e-300)
    return {
        "handed_fetched": each.fetched,
        "handed_passed": each.passed,
        "handed_passed_messages": each.passed_messages,
        "handed_back": each.back,
        "handed_messages": each.messages,
        "handed_read": float(each.read.sum()) / crossing,
        "handed_written": float(each.written.sum()) / crossing,
    }


def sparse(rows: Floats) -> SparseRows:
    """The entries of ``rows`` (n, K) that are not 0."""
    row, column = np.nonzero(rows)
    first = np.searchsorted(row, np.arange(len(rows) + 1))
    return SparseRows(first.tolist(), column.tolist(), rows[row, column].tolist())


def kernel_demands(commands: CommandDemands, order: Sequence[int]) -> KernelDemands:
    """The demands of operations, in the kernel's ``order``."""

    def ps(seconds: Floats) -> Floats:
        return np.where(np.isfinite(seconds), seconds, 0.0)[list(order)] * PS_PER_S

    plain = ("lines", "slots", "memory_lines", "written", "scan_lines")
    return KernelDemands(
        core_ps=ps(commands.core_s),
        hit_ps=ps(commands.hit_s),
        line_max_ps=ps(commands.line_max_s),
        **{name: getattr(commands, name)[list(order)] for name in plain},
    )


def by_key_first(phase: PhaseState, partitions: Partitions) -> tuple[list[int], int]:
    """Positions of the phase's operations, those by key first, and how many these are."""
    scans = [
        isinstance(partitions[operation.object], ColumnPartitions)
        for operation in phase.operations.values()
    ]
    order = sorted(range(len(scans)), key=lambda k: scans[k])
    return order, scans.count(False)


def table_of(shares: Sequence[Floats], scan_shares: Sequence[float]) -> tuple[Floats, Ints]:
    """Cumulative shares (cells + 1,) of all cells, and the guide (G,) into it.

    ``shares``: of each operation by key, the part (A,) of all commands that goes to each worker;
    ``scan_shares``: of each scan, its part of all commands. A cell that nothing goes to is never
    drawn.
    """
    parts = np.concatenate([*shares, np.asarray(scan_shares, dtype=np.float64)])
    total = np.concatenate([[0.0], np.cumsum(parts)])
    total /= total[-1]
    # The last cell that anything goes to, and all behind it, end at 1.
    total[np.flatnonzero(parts)[-1] + 1 :] = 1.0
    slots = 1 << max(len(parts) - 1, 1).bit_length()
    # With several slots a cell, most draws find theirs at once; but the guide stays in the cache.
    slots = max(slots, min(GUIDE_SLOTS_PER_CELL * slots, GUIDE_SLOTS_MAX))
    guide = np.searchsorted(total, np.arange(slots) / slots, side="right") - 1
    return total, guide


def worker_names(workers: Workers) -> list[str]:
    """As random streams are named after them."""
    return [f"worker {k}" for k in range(workers.count)]


def worker_streams(workers: Workers) -> list[str]:
    """Names of the random streams: of the commands that each worker makes, and forwards."""
    names = worker_names(workers)
    return [f"{name} {what}" for what in ("commands", "forwards") for name in names]
