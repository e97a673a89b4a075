"""Refuses identifiers with home-made words, which say less than the field's usual terms.

Looks at what Python files define and at all identifiers of C++ files, but not at tests.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

INSTEAD = {
    "aboard": "carried, in_message",
    "apart": "remote, separate, disjoint, distance",
    "beside": "additive, sibling, folder",
    "dearth": "shortage",
    "hither": "here",
    "somebody": "the subject's name",
    "thither": "forward",
    "told": "reported, known, given, text",
    "untold": "unknown",
    "whence": "source",
    "whoever": "the subject's name",
}
ELSEWHERE = ("tests/", "benchmarks/", "engine_native/tests/", "docs/")


def python_names(text: str) -> Iterator[str]:
    """What a Python file defines: classes, functions, arguments, variables, attributes."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


def cpp_names(text: str) -> list[str]:
    """All identifiers outside of comments and strings."""
    plain = re.sub(r'//[^\n]*|R"\((?s:.*?)\)"|"(?:\\.|[^"\\\n])*"', "", text)
    return re.findall(r"[A-Za-z_]\w*", plain)


def words(name: str) -> list[str]:
    """``told_apart_``, ``ToldApart``: told, apart."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().split("_")


def main() -> int:
    """Prints one line for each name that is refused."""
    files = subprocess.run(
        ["git", "ls-files", "*.py", "*.cpp", "*.hpp"], capture_output=True, text=True, check=True
    ).stdout.split()
    found = set()
    for file in files:
        if file.startswith(ELSEWHERE) or not Path(file).exists():
            continue
        text = Path(file).read_text(encoding="utf-8")
        for name in python_names(text) if file.endswith(".py") else cpp_names(text):
            found |= {(file, name, word) for word in words(name) if word in INSTEAD}
    for file, name, word in sorted(found):
        print(f"{file}: '{name}' says '{word}': expected a usual term, such as {INSTEAD[word]}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
