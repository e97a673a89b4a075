"""Refuses functions of the command line that are long, or take many parameters.

A command reads options, calls the library and hands on its answer: see numatwin/cli/README.md.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

LINES_MAX, PARAMETERS_MAX = 40, 8


def faults(path: Path) -> Iterator[str]:
    """What is wrong in a file, a line each."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        lines = (node.end_lineno or node.lineno) - node.lineno + 1
        of = node.args
        parameters = len([*of.posonlyargs, *of.args, *of.kwonlyargs])
        if lines > LINES_MAX:
            yield f"{path}:{node.lineno}: {node.name} has {lines} lines, at most {LINES_MAX}"
        if parameters > PARAMETERS_MAX:
            few = f"at most {PARAMETERS_MAX}: those that belong together are a dataclass"
            yield f"{path}:{node.lineno}: {node.name} has {parameters} parameters, {few}"


if __name__ == "__main__":
    found = [fault for path in sorted(Path("numatwin/cli").glob("*.py")) for fault in faults(path)]
    print("\n".join(found), end="\n" if found else "")
    sys.exit(bool(found))
