"""The bundled suites and their baselines go together."""

import pytest

from numatwin.validate.baseline import baseline_of
from numatwin.validate.suite import CATALOGUE, load_suite


@pytest.mark.parametrize("name", CATALOGUE.names())
def test_the_baseline_is_of_these_machines_and_workloads(name: str) -> None:
    suite = load_suite(name)
    wanted = {check.name for check in suite.checks if check.kind == "baseline"}
    assert wanted <= baseline_of(suite, suite.baseline_path).keys()
