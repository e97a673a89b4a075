"""Whether calibrated intervals hold what they say, on the real runs that ``disturbances/`` keeps.

Each of its cases is predicted on each plane, with its interval: as far as the plane's own draws
take it, as the stored machine file gives no fact a range. ``validate.crossvalidate.coverage``
widens the intervals of a run by what the predictions of all other runs missed by, never by its own.
One JSON object a line on standard output: the share of measured values that intervals of 90% hold,
by kind of figure, against the share that they hold before they are calibrated, and half their
width.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from typing import Any

import joblib
from disturbances import CASES, MACHINE

from numatwin.sim.run.record import Record
from numatwin.sim.run.runner import run_scenario
from numatwin.sim.run.scenario import load_scenario
from numatwin.sim.run.statistics import Interval
from numatwin.validate.crossvalidate.coverage import COVERAGE_AIM, coverage_of
from numatwin.validate.crossvalidate.rows import Row, measured_interval
from numatwin.validate.crossvalidate.session import figure, kind_of
from numatwin.validate.metrics import Metric


def rows_of(case: Mapping[str, Any], plane: str, replications: int) -> list[Row]:
    """A row for each figure of a case that was measured, and that the plane predicts."""
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
    record = run_scenario(scenario, workers=1)
    rows = []
    for name, rounds in case["real"].items():
        metric = Metric.parsed(name)
        if (value := figure(metric, record)) is None:
            continue
        rows.append(
            Row(
                scenario=case["name"],
                group=case["name"].partition(":")[0],
                plane=plane,
                metric=name,
                kind=kind_of(metric),
                unit=metric.unit,
                measured=measured_interval(rounds),
                predicted=_interval(metric, record, value),
                set="test",
                values=tuple(rounds),
            )
        )
    return rows


def _interval(metric: Metric, record: Record, value: float) -> Interval:
    drawn = metric.interval(record) or (value, value)
    return Interval(value, min(value, *drawn), max(value, *drawn))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", default="", help="those whose names begin so")
    parser.add_argument("--planes", default="flow,event", help="those that predict")
    parser.add_argument("--replications", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    cases = [one for one in json.loads(CASES.read_text()) if one["name"].startswith(options.cases)]
    planes = options.planes.split(",")
    tasks = [(case, plane) for case in cases for plane in case["planes"] if plane in planes]
    play = joblib.delayed(rows_of)
    played = joblib.Parallel(n_jobs=options.jobs)(
        play(case, plane, options.replications) for case, plane in tasks
    )
    rows = [row for of_case in played for row in of_case]
    for one in coverage_of(rows):
        before = [row.interval_holds for row in rows if row.kind == one.kind]
        line = {
            "name": f"coverage/{one.kind}, {one.rows} rows, ± {one.half:.0%}",
            "value": round(one.held, 3),
            "unit": "of measured",
            "versus": f"aim {COVERAGE_AIM[0]:g} to {COVERAGE_AIM[1]:g}; not calibrated: "
            f"{sum(before) / len(before):.3f}",
            "ratio": round(one.held / 0.9, 3),
        }
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
