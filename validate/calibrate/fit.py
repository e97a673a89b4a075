"""The posterior of a machine's, or an engine's, facts by what was measured, near its mode.

Residuals are differences of logarithms over the measurement's spread, so that each counts as far as
it is known; beyond some spreads it counts less and less (soft L1). A wide prior about its start
holds what measurements leave open; all such facts go back to what they were (``_determined``), and
the others are searched for again. The posterior is normal about its mode; its spread follows the
scatter of residuals by kind. What depends on facts is asked for at both ends of each axis of it.
"""

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from scipy.optimize import least_squares
from scipy.stats import t as student

from ...inputs import InputError, Quantity
from ...inputs.progress import Progress, silent
from ...inputs.quantities import rounded
from ...sim.kernel.arrays import Flags
from ...sim.kernel.arrays import Floats as Floats
from ..posterior import covariance_of
from .observation import Observation
from .parameters import Key, Parameter

Values = Mapping[Key, float]
Predict = Callable[[Values, Sequence[Observation]], Floats]
Name = TypeVar("Name", bound=Hashable)

STEP = 1e-4  # of a coordinate, for derivatives; coordinates are about 1 wide
WIDE = 0.7  # a factor of two: some facts act only where they bind
PRIOR = 2.0  # deviation of a coordinate from its start
FAR = 2.0  # spreads; beyond them a residual counts less
LOST = 50.0  # spreads, of the median: where all residuals are so far off, none is an outlier
STEPS_MAX, ROUGH, TOLERANCE = 200, 1e-2, 1e-7  # of the sum of squares, what a step gains
WIDENED = 2  # rounds in which spreads follow residuals
# Of a measurement's spread: what a thousand such measurements leave unknown, and as much as planes
# leave of their searches for agreement.
SENSITIVITY_MIN = 0.02
# A fact is determined where its standard error is below this: of its value, or of its scale; and
# where its interval reaches no further, either way, than a factor of 4.5, or three times its scale.
ERROR_MAX, HALF_MAX = 0.35, 1.5
NOTHING = 1e-6  # slopes below this are none
PART = 0.2  # of a direction that is not determined: facts with at least this part in it
KNOWN_MIN = 1e-9  # in place of nothing, so that numbers stay finite
USUAL = 200  # predictions of all figures: what a fit takes is known when it is done
CONFIDENCE, Z95 = 0.95, 1.959964
# Degrees of freedom of a spread that stands for itself, as no residual is wider than it says.
SPREAD_FREEDOM = 30.0
ALONG = 0.1
BOUND_NEAR = 1e-6
NORMAL = 1.4826  # standard deviation of normal residuals over the median of their sizes
INSENSITIVE = "no measurement depends on it"
WEAK = "measurements hardly depend on it"


class NothingDetermined(InputError):
    """No fact is determined by the measurements."""


@dataclass(frozen=True)
class Undetermined:
    """A fact that is left alone, and why."""

    parameter: Parameter
    reason: str


@dataclass(frozen=True)
class Estimate:
    """A fitted fact: its value, and the interval that holds the truth with 95% confidence.

    ``sources``: the files whose figures depend on it.
    """

    parameter: Parameter
    value: float
    low: float
    high: float
    at_bound: bool
    sources: tuple[str, ...]


