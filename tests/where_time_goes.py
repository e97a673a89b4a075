"""Where the time of the tests goes: ``pytest --where-time-goes`` ends with a table by file.

CPU seconds are those of the test processes and of all programs that these ran and waited for; they
say more than wall time where several tests run at a time, or others use the host.
"""

import resource
from collections import defaultdict
from collections.abc import Generator

import pytest

FILES, TESTS = 100, 60


def cpu_s() -> float:
    """Of this process and of the children that it has waited for."""
    uses = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(use.ru_utime + use.ru_stime for use in uses)


class Meter:
    """Says in the report of each phase of a test how much CPU time went into it."""

    def pytest_runtest_logstart(self) -> None:
        self.seen_s = cpu_s()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        before_s, self.seen_s = self.seen_s, cpu_s()
        vars(report)["cpu_s"] = self.seen_s - before_s
        return report


class Table:
    """What the reports say, by file and by test."""

    def __init__(self) -> None:
        self.tests: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        times = self.tests[report.nodeid]
        times[0] += getattr(report, "cpu_s", 0.0)
        times[1] += report.duration

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        files: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
        for name, times in self.tests.items():
            total = files[name.partition("::")[0]]
            total[:] = map(sum, zip(total, times, strict=True))
        print_ = terminalreporter.write_line
        print_(f"{'CPU s':>8} {'wall s':>8}  file, of {len(files)}, and test, of {len(self.tests)}")
        everything = [sum(column) for column in zip(*files.values(), strict=True)] or [0.0, 0.0]
        rows = [[("all", everything)], largest(files, FILES), largest(self.tests, TESTS)]
        for name, (cpu, wall) in (row for part in rows for row in part):
            print_(f"{cpu:8.1f} {wall:8.1f}  {name}")


def largest(times: dict[str, list[float]], count: int) -> list[tuple[str, list[float]]]:
    """Those that take the most CPU time."""
    return sorted(times.items(), key=lambda row: row[1], reverse=True)[:count]
