"""``numatwin study``: run, show, status; bad input."""

import re
import sys
from pathlib import Path

import pytest
from command_line import CommandLine, Refused

sys.path.append(str(Path(__file__).parents[1] / "sim" / "studies"))
from study_files import SMALL, study_file


def test_run_status_and_show(numatwin: CommandLine, tmp_path: Path) -> None:
    study_file(tmp_path)
    shown = numatwin("study", "show", "study.yaml", "--json").json()
    assert (shown["points"], shown["design"]) == (18, "grid")
    status = ("study", "status", "study.yaml", "--json")
    assert numatwin(*status).json()["done"] == 0
    part = numatwin("study", "run", "study.yaml", "--limit", "5", "--exact", "--json").json()
    assert (part["done"], part["new"], part["complete"]) == (5, 5, False)
    whole = numatwin("study", "run", "study.yaml", "--exact", "--json").json()
    assert (whole["done"], whole["new"], whole["complete"]) == (18, 13, True)
    assert numatwin(*status).json()["complete"]
    best = whole["best"][0]
    settings = best["settings"]
    # As a run of its own the best point has the same figures.
    command = numatwin(
        "study", "show", "study.yaml", "--point", str(best["point"]), "--json"
    ).json()
    words = ("--exact", "--json")
    run = numatwin(*command["command"].split()[1:3], *_settings(settings), *words).json()
    assert run["throughput"]["lookup"] == best["metrics"]["throughput.lookup"]
    assert run["settings"] == command["settings"]
    # As tables.
    assert "18 (grid)" in numatwin("study", "show", "study.yaml").out
    assert "18 of 18 done" in numatwin("study", "status", "study.yaml").out
    printed = numatwin("study", "run", "study.yaml").said()
    assert "maximise throughput.lookup per cost:" in printed
    rows = (re.split(r"  +", line) for line in printed.partition("per cost:\n")[2].splitlines()[:3])
    heading, first, second = rows
    assert heading[-2:] == ["throughput.lookup per cost", "90% interval"]
    assert float(first[-2].split()[0]) >= float(second[-2].split()[0])


def _settings(values: dict[str, object]) -> list[str]:
    unit = {"machine.link_types.ht-full.bandwidth": " GB/s"}
    words: list[str] = []
    for path, value in values.items():
        words += ["--set", f"{path}={value}{unit.get(path, '')}"]
    return words


def test_a_point_is_a_scenario_file(numatwin: CommandLine, tmp_path: Path) -> None:
    study_file(tmp_path)
    text = numatwin("study", "show", "study.yaml", "--point", "7").out
    assert text.startswith("# Point 7 of study small: numatwin run eris-fig8-amd --set ")
    (tmp_path / "point.yaml").write_text(text, encoding="utf-8")
    run = numatwin("run", "point.yaml", "--exact", "--json").json()
    assert run["settings"]["system"]["buffer_commands"] == 64


@pytest.mark.parametrize(("bound", "held"), [("100 k/s", 0), ("240 k/s", 1), ("900 k/s", 2)])
def test_constraints_without_an_objective(
    numatwin: CommandLine, refused: Refused, bound: str, held: int
) -> None:
    """Runs that hold them are counted, though none is the best; so on the page."""
    Path("plain.yaml").write_text(
        "name: plain\nscenario: nam-fig6-rsi\nfactors: {plane: [flow], system.clients: [5, 6]}\n"
        f"constraints: ['throughput.checkout < {bound}']\n"
    )
    shown = numatwin("study", "run", "plain.yaml", "--exact").out
    assert f"{held} of 2 runs hold all constraints." in shown
    numatwin("study", "report", "plain.yaml", "--exact")
    (page,) = Path("out").glob("*/report.html")
    assert f"{held} hold all constraints." in page.read_text()
    told = refused("study", "frontier", "plain.yaml")
    assert told == (
        "numatwin: error: plain.yaml: no run has a cost or a power to minimise: expected 'prices' "
        "in the study, 'power_W' among its metrics, or --least PATH, such as "
        "latency_ns.checkout.mean\n"
    )


def test_what_is_not_known_is_said(numatwin: CommandLine) -> None:
    """The flow plane knows no latencies of a machine's own queues: no run holds a bound of them."""
    Path("plain.yaml").write_text(
        "name: plain\nscenario: eris-fig5\nfactors: {plane: [flow], system.buffer_commands: [16]}\n"
        "constraints: ['latency_ns.lookup.p99 < 1 ms']\n"
    )
    told = "latency_ns.lookup.p99 is not known of 1 run, which cannot hold its bound."
    assert told in numatwin("study", "run", "plain.yaml", "--exact").out
    numatwin("study", "report", "plain.yaml", "--exact")
    (page,) = Path("out").glob("*/report.html")
    assert told in page.read_text()


