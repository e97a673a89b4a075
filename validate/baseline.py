"""Baselines: the figures that a suite's checks had, kept in a file beside it.

A file is of one version of numatwin and knows under which conditions (machine, workload, horizon …)
each figure was seen; compared is like with like only. Policies and the engine's parameters may be
other ones: that is what is being checked.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError

from .._version import __version__
from ..inputs import InputError, Strict, check_regular
from ..inputs.atomic import write_text_atomically
from ..sim.scenario import Scenario
from .suite import conditions

SCHEMA = 1
UPDATE = "run 'numatwin regress' with --update to make it anew"

Finite = Annotated[float, Field(allow_inf_nan=False)]


@dataclass(frozen=True)
class Entry:
    """What a check had: the figure of each replication, or the one of an exact run.

    ``conditions``: a digest of each condition, by name.
    """

    metric: str
    seed: int
    exact: bool
    warm_up_s: float
    values: tuple[float, ...]
    conditions: Mapping[str, str]


class _Entry(Strict):
    metric: str
    seed: int
    exact: bool
    warm_up_s: Finite
    values: Annotated[tuple[Finite, ...], Field(min_length=1, max_length=100_000)]
    conditions: dict[str, str]


class _File(Strict):
    schema_: Annotated[int, Field(alias="schema")]
    version: str
    suite: str
    checks: dict[str, _Entry]


def digests(scenario: Scenario) -> dict[str, str]:
    """A digest of each condition of a scenario."""
    return {
        key: hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]
        for key, value in conditions(scenario).items()
    }


def load_baseline(path: Path) -> dict[str, Entry]:
    """The entries of the file by check; raises InputError, for another version's too."""
    try:
        check_regular(path)
        raw = json.loads(path.read_text(encoding="utf-8"))
    except OSError as failure:
        raise InputError(
            f"cannot be read: {failure.strerror}", str(path), expected=UPDATE
        ) from None
    except (ValueError, RecursionError) as failure:
        line = getattr(failure, "lineno", None)
        raise InputError("not a baseline: not JSON", str(path), line) from None
    found = raw.get("schema") if isinstance(raw, dict) else None
    if found != SCHEMA or isinstance(found, bool):
        raise InputError(
            "not a baseline of this version",
            str(path),
            token=f"schema {found}",
            expected=f"schema {SCHEMA}; {UPDATE}",
        )
    try:
        read = _File.model_validate(raw)
    except ValidationError as failure:
        first = failure.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise InputError(f"not a baseline: {place}: {first['msg']}", str(path)) from None
    if read.version != __version__:
        raise InputError(
            f"made by numatwin {read.version}, whose figures may be others",
            str(path),
            expected=f"one made by {__version__}; {UPDATE}",
        )
    return {name: Entry(**entry.model_dump()) for name, entry in read.checks.items()}


def save_baseline(path: Path, suite: str, entries: Mapping[str, Entry]) -> None:
    """Writes the file, whole or not at all; raises InputError."""
    whole: dict[str, Any] = {
        "schema": SCHEMA,
        "version": __version__,
        "suite": suite,
        "checks": {name: asdict(entry) for name, entry in sorted(entries.items())},
    }
    write_text_atomically(path, json.dumps(whole, indent=1, allow_nan=False) + "\n")


def check_fits(entry: Entry, metric: str, scenario: Scenario, name: str, path: Path) -> None:
    """Raises InputError where ``entry`` is of other conditions or of another metric."""

    def refuse(what: str) -> InputError:
        return InputError(f"check '{name}': {what}", str(path), expected=UPDATE)

    if entry.metric != metric:
        raise refuse(f"its baseline is of metric {entry.metric}, not {metric}")
    now = digests(scenario)
    names = {"machine": scenario.machine.name, "workload": scenario.workload.name}
    for key in dict.fromkeys((*names, *now, *entry.conditions)):
        if now.get(key) != entry.conditions.get(key):
            named = f" '{names[key]}'" if key in names else ""
            raise refuse(f"its baseline was made with another {key}{named}")
