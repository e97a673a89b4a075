"""The notebook of the documents runs, and its cells show what its text says."""

from pathlib import Path
from typing import Any

import pytest

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")

NOTEBOOK = Path(__file__).parents[2] / "docs" / "study-in-a-notebook.ipynb"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_runs(tmp_path: Path) -> None:
    notebook: Any = nbformat.read(NOTEBOOK, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "clear its outputs"
    client = nbclient.NotebookClient(
        notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    shown = [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]
    machine, record, runs, by_nodes, picture, answer = shown
    assert "<svg" in machine[0]["data"]["text/html"]
    assert "lookup/s" in record[0]["data"]["text/html"]
    assert runs[-1]["data"]["text/plain"] == "200"
    assert "system.nodes" in by_nodes[0]["data"]["text/plain"]
    figure = picture[0]["data"]["application/vnd.plotly.v1+json"]
    assert [curve["name"] for curve in figure["data"]] == [f"{n} nodes" for n in range(4, 9)]
    assert all(len(curve["y"]) for curve in figure["data"])
    best = answer[0]["text"]
    assert "with 8 nodes" in best
    assert "what binds: " in best
