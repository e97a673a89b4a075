"""JUnit XML as CI systems read it, and lines that they fold into annotations."""

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_suites import FLOW, KEEPS, write

from numatwin.sim.run.statistics import Interval
from numatwin.validate.annotations import annotation_lines, junit_xml
from numatwin.validate.baseline import Entry
from numatwin.validate.regress import Difference, Result, Verdict
from numatwin.validate.suite import Suite, load_suite

# What Jenkins' schema allows (xunit plugin, junit-10.xsd), which GitLab and Azure Pipelines read
# too: by element, its attributes (the required ones with a *) and what it may hold.
SCHEMA: dict[str, tuple[str, str]] = {
    "testsuites": ("name time tests failures errors", "testsuite"),
    "testsuite": (
        "name* tests* failures* errors* time skipped timestamp hostname id package file log url",
        "testsuite properties testcase system-out system-err",
    ),
    "testcase": ("name* time classname group", "skipped error failure system-out system-err"),
    "failure": ("type message", ""),
    "error": ("type message", ""),
    "skipped": ("type message", ""),
    "system-out": ("", ""),
}


def check_schema(element: ElementTree.Element) -> None:
    attributes, children = SCHEMA[element.tag]
    allowed = {name.rstrip("*") for name in attributes.split()}
    required = {name.rstrip("*") for name in attributes.split() if name.endswith("*")}
    assert required <= {*element.keys()} <= allowed, element.tag
    for child in element:
        assert child.tag in children.split(), (element.tag, child.tag)
        check_schema(child)


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Suite:
    return load_suite(write(tmp_path_factory.mktemp("suite"), FLOW, KEEPS))


def result(suite: Suite, number: int, verdict: Verdict, low: float = 0.0) -> Result:
    check = suite.checks[number]
    entry = Entry(str(check.metric), 0, True, 0.0, (5.0,), {})
    difference = Difference(verdict, Interval(0.0, low, 0.0))
    return Result(check, 5.0, 5.0, difference, 3, 1234.5678, entry)


def parsed(text: str) -> tuple[ElementTree.Element, list[ElementTree.Element]]:
    root = ElementTree.fromstring(text)
    check_schema(root)
    (top,) = root
    cases = list(top)
    assert int(top.get("tests", "")) == len(cases)
    for tag, attribute in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        count = sum(case.find(tag) is not None for case in cases)
        assert int(top.get(attribute, "")) == count, tag
        assert root.get(attribute, str(count)) == str(count)
    return top, cases


def tags(case: ElementTree.Element) -> list[str]:
    return [child.tag for child in case]


def test_verdicts(suite: Suite) -> None:
    worse, undecided = result(suite, 0, "worse"), result(suite, 1, "undecided")
    top, cases = parsed(junit_xml(suite, [worse, undecided]))
    assert top.get("name") == "mine"
    assert [case.get("name") for case in cases] == ["flow", "keeps"]
    assert [tags(case) for case in cases] == [["failure", "system-out"], ["skipped", "system-out"]]
    failure = cases[0].find("failure")
    assert failure is not None
    assert failure.get("type") == "worse"
    assert "throughput.lookup of eris-fig8-amd" in (failure.get("message") or "")
    assert cases[0].get("time") == "1234.568"
    assert top.get("time") == "2469.136"
    _, cases = parsed(junit_xml(suite, [worse, undecided], strict=True))
    assert [tags(case)[0] for case in cases] == ["failure", "failure"]
    fine = [result(suite, 0, "better"), result(suite, 1, "no difference")]
    _, cases = parsed(junit_xml(suite, fine))
    assert [tags(case) for case in cases] == [["system-out"]] * 2


def test_what_was_not_run(suite: Suite) -> None:
    """A failure in the middle is an error of its check; those after it were not run."""
    _, cases = parsed(junit_xml(suite, [], "file:3: it breaks <here> & there"))
    assert [tags(case) for case in cases] == [["error"], ["skipped"]]
    error = cases[0].find("error")
    assert error is not None
    assert error.get("message") == "file:3: it breaks <here> & there"
    _, cases = parsed(junit_xml(suite, [result(suite, 0, "worse")]))  # Ctrl-C
    assert [tags(case)[0] for case in cases] == ["failure", "skipped"]


@settings(deadline=None)
@given(st.text())
def test_whatever_a_message_holds(suite: Suite, text: str) -> None:
    parsed(junit_xml(suite, [], text))


GITHUB = {"GITHUB_ACTIONS": "true"}


def test_nothing_for_other_systems(suite: Suite) -> None:
    worse = [result(suite, 0, "worse")]
    for environment in ({}, {"CI": "true", "GITLAB_CI": "true"}, {"GITHUB_ACTIONS": "false"}):
        assert annotation_lines(suite, worse, environment) == []
    assert annotation_lines(suite, [result(suite, 0, "better")], GITHUB) == []


def test_github(suite: Suite) -> None:
    results = [result(suite, 0, "worse", low=-0.5), result(suite, 1, "undecided")]
    root = {**GITHUB, "GITHUB_WORKSPACE": str(suite.path.parent)}
    error, warning = annotation_lines(suite, results, root)
    assert error.startswith(
        "::error file=mine.yaml,line=4,title=mine%3A flow::throughput.lookup of"
    )
    assert "(-50.00%25 to" not in error
    assert "-50.00 to -0.00%25" in error.replace("+0.00", "-0.00")
    assert warning.startswith("::warning file=mine.yaml,line=7,title=mine%3A keeps::")
    strict = annotation_lines(suite, results, root, strict=True)
    assert [line.split()[0] for line in strict] == ["::error", "::error"]


def test_azure(suite: Suite) -> None:
    environment = {"TF_BUILD": "True", "BUILD_SOURCESDIRECTORY": str(suite.path.parent)}
    (line,) = annotation_lines(suite, [result(suite, 0, "worse")], environment)
    place = "type=error;sourcepath=mine.yaml;linenumber=4;"
    assert line.startswith(f"##vso[task.logissue {place}]mine: flow: throughput.lookup of")
    assert "0.00%AZP25" in line


def test_a_suite_outside_of_the_repository(
    suite: Suite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    environment = {**GITHUB, "GITHUB_WORKSPACE": str(tmp_path)}
    (line,) = annotation_lines(suite, [result(suite, 0, "worse")], environment)
    assert f"file={suite.path.resolve()}," in line


def test_signs_that_would_end_a_field(suite: Suite, tmp_path: Path) -> None:
    odd = replace(suite, path=tmp_path / "a,b:c;d]%\n.yaml")
    (line,) = annotation_lines(odd, [result(suite, 0, "worse")], {"GITHUB_ACTIONS": "true"})
    assert "a%2Cb%3Ac;d]%25%0A.yaml,line=4" in line
    (line,) = annotation_lines(odd, [result(suite, 0, "worse")], {"TF_BUILD": "true"})
    assert "a,b:c%3Bd%5D%AZP25%0A.yaml;linenumber" in line
