"""Whether posteriors of ``numatwin infer`` hold the truth as often as they say.

Simulation-based calibration (Talts et al., 2018): machines, engines and unknown conditions are
drawn from the priors, and run with hidden values; throughputs and traffic get noise of 5%. Each
truth is looked for among the same draws of the flow plane, a Sobol set that all share. The truths
run on the flow plane, and on the event plane, too (the first ``--events`` of them), where the
planes' difference is part of the noise. One JSON object a line: the share of truths that
90% intervals hold, of unknown conditions, of facts, and of a run that was not measured; how even
the ranks of truths are (the p-value of a test of Kolmogorov and Smirnov, and tenths of the ranks),
and how many draws count in the median.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path

import joblib
import numpy as np
from scipy.special import ndtri
from scipy.stats import kstest, qmc

from numatwin.inputs import DescriptionError, InputError
from numatwin.sim.kernel.arrays import Floats
from numatwin.sim.run.assumptions import varied
from numatwin.sim.run.doubts import merged
from numatwin.sim.run.model_error import THROUGHPUT, TRAFFIC, Class
from numatwin.sim.run.record import part_at
from numatwin.sim.run.runner import bare_record
from numatwin.sim.run.scenario import Scenario, load_scenario
from numatwin.validate.inference import Figure, Problem, Sample
from numatwin.validate.posterior import EXACT, effective, normalised, predictive, quantiles
from numatwin.validate.trust import AIM

SEED, NOISE, PLANES = 11, 0.05, 0.03  # the planes differ by so much
SIZES = (1_000_000, 30_000_000, 1_000_000_000)  # keys of the runs; the last is not measured
# From 5 ms on, event runs of these sizes do the same.
SHORT = ("event_horizon=14 ms", "statistics.warm_up=10 ms", "statistics.replications=1")
SCENARIO = """\
extends: eris-fig8-intel
name: hidden
unknown:
  system.page_size: [4 KiB, 2 MiB]
  machine.engines.eris.lines_in_flight: {from: 1.0, to: 10.0}
"""


def runs_of(plane: str) -> list[Scenario]:
    """Three runs, of two of which throughput and traffic are measured."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "hidden.yaml"
        path.write_text(SCENARIO)
        return [
            load_scenario(
                path, plane=plane, settings=[f"workload.objects.index.keys={size}", *SHORT]
            )
            for size in SIZES
        ]


def problem_of() -> Problem:
    """What is asked of them."""
    spread = float(np.hypot(NOISE, PLANES))
    figures = [
        Figure(
            f"{SIZES[run]} keys", run, at, Class("eris", "flow", "lookup", figure),
            1.0 if run + 1 < len(SIZES) else np.nan, spread,
        )
        for run in range(len(SIZES))
        for at, figure in ((("throughput", "lookup"), THROUGHPUT), (MEMORY, TRAFFIC))
    ]  # fmt: skip
    return Problem(runs_of("flow"), figures, exact=True)


MEMORY = ("bandwidth_Bps", "memory")


def truth_of(problem: Problem, runs: Sequence[Scenario], parts: Floats) -> Floats:
    """(F,) logarithms of all figures of ``runs`` with hidden values; NaN where these cannot be."""
    records = []
    for run, doubts, columns in zip(runs, problem.of_runs, problem.columns, strict=True):
        try:
            records.append(bare_record(varied(run, merged(doubts, parts[columns]))))
        except (InputError, DescriptionError):
            return np.full(len(problem.figures), np.nan)
    found = [
        part_at({figure.path[0]: getattr(records[figure.run], figure.path[0])}, figure.path)
        for figure in problem.figures
    ]
    return np.asarray(np.log(np.array(found, dtype=float)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--truths", type=int, default=200)
    parser.add_argument("--events", type=int, default=200)
    parser.add_argument("--draws", type=int, default=4096)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    problem = problem_of()
    bank = _parts(problem, options.draws, SEED)
    hidden = _parts(problem, options.truths, SEED + 1)
    few = hidden[: options.events]
    predict, run = joblib.delayed(problem.predicted), joblib.delayed(truth_of)
    events = runs_of("event")
    parallel = joblib.Parallel(n_jobs=options.jobs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        logs = np.array(parallel(predict(row) for row in bank))
        truths = np.array(parallel(predict(row) for row in hidden))
        of_events = np.array(parallel(run(problem, events, row) for row in few))
    _score(problem, bank, logs, hidden, truths, "flow")
    if len(few):
        _score(problem, bank, logs, few, of_events, "event")


def _parts(problem: Problem, number: int, seed: int) -> Floats:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of a number that is no power of two
        drawn = qmc.Sobol(len(problem.doubts), scramble=True, seed=seed).random(number)
    return np.asarray(np.clip(drawn, 1e-6, 1.0 - 1e-6))


def _score(
    problem: Problem, bank: Floats, logs: Floats, hidden: Floats, truths: Floats, plane: str
) -> None:
    """Prints how often the truths, run on ``plane``, are held."""
    scores = ndtri(bank)
    sample = Sample(scores, logs, -0.5 * (scores**2).sum(1))
    rng = np.random.default_rng(SEED)
    held: dict[str, list[bool]] = {}
    ranks, sizes = [], []
    known = np.isfinite(logs).all(1)
    for row, truth in zip(hidden, truths, strict=True):
        if not np.isfinite(truth).all():
            continue
        noise = NOISE * rng.standard_normal(len(problem.seen))
        problem.logs = truth[problem.seen] + noise
        log_weights = np.where(known, problem.log_weights(sample), -np.inf)
        weights = normalised(log_weights)
        sizes.append(effective(weights))
        for k, doubt in enumerate(problem.doubts):
            low, high = quantiles(bank[:, k], weights, [0.05, 0.95])
            kind = f"unknown {doubt.setting}" if doubt.named else "facts"
            held.setdefault(kind, []).append(low <= row[k] <= high)
            if doubt.named:
                ranks.append(float(weights @ (bank[:, k] <= row[k])))
        low, high = predictive(logs[:, -2], log_weights, EXACT, None, [0.05, 0.95])
        held.setdefault("a run that was not measured", []).append(low <= truth[-2] <= high)
    for name, ones in held.items():
        share, aim = sum(ones) / len(ones), f"aim {AIM[0]:g} to {AIM[1]:g}"
        print(json.dumps(_line(f"{plane}: {name}, {len(ones)}", share, aim)))
    even = float(kstest(ranks, "uniform").pvalue)
    print(json.dumps(_line(f"{plane}: p-value of even ranks", even, "at least 0.01")))
    tenths = np.histogram(ranks, 10, (0.0, 1.0))[0] / len(ranks)
    print(json.dumps(_line(f"{plane}: largest tenth of the ranks", float(tenths.max()), "0.1")))
    print(json.dumps(_line(f"{plane}: draws that count, median", float(np.median(sizes)), "20")))


def _line(name: str, value: float, versus: str) -> dict[str, object]:
    name = f"inference_calibration/{name}"
    return {"name": name, "value": round(value, 3), "unit": "1", "versus": versus, "ratio": None}


if __name__ == "__main__":
    main()
