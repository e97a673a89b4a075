"""Hashes of what each bundled scenario predicts: has a change of the code changed a result?

    python tests/results/result_hashes.py --store     # writes hashes.json
    python tests/results/result_hashes.py             # compares with it; status 1: differs

Each scenario runs on every plane that predicts it: whole on the flow plane, its beginning on the
planes that play events. A hash is of one part of the Record, every digit of each figure; what is no
result (names of fields, versions, times that a run took) is left out. The stored hashes are of
x86-64 with AVX-512, without OPENBLAS_CORETYPE in the environment. Another processor, or another
core type of OpenBLAS, may round the last digit of a sum differently: there, store the hashes of the
code before the change first.
"""

import argparse
import hashlib
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from numatwin import InputError, Record, Scenario, load_scenario, run_scenario

STORED = Path(__file__).with_name("hashes.json")
PLANES = ("flow", "event", "reference")
ONCE = ("statistics.replications=1", "statistics.warm_up=0 s")
# So much of a scenario is played, by plane and kind of system: thousands of events each.
PLAYED: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("event", "eris"): ("horizon=2 ms",),
    ("event", "commits"): ("horizon=4 ms",),
    ("reference", "eris"): (
        "horizon=100 us",
        "system.threads=1",
        "system.nodes=4",
        "system.buffer_commands=16",
    ),
    ("reference", "commits"): ("horizon=400 us",),
    ("event", "tasks"): ("horizon=1 s",),
    ("reference", "tasks"): ("horizon=10 ms",),
    ("reference", "joins"): ("horizon=6 ms",),
}
# A thousand clients in plain SimPy: a moment of them takes seconds.
SHORTER: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("reference", "nam-rsi-1000n"): ("horizon=8 us",)
}
Hashes = dict[str, str]


def played(name: str, plane: str) -> Scenario:
    """The beginning of the scenario; raises InputError where ``plane`` does not play it."""
    scenario = load_scenario(name)
    more = PLAYED.get((plane, scenario.system.kind), ())
    more = SHORTER.get((plane, name), more)
    if plane != "flow":
        more += ONCE
    return load_scenario(name, plane=plane, settings=more)


def results_of(record: Record) -> Mapping[str, Any]:
    """The parts of a record that are results."""
    return {
        "throughput": record.throughput,
        "operations": record.operations,
        "bandwidth": record.bandwidth_Bps,
        "latency": record.latency_ns,
        "resources": {use.name: use.utilisation for use in record.resources},
        "energy": record.energy_J,
        "why": {name: why.resource for name, why in record.why.items()},
        "control": [(event.time_s, event.kind, event.text) for event in record.control_events],
        "series": {
            name: values
            for name, values in record.series.items()
            if name.startswith(("throughput", "time"))
        },
    }


def hashes_of(record: Record) -> Hashes:
    """A hash of each result."""
    return {
        name: hashlib.sha256(json.dumps(part, sort_keys=True, default=_plain).encode()).hexdigest()[
            :16
        ]
        for name, part in results_of(record).items()
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    return value.tolist()


def found() -> Iterator[tuple[str, Hashes]]:
    """Of each scenario and plane, in order."""
    from numatwin.sim.run.scenario import scenario_names

    for name in scenario_names():
        for plane in PLANES:
            try:
                record = run_scenario(played(name, plane), workers=1)
            except InputError:
                continue  # this plane does not play it
            yield f"{name} on {plane}", hashes_of(record)


def differences(stored: Mapping[str, Hashes], now: Mapping[str, Hashes]) -> list[str]:
    """A line for each run whose results differ, and for each that is only in one of both."""
    lines = []
    for run in sorted({*stored, *now}):
        if run not in stored or run not in now:
            lines.append(f"{run}: only {'now' if run in now else 'stored'}")
            continue
        differing = [part for part, hash_ in stored[run].items() if now[run].get(part) != hash_]
        if differing:
            lines.append(f"{run}: {', '.join(differing)}")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--store", action="store_true", help=f"write {STORED.name}")
    parser.add_argument("--file", type=Path, default=STORED, help="instead of the bundled hashes")
    options = parser.parse_args()
    now: dict[str, Hashes] = {}
    for run, hashes in found():
        now[run] = hashes
        if sys.stderr.isatty():
            print(f"\r{run:60}", end="", file=sys.stderr)
    if options.store:
        options.file.write_text(json.dumps(now, indent=1) + "\n")
        print(f"{len(now)} runs stored in {options.file.name}")
        return 0
    differing = differences(json.loads(options.file.read_text()), now)
    print(*differing, f"{len(now)} runs, {len(differing)} differ", sep="\n")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
