"""Checks of a suite that run a command in the emulator, and bound what it does to memory."""

from pathlib import Path

import pytest
from emulator_needed import needs_emulator

from numatwin.inputs import InputError
from numatwin.validate.emulated import FIGURES, EmulatedRun, traffic_figure
from numatwin.validate.regress import regress
from numatwin.validate.suite import load_suite

HEAD = "name: placement\nchecks:\n  home:\n"
RUN = "    emulate: {machine: opteron-4n, scale: 1/16, memory: 512 MiB, command: [sh, -c, ':']}\n"
METRIC = "    metric: traffic.remote_share\n"


def suite_file(folder: Path, checks: str) -> str:
    path = folder / "placement.yaml"
    path.write_text(HEAD + checks)
    return str(path)


@pytest.mark.parametrize(
    ("checks", "line", "told"),
    [
        (METRIC + "    at_most: 0.1\n", 4, "expected scenario or emulate"),
        (RUN + METRIC, 4, "expected at_most or at_least"),
        (RUN + "    scenario: eris-fig13\n" + METRIC + "    at_most: 1\n", 5, "one of them"),
        (RUN + "    settings: {seed: 1}\n" + METRIC + "    at_most: 1\n", 5, "one of them"),
        (RUN + "    metric: throughput.lookup\n    at_most: 1 1/s\n", 5, "traffic only"),
        (RUN + "    metric: traffic.link\n    at_most: 1 B\n", 5, "unknown metric"),
        (RUN + "    metric: traffic.link_bytes\n    at_most: 12\n", 6, "with its unit"),
        (RUN.replace("1/16", "1/0") + METRIC + "    at_most: 1\n", 4, "such as 1/16"),
        (RUN.replace("1/16", "2") + METRIC + "    at_most: 1\n", 4, "at most 1"),
        (RUN.replace("opteron-4n", "opteron-5n") + METRIC + "    at_most: 1\n", 4, "opteron-5n"),
        (RUN.replace("[sh, -c, ':']", "[]") + METRIC + "    at_most: 1\n", 4, "command"),
        (
            "    scenario: eris-fig13\n" + METRIC + "    at_most: 1\n",
            5,
            "emulate in place of scenario",
        ),
    ],
)
def test_what_is_wrong_is_told_with_its_line(
    tmp_path: Path, checks: str, line: int, told: str
) -> None:
    with pytest.raises(InputError) as refused:
        load_suite(suite_file(tmp_path, checks))
    assert told in str(refused.value)
    assert refused.value.line == line, str(refused.value)


def test_a_check_tells_what_it_runs_and_where(tmp_path: Path) -> None:
    text = RUN.replace("scale: 1/16", "nodes: 2, time_limit: 3 s") + METRIC + "    at_most: 0.25\n"
    (check,) = load_suite(suite_file(tmp_path, text)).checks
    run = check.scenario
    assert isinstance(run, EmulatedRun)
    assert (run.name, run.folder, run.part) == ("sh", tmp_path, None)
    assert (check.kind, check.bound, check.higher_is_better) == ("bound", 0.25, False)
    assert (check.line, check.tolerance) == (3, 0.0)


def test_figures_of_counted_traffic_by_hand() -> None:
    misses = {
        "read_misses_user": [[5, 2], [3, 7]],
        "read_misses_kernel": [[1, 1], [0, 0]],
        "write_misses_user": [[0, 4], [0, 0]],
        "write_misses_kernel": [[9, 0], [6, 0]],
    }
    traffic = {
        "remote_share": 16 / 38,
        "user_remote_share": 9 / 21,
        "line_bytes": 64,
        "pairs": misses,
        "memory": [{"read_bytes": 640, "written_bytes": 64}, {"read_bytes": 1, "written_bytes": 2}],
        "links": [{"data_bytes": 128, "message_bytes": 16}, {"data_bytes": 0, "message_bytes": 8}],
    }
    found = {name: traffic_figure(traffic, name) for name in FIGURES}
    assert found == {
        "remote_share": 16 / 38,
        "user_remote_share": 9 / 21,
        "remote_bytes": 16 * 64,
        "memory_bytes": 707,
        "link_bytes": 152,
    }


@needs_emulator
def test_the_gate_closes_where_memory_is_on_another_node(tmp_path: Path) -> None:
    """The same work twice: bound to the node of its memory, and to another."""
    work = "dd if=/dev/zero of=/dev/null bs=8M count=4 2>/dev/null"
    checks = "".join(
        f"  {name}:\n    emulate:\n      machine: opteron-4n\n      scale: 1/16\n"
        "      memory: 512 MiB\n"
        f"      command: [numactl, --cpunodebind=1, --membind={node}, sh, -c, '{work}']\n"
        "    metric: traffic.remote_share\n    at_most: 0.5\n"
        for name, node in (("near", 1), ("far", 2))
    )
    path = tmp_path / "placement.yaml"
    path.write_text(f"name: placement\nchecks:\n{checks}")
    near, far = regress(load_suite(str(path)), {})
    assert (near.verdict, far.verdict) == ("better", "worse")
    assert near.value < 0.4 < 0.6 < far.value
    assert near.as_json()["scenario"] == "numactl"


@needs_emulator
def test_a_command_that_fails_is_told(tmp_path: Path) -> None:
    text = RUN.replace("':'", "'echo no luck >&2; exit 3'") + METRIC + "    at_most: 1\n"
    with pytest.raises(InputError, match=r"ended with status 3 .* after 'no luck': expected"):
        list(regress(load_suite(suite_file(tmp_path, text)), {}))