def test_a_sample_has_ranges_and_no_curves(numatwin: CommandLine) -> None:
    """Of drawn values six digits are shown."""
    Path("drawn.yaml").write_text(
        "name: drawn\nscenario: eris-fig8-amd\nfactors:\n"
        "  machine.node_types.opteron-6274-die.clock:\n"
        "    {distribution: normal, mean: 2.2 GHz, deviation: 0.2 GHz}\n"
        "design: {kind: sobol, points: 4}\n"
    )
    assert "1.94378 GHz, 2.09514 GHz, 2.2 GHz," in numatwin("study", "show", "drawn.yaml").out
    shown = numatwin("study", "run", "drawn.yaml", "--exact").out
    (heading,) = (line for line in shown.splitlines() if line.startswith("figure"))
    assert heading.split() == ["figure", "least", "median", "most"]
    assert "┤" not in shown


def test_points_of_a_study_without_an_objective(numatwin: CommandLine) -> None:
    """Nothing is the best: all are listed, if they are few."""
    Path("plain.yaml").write_text(
        "name: plain\nscenario: nam-fig6-rsi\nset: {plane: flow}\n"
        "factors: {system.clients: '1:24:24'}\n"
    )
    shown = numatwin("study", "run", "plain.yaml").out
    lines = shown.partition("\npoint ")[2].splitlines()
    assert lines[0].split()[-3:] == ["throughput.checkout", "90%", "interval"]
    assert [line.split()[0] for line in lines[1:21]] == [str(point) for point in range(20)]
    assert lines[21] == "… and 4 more: 'numatwin study report' shows all"


def test_of_equal_machines_the_faster_run_is_the_best(
    numatwin: CommandLine, tmp_path: Path
) -> None:
    """In the run's answer, at the front, in the report and where 'explain' ends."""
    text = SMALL.replace("maximise throughput.lookup per cost", "minimise cost")
    study_file(tmp_path, text)
    best, *others = numatwin("study", "run", "study.yaml", "--exact", "--json").json()["best"]
    assert others[0]["objective"] == best["objective"]
    assert others[0]["metrics"]["throughput.lookup"] <= best["metrics"]["throughput.lookup"]
    front = numatwin("study", "frontier", "study.yaml", "--exact", "--json").json()["rows"]
    explained = numatwin("study", "explain", "study.yaml", "--json").json()
    assert front[0]["point"] == explained["to"] == best["point"]
    numatwin("study", "report", "study.yaml", "--page", "page.html", "--exact")
    assert f"To minimise cost: point {best['point']} (" in Path("page.html").read_text()
    shown = numatwin("study", "run", "study.yaml", "--exact").out
    assert "throughput.lookup" in shown.partition("minimise cost:\n")[2].splitlines()[0]


@pytest.mark.parametrize(
    ("change", "message"),
    {
        ("eris-fig8-amd", "eris-fig8"): "study.yaml:2:11: scenario: unknown scenario",
        ("80%", "80 us"): "study.yaml:7:15: constraints.0: a bound of utilisation.link.busiest",
        ("link.busiest", "link.most"): "constraints.0: unknown metric",
        ("lookup per", "scan per"): "objective: unknown metric: found 'throughput.scan', "
        "expected 'throughput.lookup'",
        ("prices:", "notes:"): "notes",
        ("fixed: 2000", "fixed: -1"): "prices.default.fixed",
        ("fixed: 2000", "per_disk: 1"): "unknown field 'per_disk' in prices.default",
        ("objective:", "objectiv:"): "unknown field 'objectiv': expected 'objective'",
        ("name: small", "name: small\nmetrics: [speed]"): "metrics: unknown metric: found 'speed'",
        ("name: small", "name: small\nset: {scal: 1}"): "set.scal: unknown field 'scal'",
    }.items(),
)
def test_bad_studies(
    refused: Refused, tmp_path: Path, change: tuple[str, str], message: str
) -> None:
    study_file(tmp_path, SMALL.replace(*change, 1))
    for words in (("run", "study.yaml"), ("show", "study.yaml"), ("status", "study.yaml")):
        assert message in refused("study", *words)


FACTOR = "name: bad\nscenario: eris-fig8-amd\nfactors:\n  "


