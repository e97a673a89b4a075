#!/usr/bin/env python3
"""Includes between C++ files: folders in one order, systems apart from each other, no circle.

    tools/check_includes.py [FOLDER]    # the repository, by default the current folder

    sim/kernel < sim/machine < sim/systems/<name>
    engine_native's folders < engine_native/systems/<name> < engine_native/measure < its own files

The engine may include sim/kernel and sim/machine; the engine of a system also sim/systems/<name>,
for what it and the simulator must do alike.

Status 1 where something is found, a line each: file, line, what is included and why not.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

# In this order 'setup.py' and CMakeLists.txt have them searched.
ROOTS = ("engine_native", "sim")
SIM, ENGINE = "sim", "engine_native"
# Lower ones may be included by those above.
LEVELS = {SIM: {"kernel": 0, "machine": 1, "systems": 2}, ENGINE: {"systems": 4, "measure": 5}}
FOLDER, TOP = 3, 6  # other folders of the engine; its own files
_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


@dataclass(frozen=True)
class Place:
    """Where a file stands: its top folder, level and system."""

    side: str
    level: int
    system: str | None


def place_of(path: PurePosixPath) -> Place | None:
    """Of a file by its path in the repository; None for what no rule is about."""
    parts = path.parts
    system = parts[2] if len(parts) > 3 and parts[1] == "systems" else None
    side, folder = parts[:2]
    if side == SIM and folder in LEVELS[SIM]:
        return Place(SIM, LEVELS[SIM][folder], system)
    if side == ENGINE and folder != "tests":
        return Place(ENGINE, TOP if len(parts) == 2 else LEVELS[ENGINE].get(folder, FOLDER), system)
    return None


def fault(by: Place, included: Place) -> str | None:
    """Why one place may not include another; None where it may."""
    if by.system != included.system and by.system is not None and included.system is not None:
        return "systems know nothing of each other"
    if included.side == ENGINE and by.side == SIM:
        return "the simulator knows no engine"
    if by.side == ENGINE and included.side == SIM and included.system not in (None, by.system):
        return "of the simulator's systems the engine may include its own system's alone"
    if included.level > by.level:
        return "against the order of folders"
    return None


def includes(folder: Path) -> Iterator[tuple[PurePosixPath, int, PurePosixPath]]:
    """Each include of a file of the repository: by which file, in which line, of which."""
    for root in ROOTS:
        for path in sorted((folder / root).rglob("*.[ch]pp")):
            text = path.read_text("utf-8")
            for found in _INCLUDE.finditer(text):
                for place in (path.parent, *(folder / one for one in ROOTS)):
                    if (place / found[1]).is_file():
                        line = text.count("\n", 0, found.start(1)) + 1
                        yield _within(folder, path), line, _within(folder, place / found[1])
                        break


def _within(folder: Path, path: Path) -> PurePosixPath:
    return PurePosixPath(path.resolve().relative_to(folder.resolve()).as_posix())


def faults(folder: Path) -> Iterator[str]:
    """All that is wrong with the includes of a repository."""
    graph: dict[PurePosixPath, set[PurePosixPath]] = {}
    for path, line, included in includes(folder):
        graph.setdefault(path, set()).add(included)
        by, of = place_of(path), place_of(included)
        if by is not None and of is not None and (why := fault(by, of)) is not None:
            yield f"{path}:{line}: includes {included}: {why}"
    yield from circles(graph)


def circles(graph: dict[PurePosixPath, set[PurePosixPath]]) -> Iterator[str]:
    """Circles of includes, each told once, where a search in depth meets them."""
    done: set[PurePosixPath] = set()
    for start in sorted(graph):
        under_way: list[PurePosixPath] = []
        stack = [(start, iter(sorted(graph.get(start, ()))))]
        if start not in done:
            under_way.append(start)
        while under_way:
            path, rest = stack[-1]
            following = next(rest, None)
            if following is None:
                done.add(path)
                under_way.pop()
                stack.pop()
            elif following in under_way:
                around = [*under_way[under_way.index(following) :], following]
                yield f"circle of includes: {' → '.join(map(str, around))}"
            elif following not in done:
                under_way.append(following)
                stack.append((following, iter(sorted(graph.get(following, ())))))


def main() -> int:
    """Prints what is found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", default=Path())
    found = list(faults(parser.parse_args().folder))
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
