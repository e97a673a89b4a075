"""``numatwin explore``: a page on this computer to try a scenario's variants on."""

from contextlib import suppress
from typing import Annotated

import typer

from ..inputs import InputError
from .options import OtherMachine, ScenarioName, Settings, option
from .output import progress_bar, show


def explore(
    scenario: ScenarioName,
    machine: OtherMachine = None,
    set_: Settings = None,
    port: Annotated[int, option("N", "A port; 0 is any free one.", min=0, max=65535)] = 0,
    browser: Annotated[bool, typer.Option(help="Open the page in the browser.")] = True,
) -> None:
    """Explore a scenario in the browser, field by field."""
    from ..sim.studies.base import Base

    try:
        from ..reports.explore import ExploreServer
        from ..reports.explore.explorer import Choice, Explorer
    except ModuleNotFoundError as failure:
        raise InputError(
            f"numatwin explore needs {failure.name}", expected="pip install 'numatwin[explore]'"
        ) from None

    explorer = Explorer(Base(scenario, {"machine": machine} if machine else {}, tuple(set_ or ())))
    with progress_bar("finding the fields that matter") as progress:
        explorer.fields(Choice(), progress)
    server = ExploreServer(explorer, port)
    show([server.link(), "Opens once, in one browser of this computer. Ctrl-C ends it."])
    if browser:
        import webbrowser

        webbrowser.open(server.link())
    with suppress(KeyboardInterrupt):
        server.serve()
    show(["ended"])