@dataclass(frozen=True)
class Fit:
    """``estimates`` by key, ``left`` what was not determined; ``scatter``: by kind, how many of
    their spreads the residuals are wide (at least 1). ``known``: the values of what was fitted, and
    of what else the curve needs; ``axes``: the same, ``ALONG`` standard deviations off along each
    axis of the posterior, and of what neither the machine nor a measurement tells.
    """

    estimates: Mapping[Key, Estimate]
    left: tuple[Undetermined, ...]
    scatter: Mapping[str, float]
    known: Values
    axes: tuple[Values, ...]
    _predict: Predict

    @property
    def values(self) -> dict[Key, float]:
        """The fitted values."""
        return {key: estimate.value for key, estimate in self.estimates.items()}

    def best(self, ones: Sequence[Observation]) -> Floats:
        """(M,) figures that the fit predicts."""
        return self._predict(self.known, ones)

    def predicted(self, ones: Sequence[Observation]) -> list[tuple[float, float, float]]:
        """The same figures, and the intervals in which such ones lie with 95%
        confidence, as far as facts and the model's misfit tell: the spread of their own
        measurements is not in it.
        """
        found = self.best(ones)
        excess = np.array([self.scatter.get(one.kind, 1.0) ** 2 - 1.0 for one in ones])
        misfit = excess * _sigma(ones, self.known, self._predict) ** 2
        half = self._halves(lambda values: self._predict(values, ones), misfit)
        ends = zip(found, found * np.exp(-half), found * np.exp(half), strict=True)
        return [(float(value), float(low), float(high)) for value, low, high in ends]

    def _halves(self, figures: Callable[[Values], Floats], more: Floats | float = 0.0) -> Floats:
        """Of the intervals of the figures' logarithms; 0 where these are not known."""
        best = figures(self.known)
        with np.errstate(invalid="ignore", divide="ignore"):
            off = [(np.log(figures(moved) / best) / ALONG) ** 2 for moved in self.axes]
        return np.asarray(Z95 * np.sqrt(np.nan_to_num(np.sum(off, axis=0)) + more))

    def quantities(
        self, figures: Callable[[Values], Mapping[Name, float]], source: Callable[[Name], str]
    ) -> dict[Name, Quantity]:
        """Functions of the values as a machine file has them: value, range (95%), source."""
        best = figures(self.known)
        halves = self._halves(lambda values: np.array(list(figures(values).values())))
        found: dict[Name, Quantity] = {}
        for (name, value), times in zip(best.items(), np.exp(halves).tolist(), strict=True):
            low, high = rounded(value / times), rounded(value * times)
            found[name] = Quantity(rounded(value), low, high, source(name))
        return found


def fitted_quantities(fit: Fit, source: Mapping[Key, str]) -> dict[Key, Quantity]:
    """The estimates as a machine file has them: value, range (95%), source with its date."""
    found: dict[Key, Quantity] = {}
    for key, estimate in fit.estimates.items():
        value, low, high = map(rounded, (estimate.value, estimate.low, estimate.high))
        if key[0] == "curve" or estimate.parameter.core:
            continue
        if value > 0 or key[0] == "turnaround":
            low = max(low, 1e-6 * value)  # what a file holds is not below 0
            found[key] = Quantity(value, min(low, value), max(high, value), source[key])
    return found


def fit(
    parameters: Sequence[Parameter],
    observations: Sequence[Observation],
    predict: Predict,
    progress: Progress = silent,
) -> Fit:
    """The posterior of ``parameters`` by ``observations``; ``predict`` gets values by key.

    What tells of core times says nothing of other facts, which could be bent to meet it: these come
    first. Raises NothingDetermined where no fact is.
    """
    known: Values = {p.key: p.start for p in parameters}
    counted = _reporting(predict, len(observations), progress)
    blocks = []
    for core in (False, True):
        ones = [o for o in observations if o.kind.core == core]
        block = _Block([p for p in parameters if p.core == core], ones, known, counted)
        block.solve()
        known = block.known
        blocks.append(block)
    if not any(block.kept for block in blocks):
        raise NothingDetermined("no measurement depends on a parameter of the machine")
    left = tuple(one for block in blocks for one in block.left)
    assumed = [one.parameter for one in left]
    axes = [axis for block in blocks for axis in block.axes]
    axes += [_moved({p.key: p.start}, p, ALONG * p.doubt)[0] for p in assumed if p.doubt]
    progress(1.0)
    return Fit(
        {key: estimate for block in blocks for key, estimate in block.estimates.items()},
        left,
        {kind: width for block in blocks for kind, width in block.widths.items()},
        known,
        tuple({**known, **axis} for axis in axes),
        predict,
    )


def _reporting(predict: Predict, size: int, progress: Progress) -> Predict:
    """``predict``, which reports ``progress`` by what was predicted."""
    count, reported = 0.0, 0.0

    def counted(values: Values, ones: Sequence[Observation]) -> Floats:
        nonlocal count, reported
        count += len(ones) / size
        if count >= reported + 1.0:
            reported = count
            progress(1.0 - math.exp(-count / USUAL))
        return predict(values, ones)

    return counted


def _sigma(ones: Sequence[Observation], values: Values, predict: Predict) -> Floats:
    """(M,) spreads of the figures, with that of the load at which each was measured (effective
    variance): on one side a load beyond the peak tells nothing.
    """
    found = np.array([one.sigma for one in ones], dtype=np.float64)
    loaded = [m for m, one in enumerate(ones) if one.load_spread]
    if loaded:
        own = np.log(predict(values, [ones[m] for m in loaded]))
        moved = [np.log(predict(values, [ones[m].moved(side) for m in loaded])) for side in (-1, 1)]
        found[loaded] = np.hypot(found[loaded], np.abs(np.array(moved) - own).max(0))
    return found


