"""Policies that choose the access path of scans: by CPU, or copied ahead by a copy engine.

A scan that says its path itself is left alone. ``regression`` and ``tree`` go by a model of
``numatwin train access-path``; copies that are not coherent are never chosen but by name.

Models that choose the access path of a scan: of its features, by regressions or by a tree.

A file of one is JSON: numbers alone, which are checked, and nothing that is executed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path as File
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, ValidationError

from ....inputs import InputError, Quantity, Strict, read_json, write_json
from ....inputs.quantities import Duration
from ...control.family import Family
from ...control.policy import Policy, PolicySpec
from ...kernel.arrays import Flags, Floats
from ...planes.outcome import ControlEvent
from .commands import AccessPathObservation, ChoosePath, ScanSeen, check_access_paths
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


def _by_model(name: str, model: "AccessModel") -> Callable[[ScanSeen], Path]:
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


FORMAT, VERSION = "numatwin access-path model", 1
FEATURES = ("data_bytes", "latency_ns", "result_bytes", "interconnect_Bps", "engine_copies")
"""Of a scan by one thread: bytes that it reads; latency of a line of theirs; bytes of its results;
background traffic on the interconnect, and copies under way at the copy engine for others."""

Number = Annotated[float, Field(allow_inf_nan=False)]


class Line(Strict):
    """A linear regression of the run time in seconds."""

    weights: Annotated[
        tuple[Number, ...], Field(min_length=len(FEATURES), max_length=len(FEATURES))
    ]
    intercept: Number

    def seconds(self, features: Floats) -> Floats:
        """(N,) of features (N, 5)."""
        return np.asarray(features @ np.array(self.weights) + self.intercept)


class Tree(Strict):
    """A decision tree: inner nodes ask whether a feature is at most a threshold; children come
    after their parents. Leaves have no feature (-1), and say whether the engine is chosen.
    """

    feature: tuple[Annotated[int, Field(ge=-1, lt=len(FEATURES))], ...]
    threshold: tuple[Number, ...]
    below: tuple[int, ...]
    above: tuple[int, ...]
    engine: tuple[bool, ...]

    def _fits(self) -> None:
        count = len(self.feature)
        columns = (self.threshold, self.below, self.above, self.engine)
        if not count or any(len(column) != count for column in columns):
            raise ValueError("expected columns of one length, at least one node")
        for index, asked in enumerate(self.feature):
            if asked >= 0 and not all(
                index < to < count for to in (self.below[index], self.above[index])
            ):
                raise ValueError(f"node {index}: expected children after it")

    def chosen(self, features: Floats) -> Flags:
        """(N,) whether the engine is chosen."""
        reached = np.zeros(len(features), dtype=np.int64)
        asked, threshold = np.array(self.feature), np.array(self.threshold)
        below, above = np.array(self.below), np.array(self.above)
        while (inner := asked[reached] >= 0).any():
            rows = np.flatnonzero(inner)
            node = reached[rows]
            low = features[rows, asked[node]] <= threshold[node]
            reached[rows] = np.where(low, below[node], above[node])
        return np.array(self.engine)[reached]


class AccessModel(Strict):
    """What ``numatwin train access-path`` writes; ``scores`` are for people. ``tree``: none where
    the model was learned online.
    """

    format: Literal["numatwin access-path model"]
    version: Literal[1]
    features: tuple[str, ...]
    machine: str
    on: str
    observations: int
    seed: int
    cpu: Line
    engine: Line
    tree: Tree | None
    scores: dict[str, Any] = Field(default_factory=dict)

    def by_regression(self, features: Floats) -> Flags:
        """(N,) whether the engine's predicted time is the shorter one."""
        return np.asarray(self.engine.seconds(features) < self.cpu.seconds(features))

    def save(self, path: File) -> None:
        """Writes it as JSON."""
        write_json(path, self.model_dump(mode="json"))


def load_access_model(path: File) -> AccessModel:
    """Raises InputError for a file that is none, of another version, or for other features."""
    file = str(path)
    raw = read_json(path, "a model", "one of 'numatwin train'")
    if not isinstance(raw, dict) or raw.get("format") != FORMAT:
        raise InputError("not a model", file, expected=f"format '{FORMAT}'")
    if raw.get("version") != VERSION:
        raise InputError(
            f"a model of version {raw.get('version')!r}", file, expected=f"version {VERSION}"
        )
    features = raw.get("features")
    if features != list(FEATURES):
        listed = ", ".join(map(str, features)) if isinstance(features, list) else str(features)
        raise InputError(
            f"a model for other features: {listed or 'none'}", file, expected=", ".join(FEATURES)
        )
    try:
        return AccessModel.model_validate(raw)
    except ValidationError as failure:
        first = failure.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise InputError(
            f"{where}: {first['msg']}", file, expected="a model as it was written"
        ) from None
