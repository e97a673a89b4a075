#!/usr/bin/env python3
"""Imports between Python files: no circle, no system imports another one, none is hidden.

    tools/check_imports.py TREE    # a folder with the package numatwin, as 'make lint' makes it

Imports for type checkers and within functions count. That folders import in one order only is held
by import-linter (pyproject.toml). Status 1 where something is found, a line each.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import grimp
import networkx as nx

PACKAGE = "numatwin"
# Each package in one of these is a system's home.
HOMES = tuple(f"{PACKAGE}.{part}.systems" for part in ("sim", "engine_native", "validate"))
# Folders without the command line, lowest first, as import-linter has them.
ORDER = ("inputs", "topologies", "workloads", "sim", "engine_native", "reports", "validate")
# Who imports by a name that is worked out: registries, of what lies beside them.
LATE = re.compile(r".*\.systems\.(registry|descriptor)|numatwin\.topologies\.importers")


def imports(tree: Path) -> nx.DiGraph:
    """The modules of the package in ``tree``; an edge leads to what a module imports."""
    sys.path.insert(0, str(tree))
    found = grimp.build_graph(PACKAGE, cache_dir=None)
    graph = nx.DiGraph()
    graph.add_nodes_from(found.modules)
    for module in found.modules:
        for imported in found.find_modules_directly_imported_by(module):
            graph.add_edge(module, imported)
    return graph


def circles(graph: nx.DiGraph) -> Iterator[str]:
    """The shortest circle of each knot of modules that import one another."""
    for knot in nx.strongly_connected_components(graph):
        if len(knot) > 1:
            found = min(nx.simple_cycles(graph.subgraph(knot)), key=len)
            first = found.index(min(found))
            around = [*found[first:], *found[:first], min(found)]
            yield f"circle of imports: {' → '.join(around)}"


def crossings(graph: nx.DiGraph) -> Iterator[str]:
    """Imports from one system's home into another's."""
    homes = {
        module.rpartition(".")[0]
        for module in graph
        if module.rpartition(".")[0].rpartition(".")[0] in HOMES
    }

    def home_of(module: str) -> str | None:
        return next((one for one in homes if f"{module}.".startswith(f"{one}.")), None)

    for module, imported in sorted(graph.edges):
        names = [home and home.rpartition(".")[2] for home in map(home_of, (module, imported))]
        if None not in names and names[0] != names[1]:
            yield f"{module} imports {imported}: systems know nothing of each other"


def hidden(graph: nx.DiGraph, tree: Path) -> Iterator[str]:
    """Imports by ``import_module`` below the command line, and modules of later folders by name."""
    for module in sorted(graph):
        parts = module.split(".")
        if len(parts) < 2 or parts[1] not in ORDER:
            continue
        path = tree.joinpath(*parts)
        text = (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text(
            "utf-8"
        )
        if re.search(r"import_module\((f?\"\.|\w+\[)", text) and not LATE.fullmatch(module):
            yield f"{module} imports by import_module: only registries do"
        for folder in re.findall(rf"[\"']{PACKAGE}\.(\w+)\.", text):
            if folder in ORDER and ORDER.index(folder) > ORDER.index(parts[1]):
                yield f"{module} names {PACKAGE}.{folder}, which comes after it"


def main() -> int:
    """Prints what is found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tree", type=Path)
    tree = parser.parse_args().tree
    graph = imports(tree)
    found = [*circles(graph), *crossings(graph), *hidden(graph, tree)]
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
