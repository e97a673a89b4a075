"""Results of a suite as JUnit XML, which CI systems show, and as lines that they fold in."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

from .regress import Result
from .suite import Suite


def told(result: Result) -> str:
    """One sentence: what was compared, by how much it differs, how sure that is."""
    relative = result.difference.relative
    metric, unit = str(result.check.metric), result.check.metric.unit
    against = {"bound": "the bound", "against": "the alternative", "baseline": "the baseline"}
    figures = f"{result.value:.6g} {unit} against {result.reference:.6g} {unit}"
    text = f"{metric} of {result.check.scenario.name}: {figures} of {against[result.check.kind]}"
    if relative is None:
        return f"{text}; {result.verdict}"
    interval = (
        f"{100 * relative.value:+.2f}% ({100 * relative.low:+.2f} to {100 * relative.high:+.2f}%)"
    )
    return f"{text}, {interval}: {verdict_in_words(result)}"


def verdict_in_words(result: Result) -> str:
    """The verdict, with the tolerance that it is about."""
    within = f" within {100 * result.check.tolerance:g}%"
    if result.verdict == "no difference":
        return f"no difference{within}"
    if result.verdict == "undecided":
        return f"undecided{within} after {result.replications} replications"
    return result.verdict


def junit_xml(suite: Suite, results: Sequence[Result]) -> str:
    """A case for each check: worse is a failure, undecided is skipped with its reason."""
    verdicts = [result.verdict for result in results]
    root = ElementTree.Element(
        "testsuite",
        name=suite.name,
        tests=str(len(results)),
        failures=str(verdicts.count("worse")),
        skipped=str(verdicts.count("undecided")),
        errors="0",
    )
    for result in results:
        case = ElementTree.SubElement(
            root, "testcase", classname=suite.name, name=result.check.name, file=str(suite.path)
        )
        if result.verdict == "worse":
            ElementTree.SubElement(case, "failure", message=told(result), type="worse")
        elif result.verdict == "undecided":
            ElementTree.SubElement(case, "skipped", message=told(result))
        ElementTree.SubElement(case, "system-out").text = told(result)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def annotation_lines(suite: Suite, results: Sequence[Result]) -> list[str]:
    """A line for each check that is worse or undecided, as workflow commands of GitHub."""
    lines = []
    for result in results:
        level = {"worse": "error", "undecided": "warning"}.get(result.verdict)
        if level is not None:
            at = f"file={_property(str(suite.path))},line={result.check.line or 1}"
            title = _property(f"{suite.name}: {result.check.name}")
            lines.append(f"::{level} {at},title={title}::{_data(told(result))}")
    return lines


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
