"""Trains choosers of access paths: draws scans, simulates each by both paths, fits, and scores.

Drawn are, each for itself: bytes (from 64 KiB to 256 MiB, evenly in their logarithm), the node that
holds them, the part of the rows that is found, and background workers on the interconnect and at
the copy engine. A fifth is held out, and only scores see it. The others are learned at once, or one
after the other by the path that is chosen for each (below).

Regressions of the run time by access path that learn from each scan that is run.

A scan that is run tells the time of the path that it took alone. A regression of these only would
be of the scans that its own path is chosen for, and lead astray elsewhere. So some scans take the
other path, and each counts with one over the probability of the path that it took (Horvitz and
Thompson, A Generalization of Sampling Without Replacement From a Finite Universe, JASA 47, 1952):
on average the regressions are then those of all scans by both paths. The n-th takes the other path
with the probability n^(-1/3), as in epoch-greedy (Langford and Zhang, NIPS 2007).
"""

from dataclasses import dataclass, field
from itertools import product
from math import cbrt
from typing import Any, Literal

import numpy as np

from ....inputs import InputError
from ....inputs.progress import Progress, silent
from ....topologies import Machine
from ...kernel.arrays import Flags, Floats, Ints
from ...machine.copy_engines import NONE, nearest_engines
from ...machine.costs import CostModel
from .access_path import FEATURES, FORMAT, VERSION, AccessModel, Line, Tree
from .program import Background
from .single_scans import VALUE_BYTES, EventScans, FlowScans, plain_scan
from .spec import CHUNK_BYTES

Sizes = Literal["log-even", "even"]

BYTES = (64 * 1024.0, 256 * 1024.0 * 1024.0)
SELECTIVITIES = (0.0, 0.001, 0.01, 0.1, 0.3, 1.0)
INTERCONNECT_WORKERS, ENGINE_WORKERS = (0, 1, 2, 4), (0, 1, 2, 4)
HELD_OUT = 0.2
RESAMPLES = 200
OBSERVATIONS_MIN = 1_000
BATCH = 5_000
TREE_DEPTH, TREE_LEAF = 16, 20


@dataclass(frozen=True)
class Observations:
    """Scans (N,): ``features`` (N, 5), see ``access_models.FEATURES``, and seconds by each path."""

    features: Floats
    cpu_s: Floats
    engine_s: Floats

    def __len__(self) -> int:
        return len(self.cpu_s)

    def part(self, rows: Ints) -> "Observations":
        """Some of them."""
        return Observations(self.features[rows], self.cpu_s[rows], self.engine_s[rows])


def training_node(machine: Machine) -> int:
    """The node (a position) of the thread that scans: the first that has an engine and cores.

    Raises InputError where there is none.
    """
    for node, engine in enumerate(nearest_engines(machine)):
        if engine != NONE and machine.nodes[node].cores:
            return node
    raise InputError(
        f"machine '{machine.name}' has no copy engine",
        expected="one with copy_engines, such as sgi-uv300h-8s",
    )


