"""The page of a study, in headless Chromium: pictures, filter, sorting, a run's scenario."""

import json
import re
import shlex
import statistics
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser_page import open_page

from numatwin.inputs import InputError
from numatwin.reports.study_charts import level_text
from numatwin.reports.study_page import study_html, write_study_report
from numatwin.sim.run.scenario import load_scenario, scenario_from_settings
from numatwin.sim.studies.explanation import explained, explained_by_rows
from numatwin.sim.studies.results import Results, load_results, results_of
from numatwin.sim.studies.run_study import run_study
from numatwin.sim.studies.store import table_of
from numatwin.sim.studies.study import Study, load_study

sys.path.append(str(Path(__file__).parents[1] / "sim" / "studies"))
from study_files import SMALL, study_file

POINTS = 18
MACHINES = """\
name: machines
scenario: eris-fig8-amd
factors:
  machine: [amd-8n-ht, intel-4s-qpi]
  workload.clients.think_time: [1 us, 20 us]
  horizon: [1 s, 2 s]
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("study")
    study = load_study(study_file(folder))
    run_study(study, folder / "rows", jobs=1)
    return load_results(study, folder / "rows")


def with_script(page: Path, script: str) -> Path:
    """The page without its policy, and with a script that acts as a user would."""
    text = page.read_text("utf-8")
    text = re.sub(r"<meta http-equiv=.Content-Security-Policy.*?>", "", text)
    page.write_text(text.replace("</body>", f"<script>{script}</script></body>"), "utf-8")
    return page


@pytest.mark.browser
def test_every_picture_is_drawn(results: Results, tmp_path: Path) -> None:
    opened = open_page(write_study_report(results, tmp_path / "report.html"))
    assert opened.console == []
    assert (opened.root["data-ready"], opened.root["data-failed"]) == ("yes", "0")
    # front, heat map, tornado, waterfall; a response to each of three factors
    assert opened.root["data-plots"] == opened.root["data-drawn"] == "7"
    assert opened.root["data-kept"] == str(POINTS)
    assert "18 runs of 18" in opened.text
    assert "maximise throughput.lookup per cost: point" in opened.text


def test_the_waterfall_in_words(results: Results) -> None:
    """What each factor brings, and what binds after it; the same as 'study explain' says."""
    page = study_html(results)
    (best,) = results.best()
    ends = (results.rows[0], results.rows[best])
    one, other = (tuple(row[path] for path in results.study.runs.paths) for row in ends)
    found = explained(results.study.runs, one, other, "throughput.lookup")
    assert f"At first bound by: {found.bound_by}. " in page
    assert all(step.words in page for step in found.path)
    assert explained_by_rows(results, 0, best, "throughput.lookup") == found


@pytest.mark.browser
@pytest.mark.parametrize("text", [SMALL, MACHINES], ids=["fields", "machines"])
def test_a_point_leads_to_its_scenario(text: str, tmp_path: Path) -> None:
    """The file and the command are of the very scenario that was run."""
    study = load_study(study_file(tmp_path, text))
    run_study(study, tmp_path / "rows", jobs=1)
    page = write_study_report(load_results(study, tmp_path / "rows"), tmp_path / "report.html")
    point = 5
    row = load_results(study, tmp_path / "rows").rows[point]
    opened = open_page(page, f"#point={point}")
    assert opened.console == []
    assert opened.root["data-chosen"] == str(point)
    shown = opened.text[opened.text.index(f"Point {point} numatwin run") :]
    command, _, rest = shown.partition(f" scenario file (point-{point}.yaml)")
    settings = json.JSONDecoder().raw_decode(rest[rest.index("{") :])[0]
    assert scenario_from_settings(settings).hash == row["scenario_hash"]
    words = shlex.split(command.partition("numatwin run ")[2])
    chosen = [value for flag, value in pairwise(words) if flag == "--set"]
    assert load_scenario(words[0], settings=chosen).hash == row["scenario_hash"]


@pytest.mark.browser
def test_filter_sort_and_hover(results: Results, tmp_path: Path) -> None:
    named = [
        row
        for row in results.rows
        if row["system.nodes"] >= 6 and "workers" in row["bottleneck.resource"]
    ]
    bound = round(statistics.median(row["utilisation.link.busiest"] for row in named), 4)
    script = """
      const filter = document.getElementById("filter");
      filter.value = "system.nodes >= 6  utilisation.link.busiest < BOUND workers";
      filter.dispatchEvent(new Event("input"));
      const heads = [...document.querySelectorAll("#table th")];
      const head = heads.find((one) => one.title === "throughput.lookup");
      head.click(); head.click();
      setTimeout(() => {
        const plot = [...document.querySelectorAll(".js-plotly-plot")][0];
        Plotly.Fx.hover(plot, [{ curveNumber: 0, pointNumber: 0 }]);
        document.querySelector("#table tbody tr").click();
      }, 2000);
    """.replace("BOUND", str(bound))
    page = with_script(write_study_report(results, tmp_path / "report.html"), script)
    opened = open_page(page)
    assert opened.console == []
    kept = [row for row in named if row["utilisation.link.busiest"] < bound]
    assert 0 < len(kept) < POINTS
    assert opened.root["data-kept"] == str(len(kept))
    most = max(row["throughput.lookup"] for row in kept)
    first = {row["point"] for row in kept if f"{row['throughput.lookup']:.5g}" == f"{most:.5g}"}
    assert int(str(opened.root["data-chosen"])) in first
    assert opened.with_class("hovertext") == 1


def test_levels_for_people() -> None:
    assert level_text(919300000.0, "/s") == "919.3 M/s"
    assert level_text(10**9, "") == "1.000 G"
    assert level_text(1200.0, "ns") == "1200 ns"


@pytest.mark.browser
def test_a_range_of_an_axis(results: Results, tmp_path: Path) -> None:
    """The first axis is the buffer: of 16, 64 and 256 on a linear axis the upper half keeps one."""
    script = """
      const canvas = document.getElementById("axes");
      const box = canvas.getBoundingClientRect();
      const at = (y) => ({ clientX: box.left + 80, clientY: box.top + y, bubbles: true });
      canvas.dispatchEvent(new PointerEvent("pointerdown", at(150)));
      canvas.dispatchEvent(new PointerEvent("pointerup", at(40)));
    """
    opened = open_page(with_script(write_study_report(results, tmp_path / "r.html"), script))
    assert opened.console == []
    assert opened.root["data-kept"] == str(POINTS // 3)


def many(study: Study, count: int) -> Results:
    """So many rows, made up."""
    draws = np.random.default_rng(1)
    rows: list[dict[str, Any]] = [
        {
            "point": k,
            "system.buffer_commands": int(draws.integers(1, 1024)),
            "machine.link_types.ht-full.bandwidth": float(draws.uniform(4, 12)),
            "system.nodes": int(draws.integers(1, 9)),
            "throughput.lookup": float(draws.lognormal(19, 0.5)),
            "utilisation.link.busiest": float(draws.uniform(0, 1)),
            "power_W": float(draws.uniform(300, 600)),
            "bottleneck.resource": "outstanding misses of the cores of all nodes",
            "plane": "flow",
            "error": None,
        }
        for k in range(count)
    ]
    return results_of(study, table_of(rows))


@pytest.mark.browser
def test_ten_thousand_points_scroll(results: Results, tmp_path: Path) -> None:
    """Rows in sight are drawn in a few milliseconds, wherever one scrolls; so are all lines."""
    script = """
      const rows = document.getElementById("rows"), root = document.documentElement;
      const took = [];
      let steps = 0;
      const step = () => {
        took.push(Number(root.dataset.rowsMs));
        steps += 1;
        if (steps < 40) {
          rows.scrollTop = steps * 7000;
          rows.dispatchEvent(new Event("scroll"));
          setTimeout(step, 10);
        }
        root.dataset.took = String(took.sort((a, b) => a - b)[took.length >> 1]);
        root.dataset.steps = String(steps);
      };
      step();
    """
    page = write_study_report(many(results.study, 10_000), tmp_path / "report.html")
    assert page.stat().st_size < 12 * 2**20
    opened = open_page(with_script(page, script))
    assert opened.console == []
    assert (opened.root["data-kept"], opened.root["data-steps"]) == ("10000", "40")
    # Of the whole table only what is in sight has elements.
    assert sum(tag == "tr" for tag, _ in opened.elements) < 60
    assert float(str(opened.root["data-took"])) < 16  # the median; others use this host too


def test_one_run_is_starred(results: Results) -> None:
    """The best; not all of a small study."""
    page = study_html(results)
    data = json.loads(re.search(r'id="study-data">(.*?)</script>', page, re.S)[1])  # type: ignore[index]
    (best,) = results.best()
    assert data["best"] == [results.rows[best]["point"]]
    assert "★: the best run." in page
    assert f"{results.study.constraints[0].metric} is " in page
    assert "keeps a distance" not in page


def test_names_stay_text(results: Results) -> None:
    """A name that would end the script, or be an element, does neither."""
    hostile = "</script><script>alert(1)</script>"
    table = results.table.append_column("model.x", [[hostile] * len(results.table)])
    page = study_html(Results(results.study, table))
    assert hostile not in page


def test_more_rows_than_a_page_holds(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("numatwin.reports.study_page.ROWS_MAX", 60)
    page = study_html(many(results.study, 200))
    assert re.search(r"\d+ of 200 runs are on this page, evenly chosen", page)


def test_nothing_to_report(results: Results) -> None:
    with pytest.raises(InputError, match="no run to report on"):
        study_html(Results(results.study, results.table.slice(0, 0)))
