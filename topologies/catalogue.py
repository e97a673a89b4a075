"""The machines by name: the bundled files, and any file of the user's."""

from functools import lru_cache
from pathlib import Path

from ..inputs import Catalogue, Document, load_yaml
from ..inputs.kinds import check_kind
from .build import build_machine
from .machine import Machine
from .schema import DescriptionError, MachineDescription

BUNDLED = Path(__file__).parent
CATALOGUE = Catalogue(BUNDLED, "machine")


def machine_names() -> list[str]:
    """The names of the bundled machines, in alphabetical order."""
    return CATALOGUE.names()


def load_machine(name_or_path: str | Path) -> Machine:
    """Load the bundled machine of that name, or the one in that file.

    Parameters
    ----------
    name_or_path : str or Path
        A name that ``numatwin machine list`` prints, or the path of a machine file.

    Returns
    -------
    Machine

    Raises
    ------
    InputError
        If there is none, or its description is wrong; says where.
    """
    path = name_or_path if isinstance(name_or_path, Path) else CATALOGUE.path(name_or_path)
    try:
        state = path.stat()
    except OSError:
        return machine_from_document(load_yaml(path))  # which tells why it cannot be read
    return _loaded(path.absolute(), path, state.st_mtime_ns, state.st_size)


def machine_from_document(document: Document) -> Machine:
    """The machine of a loaded YAML document; raises InputError with line and column."""
    description = description_from_document(document)
    try:
        return build_machine(description)
    except DescriptionError as failure:
        raise document.error(failure.place, str(failure)) from None


def description_from_document(document: Document) -> MachineDescription:
    """The description in a loaded YAML document; raises InputError with line and column."""
    check_kind(document, "machine")
    found = document.read_as(MachineDescription)
    engines = {
        name: part.placed(document, ("engines", name)) for name, part in found.engines.items()
    }
    return found.model_copy(update={"engines": engines})


@lru_cache(maxsize=8)
def _loaded(absolute: Path, path: Path, changed_ns: int, size_bytes: int) -> Machine:
    """The machine in a file as it was then: a suite loads the same one for each of its cases."""
    return machine_from_document(load_yaml(path))