def observe(
    machine: Machine,
    count: int,
    seed: int,
    on: str = "flow",
    progress: Progress = silent,
    sizes: Sizes = "log-even",
    bytes_min: float = BYTES[0],
) -> Observations:
    """``count`` scans, each by both paths, as flows or event by event; ``sizes`` from ``bytes_min``
    on are drawn evenly in their logarithm, or ``even``.
    """
    node, costs = training_node(machine), CostModel(machine)
    homes = [k for k, node in enumerate(machine.nodes) if not node.memory_bytes <= 0]
    random = np.random.default_rng(seed)
    home = random.integers(len(homes), size=count)
    found = random.integers(len(SELECTIVITIES), size=count)
    over = random.integers(len(INTERCONNECT_WORKERS), size=count)
    through = random.integers(len(ENGINE_WORKERS), size=count)
    if sizes == "even":
        scanned = random.uniform(bytes_min, BYTES[1], count)
    else:
        scanned = np.exp(random.uniform(np.log(bytes_min), np.log(BYTES[1]), count))
    entries = scanned // VALUE_BYTES
    flows = FlowScans(costs, node)
    stages = [plain_scan(costs, each, CHUNK_BYTES) for each in SELECTIVITIES]
    combination = (home * len(INTERCONNECT_WORKERS) + over) * len(ENGINE_WORKERS) + through
    traffic = np.zeros((count, 2))
    cpu_s, engine_s = np.zeros(count), np.zeros(count)
    cells = list(product(range(len(homes)), INTERCONNECT_WORKERS, ENGINE_WORKERS))
    events = _EventCells(costs, node, stages, homes) if on == "event" else None
    order = np.argsort(combination, kind="stable")
    bounds = np.searchsorted(combination[order], np.arange(len(cells) + 1))
    done = 0
    for number, (home_index, wires, copies) in enumerate(cells):
        rows = order[bounds[number] : bounds[number + 1]]
        if not len(rows):
            continue
        background = (
            Background("interconnect", node, homes[home_index], wires),
            Background("copy-engine", node, homes[home_index], copies),
        )
        traffic[rows] = flows.traffic(background)
        if events is None:
            for k, stage in enumerate(stages):
                row = rows[found[rows] == k]
                for path, column in (("cpu", cpu_s), ("copy-engine", engine_s)):
                    rate = flows.rate(stage, homes[home_index], path, background)  # type: ignore[arg-type]
                    column[row] = rate.seconds(entries[row])
        else:
            for first in range(0, len(rows), BATCH):
                batch = rows[first : first + BATCH]
                columns = found[batch], entries[batch]
                cpu_s[batch], engine_s[batch] = events.play(home_index, wires, copies, *columns)
                done += len(batch)
                progress(done / count)
        progress((number + 1) / len(cells))
    latency_ns = costs.idle_s[node, homes][home] * 1e9
    matches = np.array(SELECTIVITIES)[found]
    features = np.column_stack(
        [entries * VALUE_BYTES, latency_ns, entries * matches * VALUE_BYTES, traffic]
    )
    return Observations(features, cpu_s, engine_s)


class _EventCells:
    """Scans event by event beside background work at each home."""

    def __init__(self, costs: CostModel, node: int, stages: list[Any], homes: list[int]) -> None:
        pieces: list[Background] = []
        self.homes, self._states = homes, dict[tuple[int, int, int], int]()
        most = max(INTERCONNECT_WORKERS), max(ENGINE_WORKERS)
        for home in homes:
            pieces += [Background("interconnect", node, home, 1)] * most[0]
            pieces += [Background("copy-engine", node, home, 1)] * most[1]
        engine = costs.machine.copy_engines[nearest_engines(costs.machine)[node]]
        self._each, self._first = sum(most), most[0]
        self.copies = min(engine.contexts - 1, most[1])
        self.scans = EventScans(costs, node, stages, pieces)

    def play(
        self, home_index: int, wires: int, copies: int, stage: Ints, entries: Floats
    ) -> tuple[Floats, Floats]:
        """Seconds by CPU and by the engine."""
        key = home_index, wires, copies
        if key not in self._states:
            first = home_index * self._each
            pieces = [first + k for k in range(wires)]
            pieces += [first + self._first + k for k in range(min(copies, self.copies))]
            self._states[key] = self.scans.state(pieces)
        count = len(entries)
        columns = (
            np.full(count, self._states[key]),
            stage,
            np.full(count, self.homes[home_index]),
            entries,
        )
        return self.scans.seconds(*columns, "cpu"), self.scans.seconds(*columns, "copy-engine")


def train_on(
    machine: Machine,
    count: int,
    seed: int,
    on: str,
    progress: Progress = silent,
    also: Machine | None = None,
    online: int | None = None,
    sizes: Sizes = "log-even",
    bytes_min: float = BYTES[0],
) -> AccessModel:
    """Observes, and trains; scores under ``carried`` are of scans on ``also``.

    ``online``: scans that are run by both paths before the model learns online. Raises InputError
    where none are left for that.
    """
    if online is not None and online >= (left := count - round(HELD_OUT * count)):
        raise InputError(
            f"--online: {online} scans by both paths leave none to learn from",
            expected=f"fewer than {left}, four fifths of the observations",
        )
    observed = observe(machine, count, seed, on, progress, sizes=sizes, bytes_min=bytes_min)
    model = train(machine, observed, seed, on, online)
    if also is None:
        return model
    elsewhere = observe(also, max(round(HELD_OUT * count), OBSERVATIONS_MIN), seed, on)
    carried = {"machine": also.name, **scores(model, elsewhere, seed)}
    return model.model_copy(update={"scores": {**model.scores, "carried": carried}})


