"""The workloads by name: the bundled files, and any file of the user's."""

from __future__ import annotations

import difflib
from functools import lru_cache
from pathlib import Path

from ..inputs import DescriptionError, Document, InputError, load_yaml
from .schema import WorkloadDescription
from .workload import Workload, resolve

BUNDLED = Path(__file__).parent


def workload_names() -> list[str]:
    """The names of the bundled workloads, in alphabetical order."""
    return sorted(path.stem for path in BUNDLED.glob("*.yaml"))


def load_workload(name_or_path: str | Path) -> Workload:
    """The bundled workload of that name, or the one in that file; raises InputError."""
    text = str(name_or_path)
    if "/" in text or text.endswith((".yaml", ".yml")):
        return workload_from_document(load_yaml(text), Path(text).parent)
    names = workload_names()
    if text not in names:
        close = difflib.get_close_matches(text, names, 1)
        known = f"'{close[0]}'" if close else "a name that 'numatwin workload list' prints"
        raise InputError(
            "unknown workload", token=text, expected=f"{known}, or a path to a .yaml file"
        )
    return _bundled(text)


def workload_from_document(document: Document, base_dir: Path) -> Workload:
    """The workload of a loaded YAML document; raises InputError with line and column.

    Files that it names are looked for in ``base_dir``.
    """
    description = document.read_as(WorkloadDescription)
    try:
        return resolve(description, base_dir)
    except DescriptionError as failure:
        where = ".".join(map(str, failure.place))
        raw = document.part(failure.place)
        token = str(raw) if isinstance(raw, (str, int, float)) else None
        raise document.error(failure.place, f"{where}: {failure}", token=token) from None


@lru_cache(maxsize=32)
def _bundled(name: str) -> Workload:
    return workload_from_document(load_yaml(BUNDLED / f"{name}.yaml"), BUNDLED)
