"""Factors from a command line: ``path=v1,v2,v3`` and ``path=from:to:n[log]``, a grid of all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...inputs import InputError
from ...inputs.settings import SHOWN_MAX
from .base import POLICY, Base, is_whole
from .designs import Design, grid
from .factors import Factor
from .levels import is_single, read_levels

SWEEP_MAX = 1_000_000
LISTED = ("machine", "workload", POLICY)


def sweep_design(
    scenario: str, options: Mapping[str, Any], texts: Sequence[str]
) -> tuple[Base, Design]:
    """The base and the grid of a sweep; raises InputError.

    ``options``: of ``load_scenario``; a machine, workload or policy that lists several (``a,b``) is
    a factor too. A setting with one value is set in all runs.
    """
    kept = {name: value for name, value in options.items() if value is not None}
    lists = {}
    for name in LISTED:
        choice = kept.get(name)
        level = choice[0] if isinstance(choice, (list, tuple)) and len(choice) == 1 else choice
        if isinstance(level, str) and "," in level:
            lists[name] = level
            del kept[name]
    base = Base(scenario, kept)
    base.load()  # what is wrong without any setting is told as it is
    factors = [_factor(base, name, text, f"--{name} {text}") for name, text in lists.items()]
    fixed = [text for text in texts if is_single(text.partition("=")[2])]
    base = replace(base, settings=tuple(fixed))
    for text in texts:
        factor = _set(base, text)
        if text in fixed:
            continue
        if factor.path in (other.path for other in factors):
            raise InputError("set twice", _source(text), token=factor.path)
        factors.append(factor)
    design = grid(factors)
    if design.count > SWEEP_MAX:
        raise InputError(
            "too many runs for a sweep",
            token=f"{design.count:,}",
            expected=f"at most {SWEEP_MAX:,}; a study samples such a space",
        )
    return base, design


def _set(base: Base, text: str) -> Factor:
    source = _source(text)
    path, equals, written = text.partition("=")
    path = ".".join(part.strip() for part in path.split("."))
    if not equals or not all(path.split(".")):
        raise InputError(
            "not a factor", source, expected="path=v1,v2,v3 or path=from:to:n, such as seed=1,2"
        )
    return _factor(base, path, written, source)


def _factor(base: Base, path: str, written: str, source: str) -> Factor:
    whole = is_whole(base.check_path(path, source))
    levels = read_levels(written, source, whole)
    try:
        base.check_values(path, levels.checked, levels.unit)
    except InputError as failure:
        if failure.file is None:
            failure.file = source
        raise
    return Factor(path, levels, whole=whole)


def _source(text: str) -> str:
    return f"--set {text if len(text) <= SHOWN_MAX else text[: SHOWN_MAX - 1] + '…'}"
