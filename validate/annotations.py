"""Results of a suite as CI systems show them: annotations of its file, JUnit XML."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree

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


AGAINST = {"bound": "the bound", "against": "the alternative", "baseline": "the baseline"}


def message_of(result: Result) -> str:
    """One sentence: what was compared, by how much it differs, how sure that is."""
    relative = result.difference.relative
    metric, unit = str(result.check.metric), result.check.metric.unit
    unit = "" if unit == "1" else f" {unit}"
    text = f"{metric} of {result.check.scenario.name}: {result.value:.6g}{unit}"
    if result.reference is not None:
        times = f"{result.check.factor:g} × " if result.check.factor != 1.0 else ""
        what = f"{times}{AGAINST[result.check.kind]}"
        text += f" against {result.reference:.6g}{unit} of {what}"
    if relative is not None:
        text += (
            f", better by {100 * relative.value:+.2f}% "
            f"({100 * relative.low:+.2f} to {100 * relative.high:+.2f}%)"
        )
    return f"{text}: {verdict_in_words(result)}"


def verdict_in_words(result: Result) -> str:
    """The verdict, with the tolerance that it is about."""
    if result.reference is None:
        return "no baseline before"
    within = f" within {100 * result.check.tolerance:.3g}%"
    if result.verdict == "no difference":
        return f"no difference{within}"
    if result.verdict == "undecided":
        return f"undecided{within}"
    return result.verdict


def junit_xml(
    suite: Suite, results: Sequence[Result], failure: str | None = None, strict: bool = False
) -> str:
    """A case for each check: worse is a failure, undecided is skipped, or with ``strict`` failed.

    ``failure``: why the check after the last of ``results`` could not be run; those after it are
    skipped too.
    """
    root = ElementTree.Element("testsuites", name="numatwin regress")
    top = ElementTree.SubElement(root, "testsuite", name=suite.name)
    finished = {result.check.name: result for result in results}
    count = dict.fromkeys(("failures", "skipped", "errors"), 0)
    for check in suite.checks:
        case = ElementTree.SubElement(top, "testcase", classname=suite.name, name=check.name)
        result = finished.get(check.name)
        if result is None:
            kind, message = "skipped", "it was not run"
            if failure is not None:
                kind, message, failure = "error", failure, None
            count["errors" if kind == "error" else "skipped"] += 1
            ElementTree.SubElement(case, kind, message=_clean(message), type=kind)
            continue
        case.set("time", f"{result.wall_s:.3f}")
        message = _clean(message_of(result))
        level = _level(result, strict)
        if level is not None:
            kind, counted = ("failure", "failures") if level == "error" else ("skipped", "skipped")
            count[counted] += 1
            ElementTree.SubElement(case, kind, message=message, type=result.verdict)
        ElementTree.SubElement(case, "system-out").text = message
    for element in (root, top):
        element.set("tests", str(len(suite.checks)))
        element.set("time", f"{sum(result.wall_s for result in results):.3f}")
        for name in ("failures", "errors"):
            element.set(name, str(count[name]))
    top.set("skipped", str(count["skipped"]))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _clean(text: str) -> str:
    """Without what XML cannot hold, such as control characters of a file's name."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
