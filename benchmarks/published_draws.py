"""Predicts published results with draws of all that their sources leave open.

Facts of machines, assumptions and what a source does not tell (``Condition``) are drawn together,
for all results of a source the same, and every result is predicted with each draw. A published
figure is in none of them.

``--write`` stores those that are missing (``validate/published_draws.json``), each as soon as it is
predicted, so that a run that was stopped goes on where it was; ``--again`` forgets them first. Of
results in words, as many draws are predicted as take ``--seconds``. ``numatwin published`` weighs
them by the other results of a source. One JSON object a line: seconds for a result; of what is
stored, how many results lie within 25% and in their 90% intervals, before evidence and given the
others.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import time
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any

import numpy as np
from published_runs import RunsWithDraws, shifted

from numatwin.inputs import DescriptionError, InputError, write_text_atomically
from numatwin.sim.kernel.arrays import Floats
from numatwin.sim.run.assumptions import varied
from numatwin.sim.run.doubts import doubts_of, drawn, drawn_machines, merged, parts_drawn
from numatwin.sim.run.model_error import OTHER, Class
from numatwin.sim.run.record import Record
from numatwin.sim.run.runner import run_scenario
from numatwin.sim.run.scenario import load_scenario
from numatwin.sim.run.uncertainty import DRAWS, with_uncertainty
from numatwin.sim.run.what_if import FLOW
from numatwin.topologies import Machine
from numatwin.validate.published import (
    PUBLISHED,
    STORED,
    Drawn,
    given_others,
    shares,
    source_of,
    stored,
    words_given,
)
from numatwin.validate.results import Condition, Published, Runs
from numatwin.validate.systems.registry import validations

# As many as take some minutes of each.
COUNTS = {"eris": 128, "nam": 64, "gru": 128, "hana": 128}
WORDS_S = 60.0  # of CPU time, for the draws of a result in words


class DrawnRuns(RunsWithDraws):
    """Runs as one of the draws has them. What events cost is not predicted again for each draw of
    the facts: their records move by the shifts of quick predictions (``with_uncertainty``).
    """

    def __init__(self, plane: str, conditions: Sequence[Condition], count: int) -> None:
        super().__init__(plane)
        self.conditions, self.count = conditions, count
        self._drawn: dict[tuple[Any, ...], Record] = {}
        self._machines: dict[str, list[Machine]] = {}

    def choice(self, condition: Condition) -> str:
        """The name of what is taken of what a source leaves open."""
        assert self.draw is not None
        part = drawn(condition.name, self.count)[self.draw]
        return list(condition.choices)[int(part * len(condition.choices))]

    def chosen(self, name: str, otherwise: str) -> str:
        known = {one.name: one for one in self.conditions}
        return otherwise if self.draw is None else self.choice(known[name])

    def machine(self, name: str) -> Machine:
        own = super().machine(name)
        if self.draw is None:
            return own
        if name not in self._machines:
            self._machines[name] = list(drawn_machines(own, self.count)) or [own] * self.count
        return self._machines[name][self.draw]

    def drawn(self, scenario: str, settings: tuple[str, ...], policy: str | None) -> Record:
        assert self.draw is not None
        settings = (*self._settings(scenario), *settings)
        if self.plane == FLOW:
            key = (scenario, settings, policy, self.draw)
            if key not in self._drawn:
                self._drawn[key] = self._played(scenario, settings, policy)
            return self._drawn[key]
        record = Runs.__call__(self, scenario, *settings, policy=policy)
        if (record.scenario_hash,) not in self._drawn:
            loaded = load_scenario(scenario, plane=self.plane, policy=policy, settings=settings)
            self._drawn[(record.scenario_hash,)] = with_uncertainty(record, loaded)
        return shifted(self._drawn[(record.scenario_hash,)], self.draw % DRAWS)

    def _settings(self, scenario: str) -> Iterator[str]:
        for condition in self.conditions:
            if condition.scenarios and re.fullmatch(condition.scenarios, scenario):
                yield from condition.choices[self.choice(condition)]

    def _played(self, scenario: str, settings: Sequence[str], policy: str | None) -> Record:
        loaded = load_scenario(scenario, plane=self.plane, policy=policy, settings=settings)
        doubts = doubts_of(loaded)
        parts = parts_drawn(doubts, self.count)[self.draw]
        with suppress(InputError, DescriptionError):  # facts that contradict each other
            loaded = varied(loaded, merged(doubts, parts))
        return run_scenario(loaded)


Found = Drawn | tuple[str, Floats]
ORDER = list(PUBLISHED)


def sources() -> list[str]:
    """Those with published results."""
    known = (id_ for id_, result in PUBLISHED.items() if result.value is not None)
    return list(dict.fromkeys(map(source_of, known)))


def predicted(chosen: Sequence[str], known: Container[str], words_s: float) -> Iterator[Found]:
    """All results of these sources that are not ``known``: in numbers with all draws of the source,
    none of what is predicted as 0; of those in words whether they come out (1, 0), with as many
    draws as take ``words_s`` seconds of CPU time.
    """
    runs: dict[tuple[str, str], DrawnRuns] = {}
    last = Class(OTHER, FLOW, "scan", OTHER)
    conditions = [one for validation in validations() for one in validation.conditions]
    for id_, result in PUBLISHED.items():
        source, plane = source_of(id_), result.planes[0]
        if source not in chosen or result.value is None or id_ in known:
            continue
        count = COUNTS.get(source, 64)
        made = runs.setdefault((source, plane), DrawnRuns(plane, conditions, count))
        if isinstance(result.value, float):
            if found := made.blind(id_, result, last):
                blind, last = found  # what no run predicts is of the same system as the runs before
                yield Drawn(id_, last, blind, _drawn(made, result, math.inf))
        else:
            yield id_, _drawn(made, result, words_s)


def _drawn(runs: DrawnRuns, result: Published, limit_s: float) -> Floats:
    """What is predicted with each draw; NaN where that cannot be, or was not tried."""
    draws, begin_s = np.full(runs.count, np.nan), time.process_time()
    for draw in range(runs.count):
        if time.process_time() - begin_s > limit_s:
            break
        runs.draw = draw
        with suppress(InputError, DescriptionError, ZeroDivisionError):
            made = result.predict(runs)
            draws[draw] = made.value if made.holds is None else made.holds
    return draws


def write(chosen: Sequence[str], again: bool, words_s: float) -> None:
    """Predict and store what is missing, and what was stored of these sources where ``again``."""
    known = json.loads(STORED.read_text()) if STORED.exists() else {"rows": []}
    rows, words = known["rows"], known.get("words", {})
    if again:
        rows = [row for row in rows if source_of(row["id"]) not in chosen]
        words = {id_: one for id_, one in words.items() if source_of(id_) not in chosen}
    begin_s = time.perf_counter()
    for one in predicted(chosen, {row["id"] for row in rows} | set(words), words_s):
        id_ = one.id if isinstance(one, Drawn) else one[0]
        if isinstance(one, Drawn):
            plain = {"id": id_, "of": asdict(one.of), "blind": one.blind}
            rows.append(plain | {"draws": _plain(one.draws)})
        else:
            words[id_] = _plain(one[1])
        rows.sort(key=lambda row: ORDER.index(row["id"]))
        _store(rows, {key: words[key] for key in sorted(words, key=ORDER.index)})
        end_s = time.perf_counter()
        line = {"name": f"published_draws/{id_}", "value": round(end_s - begin_s, 1), "unit": "s"}
        print(json.dumps(line), flush=True)
        begin_s = end_s
    for kept in (stored, given_others, words_given):
        kept.cache_clear()


def _store(rows: Sequence[Mapping[str, Any]], words: Mapping[str, Any]) -> None:
    text = ",\n".join(json.dumps(row) for row in rows)
    told = ",\n".join(f"{json.dumps(id_)}: {json.dumps(one)}" for id_, one in words.items())
    by = "python benchmarks/published_draws.py --write"
    whole = f'{{"by": "{by}", "rows": [\n{text}\n], "words": {{\n{told}\n}}}}\n'
    write_text_atomically(STORED, whole)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="predict what is not stored")
    parser.add_argument("--again", action="store_true", help="predict what is stored, too")
    parser.add_argument("--only", choices=sources(), help="of this source")
    parser.add_argument("--seconds", type=float, default=WORDS_S, help="for a result in words")
    options = parser.parse_args()
    if options.write or options.again:
        write([options.only] if options.only else sources(), options.again, options.seconds)
    for name, share in shares().items():
        line = {"name": f"published_draws/{name}", "value": round(share, 3), "unit": "1"}
        line |= {"versus": "docs/published.md", "ratio": None}
        print(json.dumps(line), flush=True)


def _plain(draws: Floats) -> list[float | None]:
    return [None if value != value else float(f"{value:.5g}") for value in draws.tolist()]


if __name__ == "__main__":
    main()
