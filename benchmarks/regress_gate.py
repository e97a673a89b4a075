"""How often the gate is wrong: false alarms without a change, and losses of 3% that it misses.

Runs of ``numatwin regress`` on checks of the bundled suite, each with a seed of its own, against a
baseline made with another seed: one that is made anew for each run, and one for all. Then with a
change of code that costs 3% of the throughput, which is measured too: more instructions for each
command that ERIS makes, records that RSI's clients copy more slowly; against a baseline of another
seed, and of the same one, as in CI. Nothing here is a timing but the last line, the bundled suite's.

One JSON object a line, with the counts' intervals (Clopper and Pearson, 95%). By default a few runs;
``--runs 200`` for figures that say something.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import joblib
from scipy import stats

from numatwin.sim.instructions import INSTRUCTIONS
from numatwin.sim.scenario import Scenario, load_scenario
from numatwin.validate.alternatives import Played
from numatwin.validate.baseline import Entry
from numatwin.validate.regress import Result, regress
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
LOSS_RUNS = 100

Entries = dict[str, Entry]


def of_suite(system: str, seed: int) -> Suite:
    return load_suite(SUITE, seed=seed, only=CHECKS[system])


def baseline(suite: Suite) -> Entries:
    return {one.check.name: one.entry for one in regress(suite, {}, update=True, workers=1)}


@contextlib.contextmanager
def changed(system: str, suite: Suite) -> Iterator[Suite]:
    """The suite as it is after the change; one of code, which is undone at the end."""
    if system == "rsi":
        yield replace(
            suite,
            checks=tuple(replace(one, scenario=slower(one.scenario)) for one in suite.checks),
        )
        return
    before = INSTRUCTIONS.generate
    object.__setattr__(INSTRUCTIONS, "generate", GENERATE)
    try:
        yield suite
    finally:
        object.__setattr__(INSTRUCTIONS, "generate", before)


def slower(scenario: Scenario) -> Scenario:
    settings = dict(scenario.settings)
    settings["system"] = {**settings["system"], "copy_bandwidth": COPY}
    from numatwin.sim.scenario import scenario_from_settings

    return scenario_from_settings(settings)


def gate(suite: Suite, entries: Entries) -> list[Result]:
    return list(regress(suite, entries, workers=1))


def worse(results: Sequence[Result]) -> bool:
    return any(result.verdict == "worse" for result in results)


def one_run(system: str, number: int, fixed: Entries) -> Counter[str]:
    """What the gate says in run ``number`` of each kind."""
    found: Counter[str] = Counter()
    before, now = of_suite(system, 2 * number), of_suite(system, 2 * number + 1)
    entries = baseline(before)
    for against, kept in (("fresh", entries), ("fixed", fixed)):
        results = gate(now, kept)
        found[f"{against} false alarm"] += worse(results)
        found[f"{against} undecided"] += any(one.verdict == "undecided" for one in results)
    for how, suite in (("other seed", now), ("same seed", before)):
        with changed(system, suite) as slow:
            first = gate(slow, entries)[0]
        found[f"{how} found"] += first.verdict == "worse"
        found[f"{how} replications"] += first.replications
    return found


def rates(system: str, number: int) -> tuple[float, float]:
    """The throughput of one replication, as it is and after the change, with the same draws."""
    suite = of_suite(system, FIXED_SEED + 1 + number)
    check = suite.checks[0]
    with changed(system, suite) as slow:
        after = played(slow.checks[0].scenario, check.metric)
    return played(check.scenario, check.metric), after


def played(scenario: Scenario, metric: Any) -> float:
    run = Played(scenario, scenario.statistics.warm_up_s or 0.0, 1)
    run.play(1)
    return float(run.values(metric, 1)[0])


def clopper_pearson(count: int, of: int) -> list[float]:
    low = stats.beta.ppf(0.025, count, of - count + 1) if count else 0.0
    high = stats.beta.ppf(0.975, count + 1, of - count) if count < of else 1.0
    return [float(low), float(high)]


def tell(name: str, value: float, unit: str, versus: float, **more: Any) -> None:
    row = {"name": name, "value": value, "unit": unit, "versus": versus, "ratio": value / versus}
    print(json.dumps(row | more), flush=True)


def measure(system: str, runs: int, jobs: int) -> None:
    work = joblib.Parallel(n_jobs=jobs)
    pairs = work(joblib.delayed(rates)(system, k) for k in range(min(runs, LOSS_RUNS)))
    ratios = [after / as_it_is for as_it_is, after in pairs]
    loss = 1.0 - math.fsum(ratios) / len(ratios)
    error = stats.sem(ratios) * stats.t.ppf(0.975, len(ratios) - 1) if len(ratios) > 1 else math.nan
    print(f"{system}: the change costs {100 * loss:.2f}% ±{100 * error:.2f}%", file=sys.stderr)
    fixed = baseline(of_suite(system, FIXED_SEED))
    counts: Counter[str] = Counter()
    for found in work(joblib.delayed(one_run)(system, k, fixed) for k in range(runs)):
        counts.update(found)
    for against in ("fresh", "fixed"):
        count = counts[f"{against} false alarm"]
        tell(
            f"regress gate, {system}, false alarms, {against} baseline of another seed",
            count / runs,
            "of runs",
            FALSE_MAX,
            runs=runs,
            interval=clopper_pearson(count, runs),
            undecided=counts[f"{against} undecided"] / runs,
        )
    for how in ("other seed", "same seed"):
        count = counts[f"{how} found"]
        tell(
            f"regress gate, {system}, a loss of {100 * loss:.2f}% found, baseline of the {how}"
            if how == "same seed"
            else f"regress gate, {system}, a loss of {100 * loss:.2f}% found, baseline of another seed",
            count / runs,
            "of runs",
            FOUND_MIN,
            runs=runs,
            interval=clopper_pearson(count, runs),
            replications=counts[f"{how} replications"] / runs,
        )


def time_of_suite() -> None:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "numatwin", "regress", SUITE], check=True, stdout=-3)
    tell(f"regress {SUITE}", time.perf_counter() - began, "s", SUITE_MAX_S)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=4, help="of each kind")
    parser.add_argument("--jobs", type=int, default=-1, help="processes; by default one a processor")
    parser.add_argument("--system", choices=list(CHECKS), help="only this one, and no timing")
    options = parser.parse_args(arguments)
    for system in [options.system] if options.system else CHECKS:
        measure(system, options.runs, options.jobs)
    if options.system is None:
        time_of_suite()


if __name__ == "__main__":
    main()
