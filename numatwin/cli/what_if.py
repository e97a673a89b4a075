"""``numatwin what-if``: how long a query would take on a machine, and what would help it."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from .options import Json, bundled_machines, grouped, option
from .output import Part, latency, number, present, progress_bar, whole_table
from .profile import Counting, Words

if TYPE_CHECKING:
    from ..validate.profile.what_if import Prediction


@grouped
def what_if(
    words: Words,
    machine: Annotated[
        str | None,
        option(
            "M",
            "A bundled machine, or a machine file (.yaml); by default this host.",
            autocompletion=bundled_machines,
        ),
    ] = None,
    threads: Annotated[
        int | None, option("N", "Threads on each node; by default one a core.", min=1)
    ] = None,
    *,
    of: Counting,
    json: Json = False,
) -> None:
    """Predict how long a query takes, and what would help it.

    The query is a workload file, or a profile or a command as of 'numatwin profile'. Each line is a
    command to try, with what it gains, the 90% interval of that, and how likely it gains at all.
    """
    import tempfile

    from ..validate.profile.timed_rates import described
    from ..validate.profile.what_if import NOT_PREDICTED, predictions

    with tempfile.TemporaryDirectory(prefix="numatwin-") as name:
        folder = Path(name)
        workload = Path(words[0]).absolute()
        if len(words) > 1 or workload.suffix not in (".yaml", ".yml"):
            workload = folder / "workload.yaml"
            workload.write_text(of.workload(words, "query"))
        with progress_bar("predicting") as progress:
            made = predictions(folder, described(machine, folder), workload, threads, progress)
    plain = {"alternatives": [each.as_json() for each in made], "not_predicted": NOT_PREDICTED}
    present(json, lambda: plain, _parts(made))


def _parts(made: "Sequence[Prediction]") -> Iterator[Part]:
    from ..validate.profile.what_if import NOT_PREDICTED

    rows = (
        (
            each.alternative.name,
            each.alternative.command,
            latency(each.time_s * 1e9),
            " to ".join(latency(end * 1e9) for end in each.interval_s),
            number(each.gain),
            " to ".join(number(end) for end in each.gain_interval) if k else "",
            f"{each.faster:.0%}" if k else "",
        )
        for k, each in enumerate(made)
    )
    heads = ("alternative", "command", "time", "90% interval", "gain", "90% interval", "faster")
    yield whole_table(heads, rows, left=2)
    yield f"\nlimited by      {made[0].binds}"
    yield from (f"not predicted   {what}: {why}" for what, why in NOT_PREDICTED.items())
