"""How all tests play: Hypothesis without a limit of time, long tests first, sweeps in some order.

On a busy host a process may wait for a processor for longer than any limit for an example. What
must be quick has a test of its own, which counts processor time.

`make test` and CI's sweeps draw the same examples each time, so that what fails is what was
changed; `make test-all` and `make sweeps` draw others each time, and twice as many
(`--hypothesis-profile random`).
"""

import gc
import random
import signal
import time

import pytest
from hypothesis import settings
from where_time_goes import Meter, Table

# As in the command line: nearly all objects stay, and looking for garbage among them all is a third
# of what collecting the tests takes.
gc.set_threshold(200_000, 2, 2)
settings.register_profile("repeatable", deadline=None, derandomize=True, max_examples=50)
settings.register_profile("random", deadline=None, print_blob=True)
settings.load_profile("repeatable")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--where-time-goes", action="store_true", help="end with a table of CPU seconds by file"
    )
    parser.addoption(
        "--until",
        type=int,
        metavar="S",
        help="begin no test after this time (seconds since 1970); in an order of its own, so that"
        " the same ones are not left out each time",
    )


def pytest_configure(config: pytest.Config) -> None:
    # A shell without job control starts what is in the background with Ctrl-C ignored, and so are
    # its children, of which some tests interrupt.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if config.getoption("--where-time-goes"):
        config.pluginmanager.register(Meter())
        if not hasattr(config, "workerinput"):
            config.pluginmanager.register(Table())


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Long ones first, so that none of them is what everything waits for in the end."""
    if until := config.getoption("--until"):
        random.Random(until).shuffle(items)
    else:
        items.sort(key=lambda item: item.get_closest_marker("slow") is None)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tests on real inputs, which are in a folder beside this one, are skipped where it is not."""
    reports = terminalreporter.stats.get("skipped", ())
    if lacking := sum("../shared" in str(report.longrepr) for report in reports):
        terminalreporter.write_line(
            f"{lacking} tests did not run: they read real inputs in ../shared, which has not all"
        )


def pytest_collection_finish() -> None:
    gc.freeze()  # tests and modules


def pytest_runtest_setup(item: pytest.Item) -> None:
    until = item.config.getoption("--until")
    if until and time.time() >= until:
        pytest.skip("no time left: 'make test-all' runs it")
