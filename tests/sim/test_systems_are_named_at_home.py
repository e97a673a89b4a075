"""No system's name outside its homes: all else finds it in a registry."""

import re
from pathlib import Path

import pytest
import yaml

from numatwin.sim.run.scenario import scenario_names
from numatwin.sim.systems.registry import SYSTEMS, systems
from numatwin.validate.published import PUBLISHED

REPOSITORY = Path(__file__).parents[2]
# Folders and files that serve every system.
EVERYBODYS = (
    "sim/planes", "sim/control", "sim/run", "sim/studies", "sim/kernel", "sim/machine",
    "sim/systems/descriptor.py", "sim/systems/fields.py",
    "topologies", "engine_native", "validate", "reports", "numatwin",
)  # fmt: skip
HOMES = ("engine_native/systems", "engine_native/tests", "validate/systems")
# Systems whose name is a word of every text: of these, modules and quoted names are looked for.
ORDINARY_WORDS = ("tasks", "joins")
# What may name systems, and why.
EXCEPTIONS = {
    "engine_native/measure/routing_work.cpp": "times one engine's router, for machine measure",
    "numatwin/__init__.py": "what policies of each system see and order",
    "sim/run/model_error.py": "two kinds of work are called as the systems that do it",
}


def files() -> list[Path]:
    """Source files of all systems' common ground."""
    found: list[Path] = []
    for name in EVERYBODYS:
        path = REPOSITORY / name
        assert path.exists(), name
        of_folder = (one for end in ("py", "hpp", "cpp") for one in sorted(path.rglob(f"*.{end}")))
        found += of_folder if path.is_dir() else [path]
    return [path for path in found if not _is_at_home(path.relative_to(REPOSITORY))]


def _is_at_home(path: Path) -> bool:
    """Whether it is in a system's folder or file, lists these, or is among the exceptions."""
    home = next((home for home in map(Path, HOMES) if home in path.parents), None)
    shared = home is not None and path.parent == home and path.stem in ("__init__", "descriptor")
    return str(path) in EXCEPTIONS or (home is not None and not shared)


def names() -> re.Pattern[str]:
    """Systems by name, and by the classes of their specs and families."""
    known = [name for name in SYSTEMS if name not in ORDINARY_WORDS]
    for system in systems():
        known.append(system.spec.__name__)
        known += [kind.__name__ for family in system.families for kind in family.types]
    modules = [rf"systems[./]{name}\b|[\"'`]{name}[\"'`]" for name in SYSTEMS]
    text = rf"\b({'|'.join(known)}|aeus?|rebalanc\w*)\b|{'|'.join(modules)}"
    return re.compile(text, re.IGNORECASE)


def without_data(line: str) -> str:
    """Without names of bundled scenarios, published results and checks, which examples need."""
    checks = yaml.safe_load((REPOSITORY / "validate/suites/policies.yaml").read_text("utf-8"))
    data = [*scenario_names(), *PUBLISHED, *checks["checks"]]
    for name in sorted(data, key=len, reverse=True):
        line = line.replace(name, "")
    return line


@pytest.mark.parametrize("path", files(), ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_no_system_is_named(path: Path) -> None:
    lines = path.read_text("utf-8").splitlines()
    suspects = [line for line in lines if names().search(line)]
    assert [line for line in suspects if names().search(without_data(line))] == []


def test_exceptions_are_needed() -> None:
    for name in EXCEPTIONS:
        assert names().search((REPOSITORY / name).read_text("utf-8")), name


def test_a_name_would_be_seen() -> None:
    text = "from ..systems.eris.engine import Eris"
    assert names().search(without_data(text))
    assert names().search("class CommitSystem(SystemSpec)")
    assert not names().search("observations of any system")
    assert not names().search(without_data("numatwin run eris-fig13"))
