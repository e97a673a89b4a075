"""What each disturbance of a host is worth: predictions with it and without, against real runs.

``disturbances/`` keeps one cross-validation of a host (``numatwin crossvalidate``): its machine
file (``machine.yaml``) and, of each case, its scenario and what five rounds of real runs came to
(``cases.json``). Here only predictions vary: with all disturbances of the machine file, and with
each left out in turn, which takes its part from the file and changes no model. An error is that of
the prediction to the median of the rounds. A disturbance stays a part of numatwin where it makes
the median error of throughputs smaller by 2 points, or that of p99 latencies by 5.

``errors.json`` keeps the errors, those also of disturbances that did not pay and are no longer
there (``retired``: predicted by the last version that had them, ``by``). ``--write`` writes the
errors of this version there, and the table of all into its page. One JSON object a line goes
to standard output: a median error without a disturbance, against the one with all.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import joblib
import numpy as np

from numatwin.sim.run.runner import run_scenario
from numatwin.sim.run.scenario import load_scenario, scenario_from_settings

HERE = Path(__file__).parent / "disturbances"
MACHINE, CASES, ERRORS = HERE / "machine.yaml", HERE / "cases.json", HERE / "errors.json"
PAGE = HERE.parents[1] / "docs" / "model" / "one-host.md"
BEGIN, END = "<!-- benchmarks/disturbances.py --write -->\n", "<!-- end -->\n"
ALL = "nothing"
GAIN_MIN = {"throughput": 2.0, "p99": 5.0}
KINDS = {"throughput": "throughput.", "p99": "latency_ns."}
PLANES = ("all", "flow", "event")

Machine = dict[str, Any]
Errors = dict[str, dict[str, list[float]]]
"""By kind of figure and plane: median and 90th percentile in percent, and the number of rows."""


def _without_interruptions(machine: Machine) -> Machine:
    return {name: part for name, part in machine.items() if name != "interruptions"}


LEFT_OUT: Mapping[str, Callable[[Machine], Machine]] = {
    ALL: lambda machine: machine,
    "interruptions": _without_interruptions,
}


def predicted(case: Mapping[str, Any], plane: str, left_out: str, replications: int) -> Any:
    """The figures that a plane predicts of a case, by the names of metrics."""
    scenario = load_scenario(
        case["scenario"],
        machine=str(MACHINE),
        plane=plane,
        workload=case.get("workload"),
        policy=case.get("policy"),
        settings=[
            *(f"{path}={value}" for path, value in case["settings"].items()),
            f"statistics.replications={replications}",
        ],
    )
    machine = LEFT_OUT[left_out](scenario.settings["machine"])
    made = scenario_from_settings({**scenario.settings, "machine": machine})
    record = run_scenario(made, workers=1)
    found = {f"throughput.{name}": value for name, value in record.throughput.items()}
    latencies = record.latency_ns or {}
    return found | {
        f"latency_ns.{name}.p99": one["p99"] for name, one in latencies.items() if one is not None
    }


def errors_of(rows: Sequence[tuple[Mapping[str, Any], str, Mapping[str, float | None]]]) -> Errors:
    """Of predictions: each with its case and its plane."""
    found: dict[str, dict[str, list[float]]] = {}
    for case, plane, figures in rows:
        for metric, rounds in case["real"].items():
            value, real = figures.get(metric), median(rounds)
            if value is None:
                continue
            kind = next(kind for kind, start in KINDS.items() if metric.startswith(start))
            for of in ("all", plane):
                found.setdefault(kind, {}).setdefault(of, []).append(abs(value - real) / real)
    return {
        kind: {plane: _summary(of_plane) for plane, of_plane in by_plane.items()}
        for kind, by_plane in found.items()
    }


def _summary(errors: Sequence[float]) -> list[float]:
    ends = 100.0 * np.quantile(errors, [0.5, 0.9])
    return [*(round(float(end), 1) for end in ends), len(errors)]


def table(errors: Mapping[str, Any]) -> str:
    """In Markdown: of each version a row for each disturbance that is left out."""
    return "\n".join([*_rows(errors["retired"]), "", *_rows(errors["present"])]) + "\n"


def _rows(of_version: Mapping[str, Any]) -> Iterator[str]:
    rows: Mapping[str, Errors] = of_version["errors"]
    planes = [("throughput", plane) for plane in PLANES] + [("p99", "event")]
    yield (
        f"| left out ({of_version['by']}) | "
        + " | ".join(f"{kind}, {plane} ({rows[ALL][kind][plane][2]:g})" for kind, plane in planes)
        + " | gain |"
    )
    yield "| --- |" + " --: |" * len(planes) + " --- |"
    for name, found in rows.items():
        figures = [found[kind][plane] for kind, plane in planes]
        told = [f"{middle:.1f}, {most:.1f}" for middle, most, _ in figures]
        yield f"| {name} | " + " | ".join(told) + f" | {_verdict(rows[ALL], found, name)} |"


def _verdict(whole: Errors, without: Errors, name: str) -> str:
    if name == ALL:
        return ""
    gains = {kind: without[kind]["all"][0] - whole[kind]["all"][0] for kind in KINDS}
    told = ", ".join(f"{gain:+.1f}" for gain in gains.values())
    return f"**{told}**" if any(gains[kind] >= GAIN_MIN[kind] for kind in KINDS) else told


def written(page: str, errors: Mapping[str, Any]) -> str:
    """The page with the present table."""
    first, rest = page.split(BEGIN)
    return first + BEGIN + table(errors) + END + rest.split(END, 1)[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", default="", help="those whose names begin so")
    parser.add_argument("--replications", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--write", action="store_true", help=f"{ERRORS.name} and {PAGE.name}")
    options = parser.parse_args()
    cases = [one for one in json.loads(CASES.read_text()) if one["name"].startswith(options.cases)]
    tasks = [
        (left_out, case, plane)
        for left_out in LEFT_OUT
        for case in cases
        for plane in case["planes"]
    ]
    play = joblib.delayed(predicted)
    played = joblib.Parallel(n_jobs=options.jobs)(
        play(case, plane, left_out, options.replications) for left_out, case, plane in tasks
    )
    rows: dict[str, list[Any]] = {}
    for (left_out, case, plane), figures in zip(tasks, played, strict=True):
        rows.setdefault(left_out, []).append((case, plane, figures))
    found = {left_out: errors_of(of_variant) for left_out, of_variant in rows.items()}
    for left_out, errors in found.items():
        for kind in errors if left_out != ALL else ():
            with_all, without = (one[kind]["all"][0] for one in (found[ALL], errors))
            line = {
                "name": f"disturbances/{kind} without {left_out}",
                "value": without,
                "unit": "%",
                "versus": f"with all disturbances: {with_all:g}%",
                "ratio": round(without / max(with_all, 0.1), 2),
            }
            print(json.dumps(line), flush=True)
    if options.write:
        known = json.loads(ERRORS.read_text())
        known["present"]["errors"] = found
        ERRORS.write_text(json.dumps(known, indent=1) + "\n")
        PAGE.write_text(written(PAGE.read_text("utf-8"), known), "utf-8")


if __name__ == "__main__":
    main()
