"""Kinds of files: one that is of another kind than expected is told so, not field by field."""

from typing import NamedTuple

from .yaml_file import Document


class _Kind(NamedTuple):
    """``fields``: those that files of this kind have, and no others. ``command``: what takes it."""

    name: str
    fields: tuple[str, ...]
    command: str


_KINDS = (
    _Kind("machine", ("node_types",), "machine check"),
    _Kind("workload", ("objects", "operations"), "workload check"),
    _Kind("scenario", ("extends", "machine", "workload"), "scenario check"),
    _Kind("study", ("factors",), "study check"),
    _Kind("suite", ("checks",), "regress"),
)


def check_kind(document: Document, expected: str) -> None:
    """Raises InputError where the file describes something else than ``expected``."""
    if not isinstance(document.value, dict):
        return  # reported where it is read
    found = [kind for kind in _KINDS if any(field in document.value for field in kind.fields)]
    if found and expected not in [kind.name for kind in found]:
        kind = found[0]
        error = document.error((), f"this is a {kind.name} file", expected=f"a {expected} file")
        if not document.within:
            error.hint = f"try 'numatwin {kind.command} {document.file}'"
        raise error