class _Block:
    """Facts that are searched for together, and what tells of them."""

    def __init__(
        self,
        parameters: Sequence[Parameter],
        ones: Sequence[Observation],
        known: Values,
        predict: Predict,
    ) -> None:
        self.kept, self.ones, self.known, self.predict = [*parameters], ones, {**known}, predict
        self.left: list[Undetermined] = []
        self.measured = np.log([o.value for o in ones])
        self.runs = np.array([o.kind.run for o in ones], dtype=np.bool_)
        self.kinds = np.array([str(o.kind) for o in ones])
        self.widths = dict.fromkeys(self.kinds.tolist(), 1.0)
        self.meets = {p.key: np.ones(len(ones), dtype=np.bool_) for p in parameters}
        self.estimates: dict[Key, Estimate] = {}
        self.axes: list[Values] = []

    def solve(self) -> None:
        """Finds what is determined, its mode and its spread."""
        slopes = self.slopes(self.known, WIDE, central=True)
        # A run takes a thousand times as long as a formula. Steps of a run take what they take; its
        # rate shows only what binds, so that it says itself which facts it meets.
        for k, p in enumerate(self.kept):
            moved = (~self.runs | (np.abs(slopes[:, k]) > NOTHING)).tolist()
            each = zip(self.ones, moved, strict=True)
            meets = [p.key in one.at["facts"] if "facts" in one.at else it for one, it in each]
            self.meets[p.key] = np.array(meets, dtype=np.bool_)
        self._leave(self._unmoved(slopes / self._sigmas()[:, None]))
        while self.kept:
            self._search(rough=True)
            slopes = self.slopes(self.known, STEP, central=False) / self._sigmas()[:, None]
            out = self._unmoved(slopes)
            moved = [k for k, p in enumerate(self.kept) if all(p is not o.parameter for o in out)]
            out += _undetermined([self.kept[k] for k in moved], slopes[:, moved])
            if not out:
                out = self._finished()
                if not out:
                    return
            # What was found together with them is not what fits best without.
            self.known |= {p.key: p.start for p in self.kept}
            self._leave(out)
            if self.kept and not (self.predict(self.known, self.ones) > 0).all():
                raise InputError(  # the machine has none of its own
                    f"contradiction: measurements of '{out[-1].parameter.name}' differ too much"
                )

    def _sigmas(self) -> Floats:
        return _sigma(self.ones, self.known, self.predict) * [self.widths[k] for k in self.kinds]

    def _unmoved(self, slopes: Floats) -> list[Undetermined]:
        """Facts that move no prediction by what its measurement would show."""
        most = np.abs(slopes).max(axis=0, initial=0.0)
        pairs = zip(self.kept, most.tolist(), strict=True)
        return [Undetermined(p, INSENSITIVE) for p, size in pairs if not size > SENSITIVITY_MIN]

    def _leave(self, out: Sequence[Undetermined]) -> None:
        """For what is left alone the machine's own value stands. The curve is one thing: what is
        not known of it is what it began with.
        """
        self.left += out
        gone = {one.parameter.key: one.parameter.start for one in out}
        self.kept = [p for p in self.kept if p.key not in gone]
        any_curve = any(p.key[0] == "curve" for p in self.kept)
        self.known = {
            key: gone.get(key, value)
            for key, value in self.known.items()
            if key not in self.meets or (any_curve if key[0] == "curve" else key not in gone)
        }

    def _logs(self, values: Values, here: npt.NDArray[np.intp] | None = None) -> Floats:
        ones = self.ones if here is None else [self.ones[m] for m in here.tolist()]
        return np.asarray(np.log(self.predict(values, ones)))

    def slopes(self, values: Values, step: float, *, central: bool) -> Floats:
        """(M, P) of the predictions' logarithms over coordinates, by central differences where
        bounds allow, or else by one-sided ones: half as many predictions.
        """
        slopes = np.zeros((len(self.ones), len(self.kept)))
        own = None if central or not self.kept else self._logs(values)
        for k, p in enumerate(self.kept):
            here = np.flatnonzero(self.meets[p.key])
            up, step_up = _moved(values, p, step)
            down, step_down = _moved(values, p, -step)
            if step_up == step_down or own is not None:  # at a bound
                below, step_down = self._logs(values, here) if own is None else own[here], 0.0
            else:
                below = self._logs(down, here)
            slopes[here, k] = (self._logs(up, here) - below) / (step_up - step_down)
        return slopes

    def _search(self, *, rough: bool = False) -> None:
        """The mode; ``rough``: nearly so, in few steps, where outliers count as much as others. Of
        core times the better of two ends, as runs have several optima.
        """
        kept, known, sigma = self.kept, self.known, self._sigmas()
        starts = np.array([p.inside(p.start) for p in kept])
        low, high = np.array([_ends(p) for p in kept]).T
        last: list[tuple[bytes, Floats]] = []

        def at(x: Floats) -> dict[Key, float]:
            own = {p.key: p.outside(float(u)) for p, u in zip(kept, x, strict=True)}
            return {**known, **own}

        def residuals(x: Floats) -> Floats:
            if not last or last[0][0] != x.tobytes():
                left = (self._logs(at(x)) - self.measured) / sigma
                last[:] = [(x.tobytes(), np.append(left, (x - starts) / PRIOR))]
            return last[0][1]

        def jacobian(x: Floats) -> Floats:
            slopes = self.slopes(at(x), STEP, central=False) / sigma[:, None]
            return np.vstack([slopes, np.eye(len(x)) / PRIOR])

        def least(loss: str) -> Floats:
            return np.asarray(
                least_squares(
                    residuals, np.clip(begin, low + room, high - room), jac=jacobian,
                    bounds=(low, high), loss=loss, f_scale=FAR, x_scale="jac", xtol=1e-6,
                    ftol=ROUGH if rough else TOLERANCE, max_nfev=STEPS_MAX,
                ).x
            )  # fmt: skip

        begin, room = np.array([p.inside(known[p.key]) for p in kept]), 1e-9 * (high - low)
        losses = ["linear" if rough else "soft_l1"]
        if rough and kept[0].core and np.median(np.abs(residuals(begin))) < LOST:
            losses.append("soft_l1")
        ends = [least(loss) for loss in losses]
        cost = [float(np.sqrt(1.0 + (residuals(x) / FAR) ** 2).sum()) for x in ends]
        self.known = at(ends[int(np.argmin(cost))])

    def _residuals(self) -> tuple[Floats, Floats, Floats, Floats]:
        """In spreads; their weights by soft L1, their slopes, and what facts take of each."""
        sigma = self._sigmas()
        left = (self._logs(self.known) - self.measured) / sigma
        weight = 1.0 / np.sqrt(1.0 + (left / FAR) ** 2)
        slopes = self.slopes(self.known, STEP, central=True) / sigma[:, None]
        inverse = covariance_of(slopes, weight, PRIOR)
        return left, weight, slopes, np.einsum("ij,jk,ik,i->i", slopes, inverse, slopes, weight)

    def _freedom(self, taken: Floats) -> Iterator[tuple[str, Flags, float]]:
        """By kind: which figures are of it, and its degrees of freedom, less than which is none."""
        for kind in self.widths:
            here = self.kinds == kind
            yield kind, here, float(here.sum() - taken[here].sum())

    def _finished(self) -> list[Undetermined]:
        """The mode with spreads as wide as residuals tell, and the posterior's axes; or the fact of
        which residuals leave less known than spreads let hope.

        A kind whose residuals are wider than its spreads say has them widened, by their median
        size, which outliers hardly move, and by what is left (Birge). Degrees of freedom of a fact
        follow from the kinds that determine it (Welch and Satterthwaite).
        """
        for _ in range(WIDENED):
            left, _, _, taken = self._residuals()
            for kind, here, freedom in self._freedom(taken):
                part = math.sqrt(here.sum() / freedom) if freedom >= 0.5 else 0.0
                wide = NORMAL * float(np.median(np.abs(left[here]))) * part
                self.widths[kind] = max(1.0, self.widths[kind] * wide)
            self._search()
        left, weight, slopes, taken = self._residuals()
        inverse = covariance_of(slopes, weight, PRIOR)
        covariance, squares = np.zeros_like(inverse), np.zeros(len(inverse))
        for kind, here, freedom in self._freedom(taken):
            as_stated, found = self.widths[kind] <= 1.0, 1.0
            if freedom >= 0.5:
                found = max(math.sqrt(float(weight[here] @ left[here] ** 2) / freedom), 1.0)
            influence = found * inverse @ (slopes[here] * weight[here, None]).T
            covariance += influence @ influence.T
            stands = as_stated and found <= 1.0
            squares += (influence**2).sum(1) ** 2 / (
                SPREAD_FREEDOM if stands else max(freedom, 0.1)
            )
            self.widths[kind] *= found
        variance = np.maximum(np.diag(covariance), KNOWN_MIN**2)
        freedoms = np.maximum(variance**2 / np.maximum(squares, KNOWN_MIN**4), 1.0)
        halves = student.ppf(0.5 + CONFIDENCE / 2, freedoms) * np.sqrt(variance)
        if halves.max() > HALF_MAX:
            self.widths = dict.fromkeys(self.widths, 1.0)
            return [Undetermined(self.kept[int(np.argmax(halves))], WEAK)]
        self.estimates = {
            p.key: self._estimate(p, half, np.abs(slopes[:, k]) > NOTHING)
            for k, (p, half) in enumerate(zip(self.kept, halves.tolist(), strict=True))
        }
        size, directions = np.linalg.eigh(covariance)
        scale = halves / Z95 / np.sqrt(variance)
        turned = np.asarray(directions * np.sqrt(np.maximum(size, 0.0)))
        for axis in turned.T * scale * ALONG:
            steps = zip(self.kept, axis.tolist(), strict=True)
            self.axes.append({p.key: _moved(self.known, p, by)[0][p.key] for p, by in steps})
        return []

    def _estimate(self, p: Parameter, half: float, met: Flags) -> Estimate:
        inside = p.inside(self.known[p.key])
        low, high = _ends(p)
        origins = [self.ones[m].origin for m in np.flatnonzero(met).tolist()]
        return Estimate(
            p,
            self.known[p.key],
            max(p.outside(max(inside - half, low)), p.low),
            min(p.outside(min(inside + half, high)), p.high),
            min(inside - low, high - inside) < BOUND_NEAR,
            tuple(dict.fromkeys(f"{origin.label} ({origin.date})" for origin in origins)),
        )


