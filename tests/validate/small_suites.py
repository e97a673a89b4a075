"""Small suites for tests: transactions that are played in some hundredths of a second."""

from pathlib import Path

REPLICATIONS = 6
# Four clients, so that what a client itself has to do decides the throughput.
FIELDS = """\
    scenario: nam-fig6-rsi
    settings: {system.clients: 4, horizon: 2 ms, statistics.warm_up: 0.5 ms}
"""
KEEPS = f"  keeps:\n{FIELDS}    metric: throughput.checkout\n"
PROMPT = f"  prompt:\n{FIELDS}    metric: latency_ns.checkout.p99\n    tolerance: 0.05\n"
BOUND = f"  bound:\n{FIELDS}    metric: throughput.checkout\n    at_least: 100 k/s\n"
AGAINST = (
    f"  against:\n{FIELDS}    metric: throughput.checkout\n    tolerance: 0.05\n"
    "    against: {settings: {system.copy_bandwidth: 0.5 GB/s}}\n"
)
FLOW = "  flow:\n    scenario: eris-fig8-amd\n    metric: throughput.lookup\n"
# A copy of records costs more: what the clients do takes longer.
SLOWER = ("system.clients: 4", "system.clients: 4, system.copy_bandwidth: 0.9 GB/s")
FASTER = ("system.clients: 4", "system.clients: 4, system.copy_bandwidth: 1.2 GB/s")


def write(folder: Path, *checks: str, change: tuple[str, str] = ("", "")) -> str:
    """The path of a suite ``mine.yaml`` of these checks, each with that change in its text."""
    text = "".join(check.replace(*change) for check in checks)
    path = folder / "mine.yaml"
    path.write_text(f"name: mine\nreplications: {REPLICATIONS}\nchecks:\n{text}", encoding="utf-8")
    return str(path)
