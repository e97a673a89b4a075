"""A plan cut into pipelines: what one task does to a row before it puts it away."""

from __future__ import annotations

from dataclasses import dataclass, field

from .engines import FLOWS, SINK, Engine
from .plans import Plan, PlanOperator

Part = tuple[PlanOperator, str]


@dataclass
class Pipeline:
    """``rows`` come from a ``table``, or from what the pipeline ``after`` put away; ``parts`` of
    operators work on them in turn. ``results``: rows that come out of it.
    """

    name: str
    rows: float
    results: float
    table: PlanOperator | None = None
    after: list[str] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)


def pipelines_of(plan: Plan, engine: Engine) -> list[Pipeline]:
    """The pipelines of a plan, each after those that it waits for."""
    by_name = {operator.name: operator for operator in plan.operators}
    inputs = {name for operator in plan.operators for name in operator.inputs}
    found: list[Pipeline] = []

    def ended(pipeline: Pipeline, at: PlanOperator) -> Pipeline:
        pipeline.name = at.name
        found.append(pipeline)
        return pipeline

    def of(operator: PlanOperator) -> Pipeline:
        below = [by_name[name] for name in operator.inputs]
        if not below:
            own = operator if operator.table else None
            rows = max(operator.rows, 1.0)
            return Pipeline("", rows, operator.results, own, [], [(operator, FLOWS)])
        now = of(below[0])
        if operator.kind in engine.joins:
            for other in below[1:]:
                build = of(other)
                if other.kind not in engine.breakers:
                    build.parts.append((operator, SINK))
                now.after.append(ended(build, other).name)
        else:
            for other in below[1:]:  # of a union: after each other
                now.after.append(ended(of(other), other).name)
        if operator.kind in engine.breakers:
            now.parts.append((operator, SINK))
            rows = max(operator.results, 1.0)
            first = ended(now, operator)
            first.results = 0.0
            now = Pipeline("", rows, rows, None, [first.name], [])
        now.parts.append((operator, FLOWS))
        now.results = operator.results
        return now

    for operator in plan.operators:
        if operator.name not in inputs:
            ended(of(operator), operator)
    names: dict[str, int] = {}
    for pipeline in found:  # what an operator passes on is another pipeline than what it takes in
        count = names[pipeline.name] = names.get(pipeline.name, 0) + 1
        if count > 1:
            pipeline.name = f"{pipeline.name}-results"
    return found