def train(
    machine: Machine, observed: Observations, seed: int, on: str = "flow", online: int | None = None
) -> AccessModel:
    """Fits regressions and a tree to four fifths, or learns them ``online`` from so many scans by
    both paths on (without a tree); scores are of the rest.
    """
    order = np.random.default_rng(seed).permutation(len(observed))
    held = round(HELD_OUT * len(observed))
    test, fit = observed.part(order[:held]), observed.part(order[held:])
    tree, curve = None, {}
    if online is None:
        cpu, engine, tree = _fitted(fit)
    else:
        learned = learn_online(fit.features, fit.cpu_s, fit.engine_s, online, seed)
        cpu, engine, curve = learned.cpu, learned.engine, {"online": learned.curve}
    model = AccessModel(
        format=FORMAT,
        version=VERSION,
        features=FEATURES,
        machine=machine.name,
        on=on,
        observations=len(observed),
        seed=seed,
        cpu=cpu,
        engine=engine,
        tree=tree,
    )
    return model.model_copy(update={"scores": {**scores(model, test, seed), **curve}})


def _fitted(fit: Observations) -> tuple[Line, Line, Tree]:
    """By CPU and by the engine, and the tree of choices."""
    from sklearn.linear_model import LinearRegression
    from sklearn.tree import DecisionTreeClassifier

    lines = []
    for seconds in (fit.cpu_s, fit.engine_s):
        scale = np.maximum(np.abs(fit.features).max(axis=0), 1e-300)
        found = LinearRegression().fit(fit.features / scale, seconds)
        weights = tuple(float(w) for w in found.coef_ / scale)
        lines.append(Line(weights=weights, intercept=float(found.intercept_)))
    tree = DecisionTreeClassifier(
        max_depth=TREE_DEPTH, min_samples_leaf=TREE_LEAF, random_state=0
    ).fit(fit.features, fit.engine_s < fit.cpu_s)
    return lines[0], lines[1], _tree(tree)


def _tree(fitted: Any) -> Tree:
    made, classes = fitted.tree_, fitted.classes_.tolist()
    inner = made.children_left >= 0
    return Tree(
        feature=tuple(np.where(inner, made.feature, -1).tolist()),
        threshold=tuple(np.where(inner, made.threshold, 0.0).tolist()),
        below=tuple(np.where(inner, made.children_left, 0).tolist()),
        above=tuple(np.where(inner, made.children_right, 0).tolist()),
        engine=tuple(bool(classes[k]) for k in made.value[:, 0, :].argmax(axis=1).tolist()),
    )


def scores(model: AccessModel, test: Observations, seed: int) -> dict[str, Any]:
    """Each figure with its interval: [value, low, high], 95% by resampling ``test``."""
    random = np.random.default_rng([seed, 1])
    choices = {"regression": model.by_regression(test.features)}
    if model.tree is not None:
        choices["tree"] = model.tree.chosen(test.features)
    guessed = model.cpu.seconds(test.features), model.engine.seconds(test.features)

    def figures(rows: Ints) -> dict[str, float]:
        tested = test.part(rows)
        found = {
            "r2_cpu": _r2(tested.cpu_s, guessed[0][rows]),
            "r2_engine": _r2(tested.engine_s, guessed[1][rows]),
            "engine_is_best": float((tested.engine_s < tested.cpu_s).mean()),
        }
        for name, chosen in choices.items():
            for what, value in choice_scores(tested, chosen[rows]).items():
                found[f"{name}_{what}"] = value
        never = choice_scores(tested, np.zeros(len(rows), dtype=bool))["loss"]
        return {
            **found,
            "always_cpu_loss": never,
            "always_engine_loss": _loss(tested, tested.engine_s),
        }

    whole = figures(np.arange(len(test)))
    drawn = [figures(random.integers(len(test), size=len(test))) for _ in range(RESAMPLES)]
    found = {}
    for name, value in whole.items():
        values = np.array([sample[name] for sample in drawn])
        low, high = np.nanpercentile(values, [2.5, 97.5]).tolist()
        found[name] = [value, low, high]
    return found