@pytest.mark.parametrize(
    ("factor", "message"),
    [
        ("seed: [1, x]", "4:13: factors.seed.1: seed: found 'x', expected a whole number"),
        ("seed: '1,x'", "4:9: factors.seed: seed: found 'x', expected a whole number"),
        ("system.batch: {values: [64, 2.5]}", "4:31: factors.system.batch.values.1: system.batch:"),
        ("system.buffer_commands: [16, 0]", "4:32:"),
        ("system.buffer_commands: {from: -4, to: 4}", "found '-4', expected at least 1"),
        ("machine.link_types.ht-full.bandwidth: [4 GB/s, 5 ns]", "'ns' is not a unit of bandwidth"),
        ("machine.link_types.ht-full.bandwidth: [4, 5]", "a bare number has no unit"),
        ("machine: [amd-8n-ht, amd-8n]", "4:24: factors.machine.1: unknown machine: found"),
        ("plane: [flow, native]", "4:17: factors.plane.1: no plane of a study: found 'native'"),
        ("policy: [none, one-shoot]", "4:18: factors.policy.1: unknown policy: found 'one-shoot'"),
        ("policy: 'none,balancing=ma-x'", "4:11: factors.policy: unknown policy: found 'ma-x'"),
        ("policy: [placer=none]", "4:12: factors.policy.0: unknown kind of policy 'placer'"),
        ("policies.balancing: [none, no]", "factors.policies.balancing.1: unknown policy: found"),
        ("policies.balancing.policy: {values: [nine]}", "4:40: factors.policies.balancing.policy"),
        ("policies.balancing.period: [1 s, 2 K]", "'K': expected a time"),
        ("policies.balance: [none]", "unknown field 'balance' in policies"),
        ("machine.nodes: many", "factors.machine.nodes"),
        ("seed: []", "an empty list"),
        ("seed: {from: 8, to: 4}", "an empty range"),
        ("sed: [1, 2]", "unknown field 'sed'"),
    ],
)
def test_values_that_a_field_does_not_take(
    refused: Refused, tmp_path: Path, factor: str, message: str
) -> None:
    """Said before anything runs, with the place of the value."""
    study_file(tmp_path, FACTOR + factor + "\n")
    told = refused("study", "run", "study.yaml", "--out", "rows")
    assert told.startswith("numatwin: error: study.yaml:4:")
    assert message in told
    assert not (tmp_path / "rows").exists()


def test_values_of_a_table_and_of_a_sweep(refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "points.csv").write_text("system.nodes\n4\nfour\n")
    text = FACTOR + "system.nodes: [4]\ndesign: {kind: table, file: points.csv}\n"
    study_file(tmp_path, text)
    told = refused("study", "run", "study.yaml")
    assert "study.yaml:5:29: design.file: system.nodes: found 'four', expected" in told
    told = refused("sweep", "eris-fig8-amd", "--set", "system.nodes=4,four")
    assert "--set system.nodes=4,four: system.nodes: found 'four', expected how many" in told


def test_other_bad_input(refused: Refused, tmp_path: Path) -> None:
    huge = SMALL.replace("[16, 64, 256]", '"1:1000000:1000000"')
    study_file(tmp_path, huge.replace("steps: 3", "steps: 1000"))
    assert "too many points: found" in refused("study", "run", "study.yaml")
    study_file(tmp_path)
    assert "no such point" in refused("study", "show", "study.yaml", "--point", "18")
    assert "cannot be read" in refused("study", "run", "none.yaml")


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("link.busiest", "links.busiest", "'utilisation.links.busiest', expected one of those"),
        ("name: small", "name: small\nmetrics: [model.what]", "'model.what', expected one of"),
    ],
)
def test_a_figure_that_no_run_has(
    refused: Refused, tmp_path: Path, before: str, after: str, message: str
) -> None:
    """The first runs tell; nothing is kept of them."""
    study_file(tmp_path, SMALL.replace(before, after, 1))
    told = refused("study", "run", "study.yaml", "--out", "rows")
    assert f"study.yaml: no run has such a figure: found {message}" in told
    assert not (tmp_path / "rows").exists()


def test_the_status_of_a_folder_without_rows(refused: Refused, tmp_path: Path) -> None:
    study_file(tmp_path)
    told = refused("study", "status", "study.yaml", "--out", "nope")
    assert told == (
        "numatwin: error: nope: no rows of a study: expected the folder of '--out' in "
        "'numatwin study run'\n"
    )


def test_a_cost_needs_prices(refused: Refused, tmp_path: Path) -> None:
    text = SMALL[: SMALL.index("prices:")]
    study_file(tmp_path, text)
    assert "study.yaml:8:12: a cost needs 'prices'" in refused("study", "run", "study.yaml")


PAGES = """\
name: pages
scenario: eris-fig8-amd
set: {plane: flow}
factors: {system.page_size: [4 KiB, 2 MiB]}
objective: maximise throughput.lookup
"""


def test_the_best_under_doubt(numatwin: CommandLine) -> None:
    Path("pages.yaml").write_text(PAGES)
    found = numatwin("study", "run", "pages.yaml", "--regret", "--json").json()["least_regret"]
    assert found[0]["point"] == 1
    assert found[0]["probability"] > 0.5
    share = f"is likely the best of 2 ({found[0]['probability']:.0%})"
    said = f"Under doubt, point 1 {share}. Expected loss by choosing it: "
    assert said in numatwin("study", "run", "pages.yaml", "--regret").out
    numatwin("study", "report", "pages.yaml", "--page", "page.html")
    page = Path("page.html").read_text()
    assert f'<p class="answer">{said}' in page
    assert "How sure it is" in page
    numatwin("study", "report", "pages.yaml", "--page", "page.html", "--exact")
    assert not re.search("Under doubt|How sure it is", Path("page.html").read_text())
    Path("none.yaml").write_text(PAGES.replace("objective: maximise throughput.lookup\n", ""))
    refused = numatwin("study", "run", "none.yaml", "--regret")
    assert refused.status == 2
    assert "expected a study with an objective" in refused.err
