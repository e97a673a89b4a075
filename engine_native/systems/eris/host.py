"""The engine of a scenario of ERIS, loaded and running on this host or in a guest."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from ....inputs import InputError
from ....sim.planes.experiment import Experiment
from ....sim.run.runner import Progress
from ....sim.systems.eris.spec import ErisSystem
from ... import _engine
from ..._engine import Engine
from ...host_mapping import HostMapping, map_workers, workers_that_fit
from ...outcomes import SLICE_S, no_memory
from ...typed import HostFacts
from .setup import check_room, engine_setup, phase_setup

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
        self.sizes = self.engine.totals()["object_entries"].astype(np.float64)
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
            now, now_s = int(self.engine.totals()["copied_bytes"].sum()), time.monotonic()
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
