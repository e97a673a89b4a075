"""The page on decisions: predicted against measured, the reasons of misses, the form of a case."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .decisions_scored import INPUT, NOT_MODELLED, RIGHT, summary

Row = Mapping[str, Any]
MISSED = 0.15  # an error of a ratio from which on the page says why

INTRODUCTION = """\
# Decisions that were measured

<!-- 'make docs' writes this page: numatwin decisions --page docs/decisions.md -->

Decisions on placement and threads that others have measured, and what numatwin predicts for them. A
ratio is that of an alternative to the baseline of its case; the interval comes from the ranges of
the machine's facts; what the model itself is wrong by is not in it. A measured
level is never an input of its own prediction: where a machine's facts come from the levels of a
case, their row says *input* and is not scored. `numatwin decisions` prints these rows,
`numatwin decisions --id cxl-triad` those of one case.

"""

FORM = """
## Score your own decisions

`numatwin decisions --cases DIR` scores the cases of a folder. A case is a YAML file:

```yaml
name: cxl-triad
title: STREAM triad with a CXL expander
source: where it was measured
scenario: {machine: ddr5-cxl.yaml, ...}   # a scenario, with paths beside this file; 'extends' too
operation: triad                          # whose rate counts; the first one by default
per_operation: 9.0                        # a rate times this is a level in 'unit'
unit: GB/s
baseline: dram                            # what ratios are to; the first alternative by default
inputs: [dram, cxl]                       # facts of the machine come from these levels: not scored
typical: [latencies]                      # what the source does not say: give these facts a range
equal_within: 0.02                        # ratios this near to 1 are no difference
alternatives:
  dram: {numactl: --membind=0, measured: 208.5}
  cxl: {numactl: --membind=1, measured: 24.5}
  nine-to-one: {set: ["system.memory={policy: weighted, weights: [9, 1]}"], measured: 217.7}
```

An alternative has settings as for `--set`, the options of `numactl`, or both. `measured` is a
level, or the two ends of a range; `ratio`, to the baseline, is given in its place where no level is
known.
`note` says why a prediction misses. A case that cannot be described has `not_modelled`, with the
reason, in place of `scenario`. Verdicts: *right*, where all of the interval says what was measured
(faster, slower, no difference); *wrong*, where none of it does; else *cannot tell*. With `--json`:
`rows [{id, alternative, baseline, measured_ratio, predicted_ratio, interval, relative_error,
covered, verdict, measured, predicted, level_error, …}]` and `summary`. Exit status 2 for a case
with a fault.
"""


def page_of(rows: Sequence[Row]) -> str:
    """The whole page."""
    return INTRODUCTION + "\n".join(_body(rows)) + "\n" + FORM


def _body(rows: Sequence[Row]) -> Iterator[str]:
    found = summary(rows)
    if found["decisions"]:
        yield (
            f"Of {found['decisions']} decisions {found['right']} are right, "
            f"{found['wrong']} wrong, {found['cannot_tell']} cannot be told. "
            f"The median error of ratios is\n{found['median_error']:.1%}; {found['coverage']:.0%} "
            f"of the {found['level']:.0%} "
            "intervals hold what was measured."
        )
        yield ""
    yield "| case | alternative | measured | predicted | interval | error | level | verdict |"
    yield "| --- | --- | --: | --: | --: | --: | --: | --- |"
    for row in rows:
        if row["verdict"] != NOT_MODELLED:
            error = f"{row['relative_error']:+.1%}"
            level = "" if row["level_error"] is None else f"{row['level_error']:+.1%}"
            yield (
                f"| `{row['id']}` | {row['alternative']} | {ratio_text(row['measured_ratio'])} | "
                f"{ratio_text(row['predicted_ratio'])} | {ratio_text(row['interval'])} | {error} | "
                f"{level} | {row['verdict']} |"
            )
    yield ""
    yield "## The cases"
    yield ""
    for row in {row["id"]: row for row in rows}.values():
        typical = f" Typical: {', '.join(row['typical'])}." if row["typical"] else ""
        where = f"baseline {row['baseline']}; {row['source']}"
        yield f"- `{row['id']}`: {row['title']} ({where}).{typical}"
    yield ""
    yield "## Why predictions miss"
    yield ""
    for row in rows:
        off = row["relative_error"] is not None and abs(row["relative_error"]) > MISSED
        if row["verdict"] not in (NOT_MODELLED, INPUT) and (off or row["verdict"] != RIGHT):
            yield f"- `{row['id']}`, {row['alternative']}: {row['note'] or 'not explained yet.'}"
    for row in {row["id"]: row for row in rows if row["not_modelled"]}.values():
        yield f"- `{row['id']}`: not modelled here: {row['not_modelled']}."


def ratio_text(value: Any) -> str:
    """A ratio, or the ends of a range."""
    if value is None:
        return "–"
    ends = [value] if isinstance(value, float) else [*dict.fromkeys(f"{v:.3g}" for v in value)]
    return " to ".join(end if isinstance(end, str) else f"{end:.3g}" for end in ends)
