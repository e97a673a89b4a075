"""How fast transactions are simulated: RSI with 10,000 clients and 1,000 servers; kernel and SimPy.

One JSON object a line goes to standard output, the hash of each result to standard error. CPU time,
the best of several runs. Costs are those of a fast InfiniBand adapter, rounded: they decide how
many events there are, not how long one takes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from typing import Any

from numatwin.sim._kernel import HistoryChecker, MessageCost
from numatwin.sim.systems.commits.messages import ONE_SIDED_MESSAGES
from numatwin.sim.systems.commits.parameters import CommitParameters, Node
from numatwin.sim.systems.commits.plane import KernelCommitModel
from numatwin.sim.systems.commits.reference.one_sided import OneSidedModel

US = 1_000_000  # ps
ALLOWED_S = 10.0
CLIENTS_PER_MACHINE = 20
CHECKED_PER_S = 200_000
REQUESTS = ("snapshot-read", "read", "cas", "write", "unlock", "bit")


def cluster(clients: int, servers: int) -> CommitParameters:
    machines = -(-clients // CLIENTS_PER_MACHINE)
    thread_ps, wire_ps, nic_ps = 200_000, US, 7_000
    costs = {
        name: (
            MessageCost(
                send_ps=thread_ps if name in REQUESTS else 0,
                receive_ps=0 if name in REQUESTS else thread_ps,
                out_ps=nic_ps,
                wire_ps=wire_ps,
                in_ps=nic_ps,
            ),
        )
        for name in ONE_SIDED_MESSAGES
    }
    return CommitParameters(
        architecture="rsi",
        machines=machines + servers + 1,
        client_machine=tuple(client % machines for client in range(clients)),
        nodes=tuple(Node(machines + n) for n in range(servers + 1)),
        storage=tuple(range(servers)),
        timestamps=servers,
        costs=costs,
        versions=2,
    )


def play(model: Any, until_ps: int) -> tuple[float, str]:
    """CPU seconds, and a hash of what came of it."""
    start = time.process_time()
    model.run(until_ps)
    cpu_s = time.process_time() - start
    result = model.result()
    told = f"{result.commits} {sorted(result.messages.items())} {model.latency_total_ps}"
    return cpu_s, hashlib.sha256(told.encode()).hexdigest()[:16]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--clients", type=int, default=10_000)
    parser.add_argument("--servers", type=int, default=1_000)
    parser.add_argument("--simulated-us", type=int, default=1_000)
    options = parser.parse_args()

    name = f"commits/rsi-{options.clients}x{options.servers}"
    large = cluster(options.clients, options.servers)
    until_ps = options.simulated_us * US
    runs = [play(KernelCommitModel(large, 1), until_ps) for _ in range(options.repeat)]
    cpu_s, hashed = min(runs)
    tell(name, cpu_s, "s", f"allowed: {ALLOWED_S:g} s", ALLOWED_S / cpu_s)
    print(f"{name}: result {hashed}", file=sys.stderr)

    small = cluster(min(options.clients, 100), min(options.servers, 10))
    compiled = min(play(KernelCommitModel(small, 1), until_ps) for _ in range(options.repeat))
    plain = min(play(OneSidedModel(small, 1), until_ps) for _ in range(options.repeat))
    if compiled[1] != plain[1]:
        raise SystemExit("the kernel and the reference plane differ")
    tell(
        "commits/kernel",
        compiled[0],
        "s",
        f"reference plane: {plain[0]:.3g} s",
        plain[0] / compiled[0],
    )
    print(f"commits/kernel: result {compiled[1]}", file=sys.stderr)
    tell_of_checker(small, until_ps, options.repeat)


def tell_of_checker(parameters: CommitParameters, until_ps: int, repeat: int) -> None:
    """Transactions that are checked per CPU second, of a history in memory."""
    model = KernelCommitModel(parameters, 1, traced=True)
    model.run(until_ps)
    rows = model._kernel.trace()
    clients, best_s = len(parameters.client_machine), float("inf")
    for _ in range(repeat):
        checker = HistoryChecker(clients, parameters.records, parameters.versions)
        start = time.process_time()
        checker.add(rows)
        best_s = min(best_s, time.process_time() - start)
    rate = model.commits / best_s
    wanted = "wanted: 200,000 transactions/s"
    tell("commits/checker", rate, "transactions/s", wanted, rate / CHECKED_PER_S)
    print(f"commits/checker: {len(checker.findings)} findings", file=sys.stderr)


def tell(name: str, value: float, unit: str, versus: str, ratio: float) -> None:
    line = {"name": name, "value": value, "unit": unit, "versus": versus, "ratio": round(ratio, 2)}
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
