"""No system's name outside its homes: all else finds it in the registry."""

import re
from pathlib import Path

import pytest

from numatwin.sim.systems.registry import SYSTEMS, systems

REPOSITORY = Path(__file__).parents[2]
# Folders and files that serve every system.
EVERYBODYS = (
    "sim/planes",
    "sim/control",
    "sim/run",
    "sim/kernel",
    "sim/machine",
    "sim/systems/descriptor.py",
    "sim/systems/fields.py",
    "topologies/schema.py",
    "engine_native/__init__.py",
    "validate/published.py",
    "validate/results.py",
)


def files() -> list[Path]:
    """Python files of all systems' common ground."""
    found: list[Path] = []
    for name in EVERYBODYS:
        path = REPOSITORY / name
        assert path.exists(), name
        found += sorted(path.rglob("*.py")) if path.is_dir() else [path]
    return found


def names() -> re.Pattern[str]:
    """Systems by name, and by the classes of their specs and families."""
    known = [*SYSTEMS]
    for system in systems():
        known.append(system.spec.__name__)
        known += [kind.__name__ for family in system.families for kind in family.types]
    words = [word for word in known if word != "Observation"]  # a word of every plane, too
    return re.compile(rf"(?i)\b({'|'.join(words)}|aeus?|rebalanc\w*)\b")


@pytest.mark.parametrize("path", files(), ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_no_system_is_named(path: Path) -> None:
    lines = path.read_text("utf-8").splitlines()
    assert [line for line in lines if names().search(line)] == []


def test_a_name_would_be_seen() -> None:
    text = "from ..systems.eris.engine import Eris"
    assert names().search(text)
    assert names().search("class CommitSystem(SystemSpec)")
    assert not names().search("observations of any system")
