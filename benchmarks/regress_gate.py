"""How often the gate is wrong: false alarms without a change, and losses of 3% that it misses.

Runs of ``numatwin regress`` on checks of the bundled suite, each with a seed of its own, against a
baseline made with another seed: one that is made again for each run, and one for all. Then with a
change that costs 3% of the throughput (the log says how much it does): more instructions for each
command that ERIS makes, records that RSI's clients copy more slowly; against a baseline of another
seed, and of the same one, as in CI. Nothing here is a timing but the last line, the bundled suite.

One JSON object a line; the counts' intervals (Clopper and Pearson, 95%) go to standard error. By
default as many runs as go into a minute, which are few. For figures that say something:
``--seconds 3600 --log FILE``, in pieces if need be: runs that stand in the file are not repeated.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import math
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import joblib
from scipy import stats

from numatwin.sim.run.scenario import Scenario, scenario_from_settings
from numatwin.sim.systems.eris import costs as instructions
from numatwin.validate.baseline import Entry
from numatwin.validate.regress import Result, Sides, regress
from numatwin.validate.suite import Suite, load_suite

SUITE = "policies"
# The check that must see the loss, and what else is read from the same runs.
ERIS, RSI = "buffers-of-128-keep-lookups-fast", "rsi-keeps-its-commits"
CHECKS = {"eris": (ERIS, "buffers-of-128-keep-lookups-prompt"), "rsi": (RSI,)}
# What costs 3%: instructions for making a command; the rate at which clients copy records.
GENERATE = 35.87
COPY = "0.9328 GB/s"
FALSE_MAX, FOUND_MIN, SUITE_MAX_S = 0.01, 0.95, 60.0
FIXED_SEED = 10**6

Entries = dict[str, Entry]


def of_suite(system: str, seed: int) -> Suite:
    return load_suite(SUITE, seed=seed, only=CHECKS[system])


def baseline(suite: Suite) -> Entries:
    found = regress(suite, {}, update=True, sides=Sides(1))
    return {one.check.name: one.entry for one in found}


@contextlib.contextmanager
def changed(system: str, suite: Suite) -> Iterator[Suite]:
    """The suite as it is after the change; one of code, which is undone at the end."""
    if system == "rsi":
        yield replace(
            suite,
            checks=tuple(
                replace(one, scenario=slower(one.scenario))
                for one in suite.checks
                if isinstance(one.scenario, Scenario)
            ),
        )
        return
    # By its module: in another process a name of this file would be a copy of its own.
    counts = instructions.INSTRUCTIONS
    before = counts.generate
    object.__setattr__(counts, "generate", GENERATE)
    try:
        yield suite
    finally:
        object.__setattr__(counts, "generate", before)


def slower(scenario: Scenario) -> Scenario:
    settings = dict(scenario.settings)
    settings["system"] = {**settings["system"], "copy_bandwidth": COPY}
    return scenario_from_settings(settings)


def gate(suite: Suite, entries: Entries, sides: Sides | None = None) -> list[Result]:
    return list(regress(suite, entries, sides=sides or Sides(1)))


def worse(results: Sequence[Result]) -> bool:
    return any(result.verdict == "worse" for result in results)


def one_run(system: str, number: int, fixed: Entries) -> dict[str, float]:
    """What the gate says in run ``number`` of each kind, and what the change costs in it."""
    found: dict[str, float] = {}
    before, now = of_suite(system, 2 * number), of_suite(system, 2 * number + 1)
    entries, sides = baseline(before), Sides(1)
    for against, kept in (("fresh", entries), ("fixed", fixed)):
        results = gate(now, kept, sides)
        found[f"{against} false alarm"] = worse(results)
        found[f"{against} undecided"] = any(one.verdict == "undecided" for one in results)
    for how, suite in (("other seed", now), ("same seed", before)):
        with changed(system, suite) as slow:
            first = gate(slow, entries)[0]
        found[f"{how} found"] = first.verdict == "worse"
        found[f"{how} replications"] = first.replications
    as_it_was = entries[first.check.name].values[: first.replications]
    found["loss"] = 1.0 - math.fsum(first.entry.values) / math.fsum(as_it_was)
    return found


def clopper_pearson(count: int, of: int) -> list[float]:
    low = stats.beta.ppf(0.025, count, of - count + 1) if count else 0.0
    high = stats.beta.ppf(0.975, count + 1, of - count) if count < of else 1.0
    return [float(low), float(high)]


def tell(name: str, value: float, unit: str, versus: float) -> None:
    row = {"name": f"regress_gate/{name}", "value": value, "unit": unit, "versus": versus}
    print(json.dumps({**row, "ratio": value / versus}), flush=True)


def say(text: str) -> None:
    print(f"regress_gate: {text}", file=sys.stderr)


def played(system: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """The runs that the log has, and as many more as the time allows."""
    log = Path(options.log) if options.log else None
    lines = log.read_text().splitlines() if log is not None and log.exists() else []
    known = {row["run"]: row for row in map(json.loads, lines) if row["system"] == system}
    fixed = baseline(of_suite(system, FIXED_SEED))
    end = time.monotonic() + options.seconds

    def to_play() -> Iterator[int]:
        for number in range(options.runs):
            if number not in known and (time.monotonic() < end or (not known and not number)):
                yield number

    work = joblib.Parallel(n_jobs=options.jobs, pre_dispatch="n_jobs", batch_size=1)
    rows = work(joblib.delayed(_kept)(system, number, fixed, log) for number in to_play())
    return [*known.values(), *rows]


def _kept(system: str, number: int, fixed: Entries, log: Path | None) -> dict[str, Any]:
    row = {"system": system, "run": number, **one_run(system, number, fixed)}
    if log is not None:
        with log.open("a") as file:
            file.write(json.dumps(row) + "\n")
    return row


def measure(system: str, options: argparse.Namespace) -> None:
    rows = played(system, options)
    runs = len(rows)
    losses = [row["loss"] for row in rows]
    error = stats.sem(losses) * stats.t.ppf(0.975, runs - 1) if runs > 1 else math.nan
    loss = 100 * math.fsum(losses) / runs
    say(f"{system}: {runs} runs of each kind; the change costs {loss:.2f}% ±{100 * error:.2f}%")

    def tell_share(name: str, key: str, versus: float, mean: str) -> None:
        count = sum(int(row[key]) for row in rows)
        low, high = clopper_pearson(count, runs)
        average = math.fsum(row[mean] for row in rows) / runs
        say(
            f"{name}: {count} of {runs}, {100 * low:.2f}% to {100 * high:.2f}%; "
            f"{mean.split()[-1]}: {average:.3g}"
        )
        tell(name, count / runs, "of runs", versus)

    for against in ("fresh", "fixed"):
        key = f"{against} false alarm"
        tell_share(
            f"{system}/false_alarms/{against}_baseline", key, FALSE_MAX, f"{against} undecided"
        )
    for how in ("other seed", "same seed"):
        name = f"{system}/losses_found/{how.replace(' ', '_')}"
        tell_share(name, f"{how} found", FOUND_MIN, f"{how} replications")
    whole = json.dumps(sorted(rows, key=lambda row: row["run"]), sort_keys=True)
    say(f"{system}: result {hashlib.sha256(whole.encode()).hexdigest()[:16]}")


def time_of_suite() -> None:
    began = time.perf_counter()
    command = [sys.executable, "-m", "numatwin", "regress", SUITE]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    tell(f"time_of_suite/{SUITE}", time.perf_counter() - began, "s", SUITE_MAX_S)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200, help="of each kind, at most")
    parser.add_argument("--seconds", type=float, default=30.0, help="for each system, about")
    parser.add_argument("--log", help="runs that were played, and are not played again")
    parser.add_argument(
        "--jobs", type=int, default=-1, help="processes; by default one a processor"
    )
    parser.add_argument("--system", choices=list(CHECKS), help="only this one, and no timing")
    options = parser.parse_args(arguments)
    for system in [options.system] if options.system else CHECKS:
        measure(system, options)
    if options.system is None:
        time_of_suite()


if __name__ == "__main__":
    main()
