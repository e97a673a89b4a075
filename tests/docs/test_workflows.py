"""The workflow files that documents offer: of the right form, and their gate opens and closes."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from numatwin.cli import main

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


def loaded(name: str) -> dict[Any, Any]:
    found = yaml.safe_load((EXAMPLES / name).read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def github_commands() -> list[str]:
    """The commands of the workflow, checked for what GitHub wants around them."""
    workflow = loaded("gate-github.yml")
    assert {*workflow} == {"name", True, "permissions", "jobs"}  # YAML 1.1 reads 'on' as true
    assert {*workflow[True]} == {"push", "pull_request"}
    (job,) = workflow["jobs"].values()
    assert {*job} == {"runs-on", "timeout-minutes", "steps"}
    commands = []
    for step in job["steps"]:
        assert ("uses" in step) != ("run" in step)
        if "uses" in step:
            owner, _, version = step["uses"].partition("@")
            assert owner.startswith("actions/")
            assert version.startswith("v")
        else:
            commands.append(step["run"])
    kept = job["steps"][-1]
    assert kept["if"] == "always()"  # a closed gate's results are the ones to read
    assert kept["with"]["path"] in commands[-1]
    return commands


def gitlab_commands() -> list[str]:
    job = loaded("gate-gitlab.yml")["gate"]
    assert {*job} == {"image", "timeout", "script", "artifacts"}
    assert job["artifacts"]["when"] == "always"
    assert job["artifacts"]["reports"]["junit"] in job["script"][-1]
    return list(job["script"])


def test_both_workflows_do_what_they_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install, gate = github_commands()
    assert gitlab_commands() == [install, gate]
    assert install == 'python -m pip install "$NUMATWIN"'
    words = gate.split()
    assert words[0] == "numatwin"
    monkeypatch.chdir(tmp_path)
    for name in ("gate.yaml", "part_way.py"):
        shutil.copy(EXAMPLES / name, tmp_path)
    assert main(["regress", "gate.yaml", "--update"]) == 0
    assert main(words[1:]) == 0
    policy = tmp_path / "part_way.py"
    policy.write_text(policy.read_text().replace("share: float = 0.5", "share: float = 0.05"))
    assert main(words[1:]) == 1
    assert Path("gate.xml").read_text().count("<failure") == 2
    capsys.readouterr()


def test_the_workflow_of_a_placement_builds_and_gates_what_the_tutorial_does() -> None:
    workflow = loaded("placement-github.yml")
    (job,) = workflow["jobs"].values()
    commands = [step["run"] for step in job["steps"] if "run" in step]
    tutorial = (EXAMPLES.parent / "test-your-engine-on-64-nodes.md").read_text(encoding="utf-8")
    build, gate = commands[-2:]
    assert f"$ {build}\n" in tutorial
    program, *words = gate.split()
    assert program.endswith("/numatwin")
    assert f"$ numatwin {' '.join(words[:2])}\n" in tutorial
    assert job["steps"][-1]["with"]["path"] == words[-1]
