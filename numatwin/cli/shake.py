"""``numatwin shake``: random clusters, workloads and faults by seed, each history checked."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..inputs import InputError
from .options import Jobs, Json, ScenarioName, Seed
from .output import present, progress_bar

if TYPE_CHECKING:
    from ..sim.systems.descriptor import Shaker

BATCH = 50  # runs that a worker does at a time


def shake(
    scenario: ScenarioName,
    runs: Annotated[int, typer.Option(min=1, max=100_000_000, help="How many.")] = 1_000,
    jobs: Jobs = None,
    seed: Seed = None,
    json: Json = False,
) -> None:
    """Look for faults that a cluster's protocols do not survive.

    Each run has a seed, from --seed on. It draws a small cluster, a workload, a protocol that the
    scenario's machine can run, and faults: servers that stop, paths that fail, clients that die.
    Its history is checked for snapshot isolation and lost writes; in the end no lock may stay, and
    each transaction must have ended. The first finding is shrunk and printed with the command that
    replays it; the exit status is 1.
    """
    first = seed or 0
    found = None
    with progress_bar("shaking") as progress:
        for done, wrong in enumerate(_results(scenario, first, runs, jobs or 1), 1):
            progress(done / (-(-runs // BATCH)))
            if wrong:
                found = wrong
                break
    answer = {"scenario": scenario, "seed": first, "runs": runs, "finding": found}
    present(json, lambda: answer, _lines(scenario, runs, found))
    if found:
        raise typer.Exit(1)


def _results(scenario: str, first: int, runs: int, jobs: int) -> Iterator[dict[str, Any] | None]:
    """Of each batch in order, its first finding."""
    from joblib import Parallel, delayed

    shaker_of(scenario)  # bad input is told once, and here
    batches = [
        (scenario, start, min(BATCH, first + runs - start))
        for start in range(first, first + runs, BATCH)
    ]
    if jobs == 1:
        yield from (shake_batch(*batch) for batch in batches)
        return
    parallel = Parallel(n_jobs=jobs, return_as="generator")
    yield from parallel(delayed(shake_batch)(*batch) for batch in batches)


def shaker_of(scenario: str) -> "Shaker":
    """What shakes a scenario's system. Raises InputError where nothing does."""
    from ..sim.run.scenario import load_scenario
    from ..sim.systems.registry import SYSTEMS, system_named

    kind = load_scenario(scenario).system.kind
    shaker = system_named(kind).shaker
    if shaker is None:
        able = " or ".join(name for name in SYSTEMS if system_named(name).shaker)
        raise InputError("system.kind: nothing of it can be shaken", token=kind, expected=able)
    made: Shaker = shaker.load()(lambda settings: load_scenario(scenario, settings=settings))
    return made


def shake_batch(scenario: str, first: int, runs: int) -> dict[str, Any] | None:
    """The first finding of some seeds, shrunk."""
    shaker = shaker_of(scenario)
    for seed in range(first, first + runs):
        if found := shaker.finding(seed):
            return {"seed": seed, **found}
    return None


def _lines(scenario: str, runs: int, found: dict[str, Any] | None) -> Iterator[str]:
    if found is None:
        yield f"{runs:,} runs: nothing found"
        return
    yield f"seed {found['seed']}: {found['findings'][0]}"
    yield "the smallest case found that goes wrong:"
    yield from (f"  {line}" for line in found["case"])
    yield f"replay: numatwin shake {scenario} --seed {found['seed']} --runs 1"
