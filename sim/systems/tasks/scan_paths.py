"""Current paths of scans, and observations of choosers; the same on all planes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from ...machine.copy_engines import NONE, nearest_engines
from ...machine.costs import LINE_BYTES, CostModel
from .commands import AccessPathObservation, ChoosePath, ScanSeen
from .engine_parameters import initial_paths
from .layout import PartState
from .paths import PATHS
from .program import Path, Program, Stage
from .single_scans import FlowScans


class ScanPaths:
    """Of a program on one machine. ``current``: by stage and home, all nodes first.

    ``unchanging``: tables whose copies need not be coherent. ``policy``: who chooses; one that has
    nothing to choose from is a warning of the costs.
    """

    def __init__(
        self, program: Program, costs: CostModel, unchanging: Sequence[str], policy: str
    ) -> None:
        self.program, self.costs, self.unchanging = program, costs, frozenset(unchanging)
        self.nodes = len(costs.machine.nodes)
        # Threads that are moved have no engine near: their scans go by CPU.
        pinned = program.scheduling.affinity == "core"
        able = pinned and bool(costs.machine.copy_engines)
        self.current = initial_paths(program, self.nodes) if able else ()
        self._engines = nearest_engines(costs.machine)
        self._flows: dict[int, FlowScans] = {}
        if policy != "none" and not self._open:
            costs.warnings.append(
                f"policy access-path={policy} chooses nothing: no scan by pinned threads leaves "
                "its path open (path: null)"
            )

    @cached_property
    def _open(self) -> dict[tuple[str, int | None], tuple[int, Stage]]:
        found: dict[tuple[str, int | None], tuple[int, Stage]] = {}
        pinned, place = self.program.scheduling.affinity == "core", 0
        for query in self.program.queries:
            for stage in query.stages:
                # What a scan says itself, no policy changes.
                if pinned and stage.chunk_entries > 0 and stage.path is None:
                    for home in (None, *range(self.nodes)):
                        found[f"{query.name}/{stage.name}", home] = place, stage
                place += 1
        return found

    def seen(
        self,
        time_s: float,
        parts: Sequence[tuple[str, Sequence[PartState]]],
        workers: Sequence[int],
    ) -> AccessPathObservation:
        """Kinds of scans whose path is open, where parts of their tables lie now."""
        by_table = dict(parts)
        found: dict[tuple[str, int | None], ScanSeen] = {}
        for (name, home), (place, stage) in self._open.items():
            assert stage.table is not None
            table = self.program.tables[stage.table]
            whole = by_table[table.name]
            here = [part for part in whole if part.node == home]
            if here:
                seen = self._scan(name, home, place, stage, table.name, here, whole, workers)
                found[name, home] = seen
        return AccessPathObservation(time_s, tuple(found.values()))

    def _scan(
        self,
        name: str,
        home: int | None,
        place: int,
        stage: Stage,
        table: str,
        here: Sequence[PartState],
        of_table: Sequence[PartState],
        workers: Sequence[int],
    ) -> ScanSeen:
        node = self._thread(home, workers)
        rows = sum(part.rows for part in here) / len(here)
        total = sum(part.rows for part in of_table)
        hint = stage.concurrency or self.program.scheduling.concurrency or sum(workers)
        entries = max(rows / max(int(hint * rows / total), 1), 1.0)
        memory = stage.cost.memory
        read = sum(use.read for use in memory if use.place == "part") * LINE_BYTES
        written = sum(use.written for use in memory) * LINE_BYTES
        idle = self.costs.idle_s[node]
        latency_s = float(np.nanmean(idle)) if home is None else float(idle[home])
        flows = self._of(node)
        over, through = flows.traffic(self.program.background)
        paths: list[Path] = ["cpu"]
        engine = self._engines[node]
        if engine != NONE:
            paths.append("copy-engine")
            free = self.costs.machine.copy_engines[engine].non_coherent_Bps is not None
            if free and table in self.unchanging:
                paths.append("copy-engine-noncoherent")
        number = 0 if home is None else home + 1
        path = PATHS[self.current[place * (self.nodes + 1) + number]] if self.current else "cpu"
        background = self.program.background

        def played(by: Path) -> float:
            # Memory of all nodes in turn: on average.
            homes = [home] if home is not None else list(range(self.nodes))
            amounts = np.array([entries])
            times = [flows.rate(stage, home, by, background).seconds(amounts) for home in homes]
            return float(np.mean(times))

        return ScanSeen(
            scan=name,
            home=home,
            node=node,
            data_bytes=entries * read,
            latency_ns=latency_s * 1e9,
            result_bytes=entries * written,
            interconnect_Bps=over,
            engine_copies=through,
            path=path,
            paths=tuple(paths),
            seconds=played,
        )

    def _thread(self, home: int | None, workers: Sequence[int]) -> int:
        """The node of the thread: where the part lies, or the nearest one with workers."""
        able = [k for k, count in enumerate(workers) if count]
        if home is None or workers[home]:
            return able[0] if home is None else home
        latency_s = self.costs.idle_s[:, home]
        return min(able, key=lambda k: (latency_s[k], k))

    def _of(self, node: int) -> FlowScans:
        if node not in self._flows:
            self._flows[node] = FlowScans(self.costs, node)
        return self._flows[node]

    def choose(self, command: ChoosePath) -> None:
        """From now on scans of that kind take the path."""
        place, _ = self._open[command.scan, command.home]
        number = 0 if command.home is None else command.home + 1
        paths = list(self.current)
        paths[place * (self.nodes + 1) + number] = PATHS.index(command.path)
        self.current = tuple(paths)
