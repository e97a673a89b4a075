"""The workloads by name: the bundled files, and any file of the user's."""

from functools import lru_cache
from pathlib import Path

from ..inputs import Catalogue, DescriptionError, Document, load_yaml
from ..inputs.kinds import check_kind
from .schema import WorkloadDescription
from .workload import Workload, resolve

BUNDLED = Path(__file__).parent
CATALOGUE = Catalogue(BUNDLED, "workload")


def workload_names() -> list[str]:
    """The names of the bundled workloads, in alphabetical order."""
    return CATALOGUE.names()


def load_workload(name_or_path: str | Path) -> Workload:
    """Load the bundled workload of that name, or the one in that file.

    Parameters
    ----------
    name_or_path : str or Path
        A name that ``numatwin workload list`` prints, or the path of a workload file.

    Returns
    -------
    Workload

    Raises
    ------
    InputError
        If there is none, or its description is wrong; says where.
    """
    text = str(name_or_path)
    path = CATALOGUE.path(text)
    if CATALOGUE.is_bundled(text):
        return _bundled(text)
    return workload_from_document(load_yaml(path), path.parent)


def workload_from_document(document: Document, base_dir: Path) -> Workload:
    """The workload of a loaded YAML document; raises InputError with line and column.

    Files that it names are looked for in ``base_dir``.
    """
    check_kind(document, "workload")
    description = document.read_as(WorkloadDescription)
    try:
        return resolve(description, base_dir)
    except DescriptionError as failure:
        place = document.written_place(failure.place)
        raw = document.part(place)
        token = str(raw) if isinstance(raw, (str, int, float)) else None
        raise document.error(place, f"{document.name_of(place)}: {failure}", token=token) from None


@lru_cache(maxsize=32)
def _bundled(name: str) -> Workload:
    return workload_from_document(load_yaml(CATALOGUE.path(name)), BUNDLED)
