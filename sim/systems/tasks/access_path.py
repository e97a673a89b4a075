"""Policies that choose the access path of scans: by CPU, or copied ahead by a copy engine.

A scan that says its path itself is left alone. ``regression`` and ``tree`` go by a model of
``numatwin train access-path``; copies that are not coherent are never chosen but by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path as File
from typing import Any, ClassVar

import numpy as np

from ....inputs import InputError, Quantity
from ....inputs.quantities import Duration
from ...control.family import Family
from ...control.policy import Policy
from ...control.policy_spec import PolicySpec
from ...planes.outcome import ControlEvent
from .access_models import AccessModel, load_access_model
from .check import check_access_paths
from .commands import AccessPathObservation, ChoosePath, ScanSeen
from .paths import PATHS
from .program import Path

PERIOD = Quantity(1e-3, 1e-3, 1e-3)
# A copy engine by the name that its makers gave it.
NAMES: Mapping[str, Path] = {
    **{path: path for path in PATHS},
    "gru": "copy-engine",
    "gru-noncoherent": "copy-engine-noncoherent",
}
BY_MODEL = ("regression", "tree")


class AccessPathSpec(PolicySpec):
    """A chooser of access paths. ``model``: the file of ``numatwin train access-path`` that
    ``regression`` and ``tree`` go by.
    """

    model: str | None = None
    period: Duration = PERIOD


@dataclass
class _Chooser:
    """Asks ``by`` for the path of each kind of scan, and orders what has changed."""

    MEMORYLESS: ClassVar[bool] = True
    by: Callable[[ScanSeen], Path]

    def decide(self, observation: AccessPathObservation) -> tuple[ChoosePath, ...]:
        """A command for each kind of scan that should take another path."""
        return tuple(
            ChoosePath(scan.scan, scan.home, path)
            for scan in observation.scans
            if (path := self.by(scan)) != scan.path
        )


@dataclass(frozen=True)
class _Fixed:
    """The same path for all scans."""

    path: Path

    def __call__(self, scan: ScanSeen) -> Path:
        if self.path in scan.paths:
            return self.path
        if len(scan.paths) == 1:
            raise InputError(
                f"access path '{self.path}': the machine has no copy engine",
                expected="a machine with copy_engines, or 'cpu'",
            )
        raise InputError(
            f"access path '{self.path}': copies for scan '{scan.scan}' may be stale",
            expected="a copy engine that makes them, and the table in system.unchanging",
        )


def _oracle(scan: ScanSeen) -> Path:
    """Simulates both."""
    if "copy-engine" not in scan.paths:
        return "cpu"
    return min(("cpu", "copy-engine"), key=scan.seconds)


def _by_model(name: str, model: AccessModel) -> Callable[[ScanSeen], Path]:
    choose = model.by_regression
    if name == "tree":
        if model.tree is None:
            raise ValueError("model: one that was learned online has no tree: expected regression")
        choose = model.tree.chosen

    def by(scan: ScanSeen) -> Path:
        if "copy-engine" not in scan.paths:
            return "cpu"
        features = np.array([[getattr(scan, feature) for feature in model.features]])
        return "copy-engine" if choose(features)[0] else "cpu"

    return by


def _make(name: str, options: Mapping[str, Any]) -> Policy[Any, Any] | None:
    file = options.get("model")
    if file is not None and name not in BY_MODEL:
        raise ValueError(f"model: access path '{name}' uses no model")
    if name in NAMES:
        return _Chooser(_Fixed(NAMES[name]))
    if name == "none":
        return _Chooser(_Fixed("cpu"))
    if name == "oracle":
        return _Chooser(_oracle)
    if name in BY_MODEL:
        if file is None:
            raise ValueError(f"model: access path '{name}' needs a file of 'numatwin train'")
        return _Chooser(_by_model(name, load_access_model(File(file))))
    return None


def _event(command: ChoosePath, policy: str, time_s: float) -> ControlEvent:
    where = "all nodes" if command.home is None else f"node {command.home}"
    return ControlEvent(
        time_s,
        "access-path",
        f"{policy}: {command.scan} of {where} by {command.path}",
        {"policy": policy, "scan": command.scan, "home": command.home, "path": command.path},
    )


ACCESS_PATH = Family(
    name="access-path",
    what="whether threads load what they scan, or a copy engine copies it ahead",
    spec=AccessPathSpec,
    titles={
        "none": "each scan as it says, by CPU where it does not",
        "cpu": "by CPU",
        "copy-engine": "by the copy engine (also called gru)",
        "copy-engine-noncoherent": "by it without coherence, where data cannot change",
        "oracle": "simulates both, and takes the faster one",
        "regression": "the faster one by a regression for each path",
        "tree": "by a decision tree",
    },
    make=_make,
    expected="cpu, copy-engine, copy-engine-noncoherent, oracle, regression or tree",
    check=check_access_paths,
    event=_event,
    types=(AccessPathObservation, ScanSeen, ChoosePath),
)