def choice_scores(observations: Observations, engine: Flags) -> dict[str, float]:
    """Precision, recall and F1 of choosing the engine; ``loss``: time beyond the best choices'."""
    best = observations.engine_s < observations.cpu_s
    right = float((engine & best).sum())
    precision = right / max(float(engine.sum()), 1.0)
    recall = right / max(float(best.sum()), 1.0)
    f1 = 2.0 * precision * recall / max(precision + recall, 1e-300)
    taken = np.where(engine, observations.engine_s, observations.cpu_s)
    return {"precision": precision, "recall": recall, "f1": f1, "loss": _loss(observations, taken)}


def _loss(observations: Observations, taken: Floats) -> float:
    return float(taken.sum() / np.minimum(observations.cpu_s, observations.engine_s).sum()) - 1.0


def _r2(seconds: Floats, guessed: Floats) -> float:
    spread = float(((seconds - seconds.mean()) ** 2).sum())
    return 1.0 - float(((seconds - guessed) ** 2).sum()) / spread if spread > 0 else float("nan")


EXPLORED_MAX = 0.5


@dataclass
class OnlineLine:
    """A linear regression that goes on with each observation: recursive least squares.

    ``scale`` (5,): what features are divided by, so that none outweighs the others.
    """

    scale: Floats
    ridge: float = 1e-3
    weights: Floats = field(init=False)
    _spread: Floats = field(init=False)

    def __post_init__(self) -> None:
        size = len(self.scale) + 1
        self.weights = np.zeros(size)
        self._spread = np.eye(size) / self.ridge

    def seconds(self, features: Floats) -> float:
        """Of a scan with ``features`` (5,)."""
        return float(self._row(features) @ self.weights)

    def learn(self, features: Floats, seconds: float, weight: float = 1.0) -> None:
        """Of one scan with ``features`` (5,), which counts as ``weight`` of them."""
        row = self._row(features)
        towards = self._spread @ row
        gain = towards / (1.0 / weight + row @ towards)
        self.weights = self.weights + gain * (seconds - row @ self.weights)
        self._spread = self._spread - np.outer(gain, towards)

    def line(self) -> Line:
        """As a model has it."""
        weights = (self.weights[:-1] / self.scale).tolist()
        return Line(weights=tuple(weights), intercept=float(self.weights[-1]))

    def _row(self, features: Floats) -> Floats:
        return np.append(features / self.scale, 1.0)


@dataclass(frozen=True)
class Learned:
    """Regressions of both paths, and how they came about, as scans double.

    ``curve``: (scans until then; time that the choices since the last entry lose against the
    oracle, as a part of it; the same of the paths that were taken, with those for learning).
    """

    cpu: Line
    engine: Line
    curve: tuple[tuple[int, float, float], ...]


def explored(number: int) -> float:
    """The probability that scan ``number``, from 1 on, takes the path that was not chosen."""
    return min(EXPLORED_MAX, 1.0 / cbrt(number))


def learn_online(
    features: Floats, cpu_s: Floats, engine_s: Floats, first: int, seed: int
) -> Learned:
    """Runs scans (N,) with ``features`` (N, 5) one by one, in drawn order: the ``first`` by both
    paths, each further one by the path that is chosen, or for learning by the other.
    """
    random = np.random.default_rng([seed, 2])
    scale = np.maximum(np.abs(features).max(axis=0), 1e-300)
    cpu, engine = OnlineLine(scale), OnlineLine(scale)
    order, drawn = random.permutation(len(features)), random.random(len(features))
    curve: list[tuple[int, float, float]] = []
    chosen_s = taken_s = best_s = 0.0
    mark = 2 * first
    for number, row in enumerate(order.tolist(), 1):
        feature, times = features[row], (float(cpu_s[row]), float(engine_s[row]))
        if number <= first:
            cpu.learn(feature, times[0])
            engine.learn(feature, times[1])
            continue
        chosen = engine.seconds(feature) < cpu.seconds(feature)
        probability = explored(number)
        other = bool(drawn[number - 1] < probability)
        taken = chosen != other
        path = engine if taken else cpu
        path.learn(feature, times[taken], 1.0 / (probability if other else 1.0 - probability))
        chosen_s += times[chosen]
        taken_s += times[taken]
        best_s += min(times)
        if number == mark or number == len(order):
            curve.append((number, chosen_s / best_s - 1.0, taken_s / best_s - 1.0))
            chosen_s = taken_s = best_s = 0.0
            mark *= 2
    return Learned(cpu.line(), engine.line(), tuple(curve))
