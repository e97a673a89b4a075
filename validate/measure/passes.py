"""Several passes over a host, merged into one: each figure is the median of the passes.

Others use the host's caches, its memory and its cores' other threads, for minutes at a time. What
one minute tells is of that minute, and figures that are held against one another may be of
different ones. So each pass measures everything, and the figures of all passes come together: their
median, and the quartiles of what they were (of disturbances, all of them). Passes in which a figure
was disturbed are left out where most were calm.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import fmean, median

import numpy as np

from ...inputs import Quantity
from ...inputs.progress import StepProgress, part_of, silent
from ...inputs.quantities import rounded
from ...topologies.measurements import HostState, Measurement, Reading
from .noise import DISTURBANCES, noise_warnings
from .session import PARTS, Result, measure_pass

PASSES = 3
# Their ranges hold what each pass that counts found: what others do to programs here is another
# thing in each minute, no fact that passes find more or less exactly.


def measure_host(
    *, quick: bool = False, only: Sequence[str] = (), progress: StepProgress = silent
) -> Result:
    """Measures this host, in passes unless it is ``quick``; see ``measure_pass``."""
    passes = 1 if quick else PASSES
    found: list[Result] = []
    for at in range(passes):
        share = part_of(progress, at / passes, (at + 1) / passes)
        found.append(
            measure_pass(quick=quick, only=only, passes=passes, again=at > 0, progress=share)
        )
        if found[-1].interrupted:
            break
    return merged(found)


def merged(passes: Sequence[Result]) -> Result:
    """All of them as one; with its warnings."""
    first, interrupted = passes[0], any(one.interrupted for one in passes)
    figures = tuple(_merged_figures([one.measurements for one in passes]))
    done = {part for one in passes for part in one.host.parts}
    missing = tuple(part for part in first.missing if part not in done)
    host = _merged_states([one.host for one in passes], tuple(p for p in PARTS if p in done))
    clocks = [one.clock_Hz for one in passes if one.clock_Hz is not None]
    warnings = dict.fromkeys(text for one in passes for text in one.warnings)
    if interrupted:
        what = f"not finished: {', '.join(missing)}" if missing else f"in pass {len(passes)}"
        warnings[f"interrupted: {what}"] = None
    drift, stolen, others = host.clock_drift or 0.0, host.steal or 0.0, host.others or 0.0
    warnings |= dict.fromkeys(noise_warnings(drift, stolen, others, figures))
    return Result(
        first.layout,
        host,
        figures,
        tuple(warnings),
        _merged_quantities(clocks) if clocks else None,
        missing,
        interrupted,
        tuple(passes) if len(passes) > 1 else (),
    )


def _merged_figures(passes: Sequence[Sequence[Measurement]]) -> Iterator[Measurement]:
    """Each figure of any pass, in the order of the first that has it."""
    found: dict[tuple[str, str, int], list[Measurement]] = {}
    for figures in passes:
        seen: Counter[tuple[str, str]] = Counter()
        for one in figures:
            key = one.name, one.parameters.model_dump_json()
            found.setdefault((*key, seen[key]), []).append(one)
            seen[key] += 1
    yield from map(_merged_figure, found.values())


def _merged_figure(all_of: Sequence[Measurement]) -> Measurement:
    if len(all_of) == 1:
        return all_of[0]
    quiet = [one for one in all_of if not one.noisy]
    noisy = 2 * len(quiet) <= len(all_of)
    used = all_of if noisy else quiet
    kind = used[0].value.kind
    ends = [one.ends for one in used]
    value = rounded(median(one.value.value for one in used))
    pooled = [one.value.value for one in used] + [end.value for pair in ends for end in pair]
    ends_of = [0, 100] if used[0].name in DISTURBANCES else [25, 75]
    low, high = (rounded(float(end)) for end in np.percentile(pooled, ends_of))
    return used[0].model_copy(
        update={
            "value": Reading(value, kind),
            "quartiles": (Reading(min(low, value), kind), Reading(max(high, value), kind)),
            "repetitions": sum(one.repetitions for one in used),
            "disturbed": sum(one.disturbed for one in all_of)
            + sum(one.repetitions for one in all_of if one not in used),
            "noisy": noisy,
        }
    )


def _merged_states(states: Sequence[HostState], parts: tuple[str, ...]) -> HostState:
    def mean(name: str) -> float | None:
        values = [value for one in states if (value := getattr(one, name)) is not None]
        return round(fmean(values), 4) if values else None

    durations = [one.duration.value for one in states if one.duration is not None]
    seconds = round(sum(durations), 3)
    names = ("steal", "others", "clock_drift")
    return states[0].model_copy(
        update={
            **{name: mean(name) for name in names},
            "parts": parts,
            "passes": len(states),
            "duration": Quantity.exact(seconds) if durations else None,
        }
    )


def _merged_quantities(all_of: Sequence[Quantity]) -> Quantity:
    values = sorted(one.value for one in all_of)
    low, high = min(one.low for one in all_of), max(one.high for one in all_of)
    return replace(all_of[0], value=rounded(median(values)), low=low, high=high)
