"""Lines that CI systems show as annotations of a suite's file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from .junit import message_of
from .regress import Result
from .suite import Suite

Line = Callable[[str, str, int, str, str], str]


def annotation_lines(
    suite: Suite, results: Sequence[Result], environment: Mapping[str, str], strict: bool = False
) -> list[str]:
    """A line for each check that is worse or undecided, as the CI system that runs this has them.

    None where ``environment`` is not that of a system that reads such lines. ``strict``: undecided
    is an error too.
    """
    for variable, value, root, line in SYSTEMS:
        if environment.get(variable, "").lower() == value:
            file = _from_root(suite.path, environment.get(root))
            return [
                line(
                    level, file, result.check.line or 1, f"{suite.name}: {name}", message_of(result)
                )
                for result in results
                if (level := _level(result, strict)) is not None
                for name in [result.check.name]
            ]
    return []


def _level(result: Result, strict: bool) -> str | None:
    if result.verdict == "worse":
        return "error"
    if result.verdict == "undecided":
        return "error" if strict else "warning"
    return None


def _from_root(path: Path, root: str | None) -> str:
    """The path from the repository's root, as these systems want it, where it lies in there."""
    whole = path.resolve()
    for folder in (root, Path.cwd()):
        if folder and whole.is_relative_to(Path(folder).resolve()):
            return whole.relative_to(Path(folder).resolve()).as_posix()
    return str(whole)


# Workflow commands of GitHub, Gitea and Forgejo: docs.github.com, "Workflow commands".
def _github(level: str, file: str, line: int, title: str, message: str) -> str:
    escaped = {"%": "%25", "\r": "%0D", "\n": "%0A"}
    named = {**escaped, ":": "%3A", ",": "%2C"}
    place = f"file={_escaped(file, named)},line={line},title={_escaped(title, named)}"
    return f"::{level} {place}::{_escaped(message, escaped)}"


# Logging commands of Azure Pipelines: learn.microsoft.com, "Logging commands".
def _azure(level: str, file: str, line: int, title: str, message: str) -> str:
    escaped = {"%": "%AZP25", "\r": "%0D", "\n": "%0A"}
    named = {**escaped, ";": "%3B", "]": "%5D"}
    place = f"type={level};sourcepath={_escaped(file, named)};linenumber={line};"
    return f"##vso[task.logissue {place}]{_escaped(f'{title}: {message}', escaped)}"


def _escaped(text: str, signs: Mapping[str, str]) -> str:
    return "".join(signs.get(sign, sign) for sign in text)


# The variable that tells of the system, its value, the one that has the repository's root.
SYSTEMS: Sequence[tuple[str, str, str, Line]] = (
    ("GITHUB_ACTIONS", "true", "GITHUB_WORKSPACE", _github),
    ("TF_BUILD", "true", "BUILD_SOURCESDIRECTORY", _azure),
)
