"""Who may import and include whom: the checks of 'make lint' pass, and fail on what is wrong."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
PACKAGES = ("topologies", "workloads", "sim", "engine_native", "validate", "reports")
pytest.importorskip("grimp")
LINT_IMPORTS = Path(sys.executable).with_name("lint-imports")


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package's Python files under their installed names, to be changed at will."""
    tree = tmp_path_factory.mktemp("tree")
    copied = shutil.ignore_patterns("*.so", "*.[ch]pp", "*.yaml", "*.csv", "__pycache__")
    shutil.copytree(REPOSITORY / "numatwin", tree / "numatwin", ignore=copied)
    for name in PACKAGES:
        shutil.copytree(REPOSITORY / name, tree / "numatwin" / name, ignore=copied)
    return tree


def circles_and_crossings(tree: Path) -> subprocess.CompletedProcess[str]:
    command: list[str | Path] = [sys.executable, REPOSITORY / "tools" / "check_imports.py", tree]
    return subprocess.run(command, capture_output=True, text=True)


def layers(tree: Path) -> subprocess.CompletedProcess[str]:
    settings = REPOSITORY / "pyproject.toml"
    command: list[str | Path] = [LINT_IMPORTS, settings, "--no-cache", "--no-logo"]
    return subprocess.run(command, cwd=tree, capture_output=True, text=True)


def includes(folder: Path) -> subprocess.CompletedProcess[str]:
    command: list[str | Path] = [sys.executable, REPOSITORY / "tools" / "check_includes.py", folder]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.fixture
def planted(package: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """The package, where one file has a line more."""
    file, line = request.param.split(": ", 1)
    path = package / "numatwin" / file
    text = path.read_text("utf-8")
    path.write_text(f"{text}\n{line}\n", "utf-8")
    yield package
    path.write_text(text, "utf-8")


@pytest.mark.parametrize(
    ("planted", "told"),
    {
        "sim/planes/transfer_flows.py: from .rate_solver import RateSolver": "circle of imports: "
        "numatwin.sim.planes.",
        "sim/systems/eris/spec.py: from ..commits.spec import CommitSystem": (
            "numatwin.sim.systems.eris.spec imports numatwin.sim.systems.commits.spec: "
            "systems know nothing of each other"
        ),
        "engine_native/systems/commits/setup.py: from ..eris import setup": (
            "numatwin.engine_native.systems.commits.setup imports "
            "numatwin.engine_native.systems.eris.setup: systems know nothing"
        ),
        "engine_native/systems/eris/setup.py: from ....sim.systems.commits import spec": (
            "imports numatwin.sim.systems.commits.spec: systems know nothing of each other"
        ),
        "topologies/emulator/platforms.py: from .guest import Guest": "circle of imports: "
        "numatwin.topologies.emulator.",
        'sim/control/policy.py: import_module("..systems.registry", __package__)': (
            "numatwin.sim.control.policy imports by import_module: only registries do"
        ),
        'sim/systems/eris/system.py: LazyImport("numatwin.engine_native.systems.eris", "plane")': (
            "numatwin.sim.systems.eris.system names numatwin.engine_native, which comes after it"
        ),
    }.items(),
    indirect=["planted"],
)
def test_a_circle_or_a_crossing_is_seen(planted: Path, told: str) -> None:
    done = circles_and_crossings(planted)
    assert done.returncode == 1
    assert told in done.stdout


@pytest.mark.parametrize(
    ("planted", "told"),
    {
        "sim/machine/caches.py: from ..planes import plane": "sim.machine sim.planes",
        "sim/control/policy.py: def late():\n    from ..systems import registry": "sim.control "
        "sim.systems",
        "topologies/draw.py: from ..sim.run import record": "topologies sim",
        "reports/facts.py: from ..validate import suite": "reports validate",
        "topologies/emulator/traffic.py: from ...sim.run import counted": "topologies sim",
        "topologies/machine.py: from .emulator import traffic": "numatwin.topologies.machine -> "
        "numatwin.topologies.emulator.traffic",
        "sim/run/replications.py: def late():\n    from ..studies import sweep": "sim.run "
        "sim.studies",
        "sim/studies/sweep.py: from ...reports import facts": "sim reports",
    }.items(),
    indirect=["planted"],
)
def test_an_import_against_the_order_of_folders_is_seen(planted: Path, told: str) -> None:
    """Told: the line, or who may not import whom."""
    if "->" not in told:
        told = "numatwin.{} is not allowed to import numatwin.{}".format(*told.split())
    done = layers(planted)
    assert done.returncode == 1
    assert told in done.stdout


@pytest.mark.parametrize(
    ("file", "included", "told"),
    [
        ("sim/kernel/a.hpp", "machine/kernel/b.hpp", "against the order of folders"),
        ("sim/kernel/module.cpp", "systems/x/kernel/b.hpp", "against the order of folders"),
        ("sim/machine/kernel/a.cpp", "systems/x/kernel/b.hpp", "against the order of folders"),
        ("sim/systems/y/kernel/a.cpp", "systems/x/kernel/b.hpp", "systems know nothing of each"),
        ("sim/systems/y/kernel/a.cpp", "memory/b.hpp", "the simulator knows no engine"),
        ("engine_native/storage/a.hpp", "systems/x/b.hpp", "against the order of folders"),
        ("engine_native/systems/y/a.hpp", "systems/x/b.hpp", "systems know nothing of each other"),
        ("engine_native/memory/a.hpp", "systems/x/kernel/b.hpp", "its own system's alone"),
        ("sim/kernel/a.hpp", "kernel/a.hpp", "circle of includes: sim/kernel/a.hpp → sim/kernel/"),
    ],
)
def test_an_include_that_may_not_be_is_seen(
    tmp_path: Path, file: str, included: str, told: str
) -> None:
    """``x`` is a system of simulator and engine; the file is beside what may be there."""
    others = {
        "sim/kernel/queue.hpp": "",
        "sim/machine/kernel/b.hpp": '#include "kernel/queue.hpp"\n',
        "sim/systems/x/kernel/b.hpp": '#include "machine/kernel/b.hpp"\n',
        "sim/kernel/module.cpp": '#include "kernel/queue.hpp"\n',
        "engine_native/memory/b.hpp": '#include "kernel/queue.hpp"\n',
        "engine_native/systems/x/b.hpp": '#include "memory/b.hpp"\n'
        '#include "systems/x/kernel/b.hpp"\n',
        "engine_native/measure/b.hpp": '#include "systems/x/b.hpp"\n',
        "engine_native/module.cpp": '#include "measure/b.hpp"\n',
    }
    for name, text in others.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert includes(tmp_path).stdout == ""
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#pragma once\n  #  include "{included}"\n')
    done = includes(tmp_path)
    assert done.returncode == 1
    assert file in done.stdout
    assert told in done.stdout
