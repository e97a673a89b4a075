"""``numatwin train``: models for policies, from simulated scans."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .curves import Curve, curve_lines
from .files import check_file
from .options import Json, Simulated, option
from .output import Part, percent, present, progress_bar, table

if TYPE_CHECKING:
    from ..topologies import Machine

SCORES = {
    "r2_cpu": ("R², times by CPU", False),
    "r2_engine": ("R², times by the copy engine", False),
    "engine_is_best": ("scans that are best by the engine", True),
    "regression_precision": ("regression: precision", False),
    "regression_recall": ("recall", False),
    "regression_f1": ("F1", False),
    "regression_loss": ("time lost against the oracle", True),
    "tree_precision": ("tree: precision", False),
    "tree_recall": ("recall", False),
    "tree_f1": ("F1", False),
    "tree_loss": ("time lost against the oracle", True),
    "always_cpu_loss": ("lost if always by CPU", True),
    "always_engine_loss": ("lost if always by the engine", True),
}


Online = Annotated[
    int | None,
    option(
        "K", "Learn online: K scans by both paths, then each by the path chosen, one by one.", min=1
    ),
]


def train_access_path(
    machine: Annotated[str, option("M", "A machine with copy engines.")],
    out: Annotated[Path, option("FILE", "The model file (.json) to write.")],
    observations: Annotated[
        int, option("N", "Number of scans, each by both paths.", min=1_000, max=10_000_000)
    ] = 200_000,
    on: Annotated[Simulated, typer.Option(help="The data plane to run on.")] = Simulated.flow,
    seed: Annotated[int, option("S", "Seed of the draws.", min=0)] = 1,
    also: Annotated[str | None, option("M", "Score the model on another machine, too.")] = None,
    online: Online = None,
    json: Json = False,
) -> None:
    """Train a model that chooses the access path of a scan: by CPU or by the copy engine.

    Draws scans (size, node, result, background traffic), plays each by both paths, fits a
    regression for each path and a decision tree, and scores them on a fifth that is held out.
    With --online the regressions learn from one scan at a time, as in a running database.
    """
    from ..sim.systems.registry import trainer_of
    from ..topologies import load_machine

    loaded, other = load_machine(machine), None if also is None else load_machine(also)
    check_file(out, ".json")
    with progress_bar("training") as progress:
        model = trainer_of("access-path")(
            loaded, observations, seed, on.value, progress, other, online
        )
    model.save(out)
    plain = {"model": str(out), **model.model_dump(mode="json", exclude={"tree"})}
    present(json, lambda: plain, _parts(model.scores, online, other, out))


def _parts(
    scores: Mapping[str, Any], online: int | None, other: "Machine | None", out: Path
) -> Iterator[Part]:
    if online is not None:
        yield from _curve(online, scores["online"])
    yield _scores("of the held-out fifth", scores)
    if other is not None:
        yield f"\nThe same model on {other.name}:"
        yield _scores("of scans there", scores["carried"])
    yield f"\nModel: {out}"


def _scores(title: str, scores: Mapping[str, Any]) -> Part:
    """Each with its interval."""
    rows = [
        (words, *(percent(v) if share else f"{v:.3f}" for v in scores[name]))
        for name, (words, share) in SCORES.items()
        if name in scores
    ]
    return table((title, "value", "from", "to"), rows)


def _curve(first: int, curve: Sequence[tuple[int, float, float]]) -> Iterator[Part]:
    """What choices lose while the model learns, as scans double."""
    begins = (first, *(until for until, _, _ in curve))
    rows = [
        (f"{since + 1} to {until}", percent(chosen), percent(taken))
        for since, (until, chosen, taken) in zip(begins, curve, strict=False)
    ]
    yield table(("time lost, scans", "as chosen", "as run"), rows)
    points = [(float(until), 100.0 * chosen) for until, chosen, _ in curve]
    written = str(curve[0][0]), str(curve[-1][0]), f"{max(y for _, y in points):.3g}"
    drawn = Curve("as chosen", points)
    yield from ("", *curve_lines([drawn], "scans", "% lost as chosen", written, log=True), "")
