"""What predictions were off by so far: the evidence that intervals are made of, and their coverage.

Evidence is every number that is published or measured and predicted here: results of papers
(``numatwin published``), decisions (``numatwin decisions``), traffic counted in the emulator
(``counted_traffic/``), real runs of our own engines on hosts (``disturbances/``; ``own_runs/``, of
each suite: the host's machine file, and cases), and real engines as they were predicted from their
profiles (``real_engines/``). ``--write`` predicts all but the last again and writes
``sim/run/model_error.json``; ``--only KIND`` leaves the rest of the file as it is. ``--store DIR``
first puts what ``numatwin crossvalidate SUITE --out DIR`` measured into ``own_runs/``.
One JSON object a line: the share of measured figures that 90% intervals hold, each made of the
evidence of all other sources, and how wide they are; of the evidence as it is stored, and with
``--choices`` as they would be with other laws of the model's error.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import joblib
import numpy as np
from counted_traffic import ROWS as COUNTED
from disturbances import CASES, MACHINE
from published_runs import RunsWithDraws, shifted
from real_engines import engine_rows
from scipy.special import stdtr

from numatwin.inputs import InputError, write_text_atomically
from numatwin.sim.run import model_error as model
from numatwin.sim.run.model_error import (
    DEGREES,
    EVIDENCE,
    LATENCY,
    OTHER,
    OTHERS_MOST,
    PRIOR_MEDIAN,
    THROUGHPUT,
    TRAFFIC,
    Class,
    Evidence,
    class_of,
    known_evidence,
)
from numatwin.sim.run.real_planes import NATIVE
from numatwin.sim.run.record import Record
from numatwin.sim.run.runner import run_scenario
from numatwin.sim.run.scenario import load_scenario, scenario_from_settings
from numatwin.sim.run.uncertainty import DRAWS, bounds, shift_of, with_uncertainty
from numatwin.sim.run.what_if import FLOW
from numatwin.topologies import load_machine
from numatwin.validate.crossvalidate.calibration_set import MACHINE_FILE
from numatwin.validate.crossvalidate.result import ROWS_FILE
from numatwin.validate.crossvalidate.session import figure
from numatwin.validate.crossvalidate.suite import Case, load_suite
from numatwin.validate.decision_cases import CaseFile, case_files
from numatwin.validate.decisions_scored import NOT_MODELLED, scored
from numatwin.validate.metrics import Metric
from numatwin.validate.published import PUBLISHED, source_of
from numatwin.validate.results import Runs
from numatwin.validate.trust import AIM, LEVEL, Coverage, coverage, intervals

OWN = CASES.parents[1] / "own_runs"
GROUP_MIN = 20  # figures
# Of models that choose access paths: no predictions of an engine.
NOT_OF_ENGINES = ("gru-tab2", "gru-opt")


class Search(Exception):
    """A result that is searched for asks for other runs with other facts."""


class DoubtedRuns(RunsWithDraws):
    """Runs of the flow plane that move as quick predictions say (``with_uncertainty``)."""

    def __init__(self, plane: str) -> None:
        super().__init__(plane)
        self._doubted: dict[str, Record] = {}

    def drawn(self, scenario: str, settings: tuple[str, ...], policy: str | None) -> Record:
        assert self.draw is not None
        record = Runs.__call__(self, scenario, *settings, policy=policy)
        if record.scenario_hash not in self._doubted:
            if self.draw or self.plane != FLOW:  # of events they would take minutes each
                raise Search
            doubted = with_uncertainty(record, scenario_from_settings(record.settings))
            self._doubted[record.scenario_hash] = doubted
        return shifted(self._doubted[record.scenario_hash], self.draw)


def published() -> Iterator[Evidence]:
    """Numbers of papers, each on the first plane that predicts it; one paper is one source."""
    runs: dict[str, DoubtedRuns] = {}
    for key, result in PUBLISHED.items():
        if not isinstance(result.value, float) or key.startswith(NOT_OF_ENGINES):
            continue
        plane = runs.setdefault(result.planes[0], DoubtedRuns(result.planes[0]))
        found = plane.blind(key, result, Class("tasks", plane.plane, "scan", OTHER))
        if found is None:
            continue
        value, of = found
        facts = [1.0, 1.0]
        try:
            drawn = []
            for plane.draw in range(DRAWS):
                drawn.append(float(result.predict(plane).value) / value)
            facts = bounds(np.array(drawn))
        except Search:
            pass
        yield Evidence(
            key, source_of(key), of, (result.value,) * 2, value, (facts[0], facts[1]),
            result.at_most,
        )  # fmt: skip


def decided(files: Sequence[CaseFile] | None = None) -> Iterator[Evidence]:
    """Ratios and levels of decisions that were measured, by default all that are bundled."""
    for row in scored(case_files() if files is None else files):
        if row["verdict"] == NOT_MODELLED:
            continue
        of, name = Class(**row["of"]), f"{row['id']}: {row['alternative']}"
        source = row["publication"]
        if row["verdict"] != "input":
            ratio = row["predicted_ratio"]
            low, high = (end / ratio for end in row["facts_interval"])
            yield Evidence(
                name, source, of, (row["measured_ratio"][0], row["measured_ratio"][1]), ratio,
                (low, high),
            )  # fmt: skip
        if row["level_error"] is not None:
            low, high = row["level_facts"]
            yield Evidence(
                f"{name}, level", source, replace(of, figure=THROUGHPUT),
                (row["measured"][0], row["measured"][1]), row["predicted"], (low, high),
            )  # fmt: skip


def counted() -> Iterator[Evidence]:
    """Bytes of an operation of our own engines, counted in the emulator."""
    for row in json.loads(COUNTED.read_text()):
        # Of ERIS: a machine, an operation, a placement; of tasks what is stolen, too.
        _, operation, *how = row["scenario"].split()
        system, other = ("eris", "lookup") if len(how) == 1 else ("tasks", "queries")
        of = Class(system, row["plane"], "scan" if operation == "scan" else other, TRAFFIC)
        if min(row["measured"], row["predicted"]) > 0.0:
            yield Evidence(
                f"{row['scenario']}: {row['metric']}, {row['plane']}",
                "counted in the emulator", of, (row["measured"],) * 2, row["predicted"],
            )  # fmt: skip


def of_host() -> Iterator[Evidence]:
    """Real runs of our own engine on one host: the least and largest of the rounds."""
    return _of_cases(CASES, MACHINE, "real runs of one host")


def own_runs() -> Iterator[Evidence]:
    """The same of each suite that is stored."""
    for folder in sorted(OWN.iterdir()):
        source = f"own runs of {folder.name} on one host"
        yield from _of_cases(folder / CASES.name, folder / MACHINE_FILE, source)


def store(folder: Path, under: Path) -> None:
    """Keeps what a cross-validation of a bundled suite measured: the facts of the host's machine
    file, and of each case what it sets, the planes that predict it, and the rounds of each metric.
    """
    found = json.loads((folder / ROWS_FILE).read_text())
    if found["interrupted"]:
        raise InputError(f"{folder}: interrupted", expected="a whole cross-validation")
    into = under / found["suite"]
    path = into / MACHINE_FILE
    into.mkdir(parents=True, exist_ok=True)
    facts, _, _ = (folder / MACHINE_FILE).read_text().partition("\nmeasurements:\n")
    write_text_atomically(path, facts + "\n")
    suite = load_suite(found["suite"], path, load_machine(path))
    kept = [_kept(case, path, found["rows"]) for case in suite.cases]
    text = ",\n".join(json.dumps(case) for case in kept if case["real"])
    write_text_atomically(into / CASES.name, f"[\n{text}\n]\n")


def _kept(case: Case, machine: Path, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    own = case.native.settings
    plain = load_scenario(case.native.name, machine=str(machine), plane=NATIVE).settings
    return {
        "name": case.name,
        "scenario": case.native.name,
        "settings": {
            name: json.dumps(value) for name, value in own.items() if value != plain.get(name)
        },
        "planes": list(case.predicted),
        "real": {row["metric"]: row["values"] for row in rows if row["scenario"] == case.name},
    }


def _of_cases(cases: Path, machine: Path, source: str) -> Iterator[Evidence]:
    # Events only where no rates are predicted: they take minutes.
    tasks = [
        (case, FLOW if FLOW in case["planes"] else case["planes"][0])
        for case in json.loads(cases.read_text())
    ]
    play = joblib.delayed(_of_case)
    played = (play(case, plane, machine, source) for case, plane in tasks)
    for found in joblib.Parallel(n_jobs=2)(played):
        yield from found


def _of_case(case: Mapping[str, Any], plane: str, machine: Path, source: str) -> list[Evidence]:
    settings = [f"{path}={value}" for path, value in case["settings"].items()]
    scenario = load_scenario(
        case["scenario"],
        machine=str(machine),
        plane=plane,
        workload=case.get("workload"),
        policy=case.get("policy"),
        settings=[*settings, "statistics.replications=1"],
    )
    record, found = run_scenario(scenario, workers=1), list[Evidence]()
    if plane == FLOW:
        record = with_uncertainty(record, scenario)
    for name, rounds in case["real"].items():
        metric = Metric.parsed(name)
        value = figure(metric, record)
        if not value:
            continue
        of_figure = LATENCY if metric.path[0] == "latency_ns" else THROUGHPUT
        low, high = bounds(shift_of(record, metric.path))
        found.append(
            Evidence(
                f"{case['name']}: {name}, {plane}", source,
                class_of(record, metric.path[1], of_figure), (min(rounds), max(rounds)), value,
                (low, high),
            )
        )  # fmt: skip
    return found


def of_engines() -> Iterator[Evidence]:
    """Queries and operations of real engines, each engine a source: with a time of its own where
    one was taken, which is not counted, else from counts alone.
    """
    of = Class("tasks", FLOW, "queries", THROUGHPUT)
    for engine, row in engine_rows():
        timed = row.get("timed_s")
        if timed and row["given"]:
            continue
        value_s, _, _, least_s, most_s = timed or row["counted_s"]
        what = [row.get(name) for name in ("query", "operation", "rows", "threads", "clients")]
        name = f"{engine}: {', '.join(str(one) for one in what if one is not None)}"
        rate, facts = 1.0 / row["measured_s"], (value_s / most_s, value_s / least_s)
        yield Evidence(name, engine, of, (rate, rate), 1.0 / value_s, facts)


KINDS: Mapping[str, Callable[[], Iterator[Evidence]]] = {
    "published": published,
    "decisions": decided,
    "counted": counted,
    "host": of_host,
    "own": own_runs,
    "engines": of_engines,
}


def plain(row: Evidence) -> dict[str, Any]:
    """As the file has it."""
    return {name: value for name, value in asdict(row).items() if value is not None}


def score(evidence: Sequence[Evidence]) -> float:
    """The mean interval score of the logarithms: width, and 20 times what lies outside (Gneiting
    and Raftery, Strictly Proper Scoring Rules, JASA 102, 2007); of each source and class the root
    of their rows counts. The smaller, the better.
    """
    of_source = Counter((row.source, row.of) for row in evidence)
    scores = []
    for row, ends in zip(evidence, intervals(evidence), strict=True):
        low, high = np.log(ends)
        outside = max(low - row.error, row.error - high, 0.0)
        scores.append(high - low + 2.0 / (1.0 - LEVEL) * outside)
    counts = [of_source[row.source, row.of] ** -0.5 for row in evidence]
    return float(np.average(scores, weights=counts))


def chosen() -> Iterator[tuple[str, Coverage]]:
    """What intervals hold with other degrees of freedom, with other prior medians of the scale, and
    where evidence of other classes counts more or less.
    """
    own = DEGREES, PRIOR_MEDIAN, OTHERS_MOST
    choices = [(degrees, *own[1:]) for degrees in (1.5, 2.0, 4.0, 8.0, 1e6)]
    choices += [(DEGREES, median, OTHERS_MOST) for median in (0.05, 0.1, 0.4)]
    choices += [(*own[:2], most) for most in (0.5, 1.0, 4.0, 8.0, 1e6)]
    for one in choices:
        degrees, prior, most = one

        def below(scores: Any, degrees: float = degrees) -> Any:
            return stdtr(degrees, scores)

        changes: dict[str, Any] = {
            "DEGREES": degrees,
            "PRIOR_MEDIAN": prior,
            "OTHERS_MOST": most,
            "student_below": below,
        }
        with patch.multiple(model, **changes):
            found, scored = coverage(known_evidence()), score(known_evidence())
        least = min((one.held, one.group) for one in found if one.rows >= GROUP_MIN)
        law = f"{degrees:g} degrees of freedom, prior median {prior:g}, {most:g} rows of others"
        law += " (chosen)" if one == own else ""
        yield (
            f"choice/{law}, at least {least[0]:.2f} of a group ({least[1]}), score {scored:.3f}",
            found[0],
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--choices", action="store_true", help="with other laws of errors, too")
    parser.add_argument("--write", action="store_true", help="predict all evidence again")
    parser.add_argument("--only", choices=KINDS, help="of this kind")
    parser.add_argument("--store", type=Path, metavar="DIR", help="keep a crossvalidate's runs")
    options = parser.parse_args()
    if options.store:
        store(options.store, OWN)
    if options.write:
        kinds = [options.only] if options.only else list(KINDS)
        found = [{"from": kind, **plain(row)} for kind in kinds for row in KINDS[kind]()]
        known = json.loads(EVIDENCE.read_text())["rows"] if EVIDENCE.exists() else []
        rows = [*(row for row in known if row["from"] not in kinds), *found]
        rows.sort(key=lambda row: list(KINDS).index(row["from"]))
        text = ",\n".join(json.dumps(row) for row in rows)
        by = "python benchmarks/model_error.py --write"
        write_text_atomically(EVIDENCE, f'{{"by": "{by}", "rows": [\n{text}\n]}}\n')
        known_evidence.cache_clear()
    shown = [(f"coverage of 90% intervals/{one.group}", one) for one in coverage(known_evidence())]
    for name, one in (*shown, *(chosen() if options.choices else ())):
        line = {
            "name": f"{name}, {one.rows} figures, upper end {one.width:.2f} times the lower",
            "value": round(one.held, 3),
            "unit": "of measured",
            "versus": f"aim {AIM[0]:g} to {AIM[1]:g}",
            "ratio": round(one.held / 0.9, 3),
        }
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