def _ends(p: Parameter) -> tuple[float, float]:
    return p.inside(p.low) if p.low > 0 or not p.log else -math.inf, p.inside(p.high)


def _moved(values: Values, p: Parameter, step: float) -> tuple[dict[Key, float], float]:
    """The values with one coordinate moved, away from a bound that is in the way; and by what."""
    inside, (low, high) = p.inside(values[p.key]), _ends(p)
    target = min(max(inside + step, low), high)
    if abs(target - inside) < 0.5 * abs(step):
        target = min(max(inside - step, low), high)
    return {**values, p.key: p.outside(target)}, target - inside


def _undetermined(active: Sequence[Parameter], jacobian: Floats) -> list[Undetermined]:
    """Those of ``active`` that cannot be distinguished.

    ``jacobian`` (M, P): of residuals in spreads, over coordinates. Its singular values tell how
    well each direction is known; of the worst one, the fact that moves predictions least is taken
    out, again and again, until all others are known well enough.
    """
    kept, left = list(range(len(active))), []
    while kept:
        part = jacobian[:, kept]
        # The triangle of a QR decomposition has the same singular values, and but P rows.
        singular, directions = np.linalg.svd(np.linalg.qr(part, mode="r"), full_matrices=True)[1:]
        known = np.full(len(kept), KNOWN_MIN)
        known[: len(singular)] = np.maximum(singular, KNOWN_MIN)
        error = np.sqrt(((directions / known[:, None]) ** 2).sum(axis=0))
        if (error <= ERROR_MAX).all():
            break
        worst = np.abs(directions[-1])  # its standard error, and that of each coordinate by it
        if (worst / known[-1] > 0.5 * ERROR_MAX).any():
            concerned = np.flatnonzero(worst >= PART * worst.max())
        else:
            concerned = np.array([int(np.argmax(error))])
        size = np.linalg.norm(part, axis=0)
        out = int(concerned[np.argmin(size[concerned])])
        others = [active[kept[k]].name for k in concerned if k != out]
        reason = f"known only together with {', '.join(others)}" if others else WEAK
        left.append(Undetermined(active[kept[out]], reason))
        kept.pop(out)
    return left
