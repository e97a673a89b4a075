"""Baselines: stored figures of a suite's checks, in a file in its folder.

A file is of one version of numatwin and knows under which conditions (scenario, machine, workload,
horizon …) each figure was seen; compared is like with like only. Policies and the engine's
parameters may be other ones: that is what is being checked.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError
from pydantic.dataclasses import dataclass

from .._version import __version__
from ..inputs import InputError, Strict, read_json, write_json
from ..sim.run.scenario import Scenario
from ..workloads.keys import Recorded
from .suite import LoadedCheck, Suite

SCHEMA = 1
REMEDY = "made by 'numatwin regress SUITE --update'"

Finite = Annotated[float, Field(allow_inf_nan=False)]


@dataclass(config=Strict.model_config)
class Entry:
    """What a check had: the figure of each replication, or the one of an exact run.

    ``conditions``: a digest of each condition, by name.
    """

    metric: str
    seed: int
    exact: bool
    warm_up_s: Annotated[Finite, Field(ge=0)]
    values: Annotated[tuple[Annotated[Finite, Field(ge=0)], ...], Field(min_length=1)]
    conditions: dict[str, str]


class _File(Strict):
    schema_: Annotated[int, Field(alias="schema")]
    version: str
    suite: str
    checks: dict[str, Entry]


# Compared otherwise below, of no matter for figures, or just what a check is about.
_OF_A_MEASUREMENT = ("warnings", "host", "measurements")  # which no plane reads
_LEFT_OUT = ("name", "workload", "system", "policies", "title", "source", "notes", "seed")


def digests(scenario: Scenario) -> dict[str, str]:
    """A digest of each condition of a scenario, the same wherever its files lie."""
    found: dict[str, Any] = {
        "scenario": scenario.name,
        "kind of system": scenario.system.kind,
        "workload": _workload(scenario),
    }
    found |= {key: value for key, value in scenario.settings.items() if key not in _LEFT_OUT}
    machine = found["machine"]
    found["machine"] = {key: machine[key] for key in machine if key not in _OF_A_MEASUREMENT}
    return {
        key: hashlib.sha256(json.dumps(_facts(value), sort_keys=True).encode()).hexdigest()[:16]
        for key, value in found.items()
    }


def _facts(value: Any) -> Any:
    """Without words about it, and without what is empty, such as fields that files do not have."""
    if isinstance(value, Mapping):
        known = {key: _facts(part) for key, part in value.items() if not _is_words(key, part)}
        return {key: part for key, part in known.items() if part not in (None, "", [], {})}
    return [_facts(part) for part in value] if isinstance(value, (list, tuple)) else value


def _is_words(key: str, part: Any) -> bool:
    return (key in ("title", "source") and isinstance(part, str)) or (
        key == "notes" and isinstance(part, (list, tuple))
    )


def _workload(scenario: Scenario) -> Any:
    """The workload's description, with what its files hold in place of where they lie."""
    workload = deepcopy(scenario.settings["workload"])
    for part in (workload, *workload.get("phases", ())):
        for operation in part["operations"].values():
            if "file" in operation.get("keys", ()):
                del operation["keys"]["file"]
    return [workload, list(_recorded(scenario))]


def _recorded(scenario: Scenario) -> Iterator[str]:
    for phase in scenario.workload.phases:
        for operation in phase.operations.values():
            if isinstance(operation.keys, Recorded):
                density = operation.keys.density()
                whole = density.breaks.tobytes() + density.mass.tobytes()
                yield hashlib.sha256(whole).hexdigest()


def load_baseline(path: Path) -> dict[str, Entry]:
    """The entries of the file by check; raises InputError, for another version's too."""
    raw = read_json(path, "a baseline", f"one {REMEDY}")
    found = raw.get("schema") if isinstance(raw, dict) else None
    if found != SCHEMA or isinstance(found, bool):
        raise InputError(
            "not a baseline of this version",
            str(path),
            token="no schema" if found is None else f"schema {found}",
            expected=f"schema {SCHEMA}, {REMEDY}",
        )
    try:
        read = _File.model_validate(raw)
    except ValidationError as failure:
        first = failure.errors()[0]
        place_ = ".".join(map(str, first["loc"]))
        raise InputError(f"not a baseline: {place_}: {first['msg']}", str(path)) from None
    if read.version != __version__:
        raise InputError(
            "the baseline is of another version of numatwin, whose figures may be others",
            str(path),
            token=read.version,
            expected=f"{__version__}: one {REMEDY}",
        )
    return read.checks


def save_baseline(path: Path, suite: str, entries: Mapping[str, Entry]) -> None:
    """Writes the file, whole or not at all; raises InputError."""
    whole: dict[str, Any] = {
        "schema": SCHEMA,
        "version": __version__,
        "suite": suite,
        "checks": {name: asdict(entry) for name, entry in sorted(entries.items())},
    }
    write_json(path, whole)


def baseline_of(suite: Suite, path: Path) -> dict[str, Entry]:
    """The entries that the suite's checks want; raises InputError where one does not fit."""
    checks = [check for check in suite.checks if check.kind == "baseline"]
    if not checks:
        return {}
    entries = load_baseline(path)
    for check in checks:
        check_fits(entries, check, path)
    return {check.name: entries[check.name] for check in checks}


def what_fits(suite: Suite, path: Path) -> tuple[dict[str, Entry], list[InputError]]:
    """The entries that fit, and why others do not: for a baseline that is about to be replaced."""
    try:
        entries = load_baseline(path)
    except InputError as failure:
        return {}, [failure]
    fitting, failures = {}, []
    for check in suite.checks:
        if check.name in entries:
            try:
                check_fits(entries, check, path)
                fitting[check.name] = entries[check.name]
            except InputError as failure:
                failures.append(failure)
    return fitting, failures


def check_fits(entries: Mapping[str, Entry], check: LoadedCheck, path: Path) -> None:
    """Raises InputError where the check has no entry, or one of other conditions or metric."""

    def refuse(what: str) -> InputError:
        expected = f"a baseline {REMEDY}"
        return InputError(f"check '{check.name}': {what}", str(path), expected=expected)

    if check.name not in entries:
        raise refuse("it has no baseline")
    entry, scenario = entries[check.name], check.scenario
    assert isinstance(scenario, Scenario)  # else it has a bound
    if entry.metric != str(check.metric):
        raise refuse(f"its baseline is of metric {entry.metric}, not of {check.metric}")
    now = digests(scenario)
    names = {
        "scenario": scenario.name,
        "machine": scenario.machine.name,
        "workload": scenario.workload.name,
    }
    for key in dict.fromkeys((*names, *now, *entry.conditions)):
        if now.get(key) != entry.conditions.get(key):
            difference = f"{key} than '{names[key]}' as it is now" if key in names else key
            raise refuse(f"its baseline was made with another {difference}")
