"""What a run of a commit protocol counted, wherever it ran: its transactions and messages."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ....sim.kernel.arrays import Ints
from ....sim.planes.plane import Experiment
from ....sim.systems.commits.history import CAUSES
from ....sim.systems.commits.spec import CommitSystem
from ...transports import THREADS
from .setup import CommitPlan


@dataclass(frozen=True, eq=False)
class Counted:
    """Sums over all roles since the run began; ``ran_ns``, ``waited_ns`` by role: on a processor,
    and for one (0 where roles are threads)."""

    time_s: float
    commits: int
    given_up: int
    torn: int
    aborts: Ints
    messages: Ints
    bytes: int
    latencies: Ints
    latency_total_ps: int
    ran_ns: Ints
    waited_ns: Ints

    @property
    def ended(self) -> int:
        """Transactions that came to an end, whichever; each try of one that aborts counts."""
        return self.commits + self.given_up + int(self.aborts.sum())

    def since(self, before: "Counted") -> "Counted":
        """What was counted from ``before`` to now."""
        names = self.__dataclass_fields__
        return replace(
            self, **{name: getattr(self, name) - getattr(before, name) for name in names}
        )

    @classmethod
    def of(
        cls, found: Mapping[str, Any], *, time_s: float, ran_ns: Ints, waited_ns: Ints
    ) -> "Counted":
        """What a run's board has counted."""
        numbers = ("commits", "given_up", "torn", "bytes", "latency_total_ps")
        counts: dict[str, Any] = {name: int(found[name]) for name in numbers}
        for name in ("aborts", "messages", "latencies"):
            counts[name] = np.array(found[name], dtype=np.int64)
        return cls(time_s=time_s, **counts, ran_ns=ran_ns, waited_ns=waited_ns)


def engine_facts(scenario: Experiment, plan: CommitPlan, counted: Counted) -> dict[str, Any]:
    """As the event plane's, and what this host did with it."""
    system = scenario.system
    assert isinstance(system, CommitSystem)
    p, aborted, each = plan.parameters, int(counted.aborts.sum()), max(counted.commits, 1)
    sent = dict(zip(p.message_types, counted.messages.tolist(), strict=False))
    ran_ns, waited_ns = int(counted.ran_ns.sum()), int(counted.waited_ns.sum())
    return {
        "architecture": system.architecture,
        "clients": len(p.client_machine),
        "commits": counted.commits,
        "aborts": dict(zip(CAUSES, counted.aborts.tolist(), strict=True)),
        "abort_rate": aborted / max(aborted + counted.commits, 1),
        "given_up": counted.given_up,
        "messages_per_commit": sum(sent.values()) / each,
        "messages_per_commit_by_type": {name: count / each for name, count in sent.items()},
        "bytes_per_commit": counted.bytes / each,
        "native": {
            "transport": plan.transport,
            "processes": 1 if plan.transport == THREADS else plan.roles + 1,
            "processors": plan.processors,
            "scale": scenario.scale,
            "records": p.records,
            "record_bytes": plan.settings["record_bytes"],
            "kept_inserts_per_client_and_server": plan.settings["insert_ring"],
            "pages_mapped_beforehand": plan.settings["populate"],
            "lease_s": plan.lease_ns * 1e-9,
            # Of the time that all roles could have run, what they waited for a processor.
            "waited_for_processors": waited_ns / max(ran_ns + waited_ns, 1),
        },
    }
