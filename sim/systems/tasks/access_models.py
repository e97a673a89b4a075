"""Models that choose the access path of a scan: of its features, by regressions or by a tree.

A file of one is JSON: numbers alone, which are checked, and nothing that is executed.
"""

from __future__ import annotations

from pathlib import Path as File
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field, ValidationError, model_validator

from ....inputs import InputError, Strict, read_json, write_json

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

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

    @model_validator(mode="after")
    def _is_a_tree(self) -> Tree:
        count = len(self.feature)
        columns = (self.threshold, self.below, self.above, self.engine)
        if not count or any(len(column) != count for column in columns):
            raise ValueError("expected columns of one length, at least one node")
        for index, asked in enumerate(self.feature):
            if asked >= 0 and not all(
                index < to < count for to in (self.below[index], self.above[index])
            ):
                raise ValueError(f"node {index}: expected children after it")
        return self

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
