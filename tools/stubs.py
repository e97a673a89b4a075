"""Writes the stubs of the compiled modules from what these say of themselves.

    python tools/stubs.py    # as 'make setup' does: sim/_kernel.pyi, engine_native/_engine.pyi

Signatures are pybind11's, docstrings those of the C++ bindings; of structs that are described field
by field (``FIELDS``, sim/kernel/described.hpp), each field is an argument and an attribute.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parent.parent
STUBS = {
    "numatwin.sim._kernel": ROOT / "sim" / "_kernel.pyi",
    "numatwin.engine_native._engine": ROOT / "engine_native" / "_engine.pyi",
}

HEAD = """\
# Written by tools/stubs.py ('make setup') from the compiled module: not to be edited.

from collections.abc import Sequence
from typing import {typing}

import numpy as np
from numpy.typing import {arrays}

_Floats: TypeAlias = NDArray[np.float64]
_Indices: TypeAlias = NDArray[np.int64]
_AnyFloats: TypeAlias = NDArray[np.floating[Any]] | Sequence[float]
_AnyIndices: TypeAlias = _Indices | Sequence[int]
"""
# pybind11's words for types, and those of a reader; the first that fits counts.
WORDS = (
    (r"typing\.SupportsInt \| typing\.SupportsIndex", "int"),
    (r"typing\.SupportsFloat \| typing\.SupportsIndex", "float"),
    (r"typing\.Annotated\[numpy\.typing\.ArrayLike, numpy\.float64\]", "_AnyFloats | float"),
    (r"typing\.Annotated\[numpy\.typing\.ArrayLike, numpy\.int64\]", "_AnyIndices"),
    (r"typing\.Annotated\[(list\[[^]]*\]), \"FixedSize\(\d+\)\"\]", r"\1"),
    (r"typing\.Annotated\[numpy\.typing\.ArrayLike, numpy\.\w+\]", "ArrayLike"),
    (r"numpy\.typing\.NDArray\[numpy\.float64\]", "_Floats"),
    (r"numpy\.typing\.NDArray\[numpy\.int64\]", "_Indices"),
    (r"numpy\.typing\.NDArray\[(?:numpy\.)?bool_?\]", "NDArray[np.bool_]"),
    (r"numpy\.typing\.NDArray\[numpy\.(\w+)\]", r"NDArray[np.\1]"),
    (r"numpy\.typing\.NDArray\[numatwin::\w+\]", "NDArray[np.void]"),
    (r"collections\.abc\.", ""),
    (r"numatwin(?:\.\w+)*?\._\w+\.(\w+)", r"\1"),
    (r"numatwin::(\w+)", r"\1"),
    (r"\bdict\b(?!\[)", "dict[str, Any]"),
    (r"\blist\b(?!\[)", "list[Any]"),
    (r"\btuple\b(?!\[)", "tuple[Any, ...]"),
    (r"\bobject\b(?!:)", "Any"),
    (r"\*\*kwargs\b", "**kwargs: Any"),
)
# What a described struct's argument may be, by the type of its field.
WIDER = {"list[float]": "_AnyFloats", "list[int]": "_AnyIndices"}
SIGNATURE = re.compile(r"(?P<name>\w+)\((?P<arguments>.*?)\) -> (?P<result>.*)")
DEFAULT = re.compile(r" = (?!None\b|True\b|False\b|-?[\d.]+\b|'[^']*')[^,()]*(?:\([^()]*\))?[^,]*")


def stub(module: ModuleType) -> str:
    """The stub of a compiled module, laid out by ruff."""
    lines = [f'"""{(module.__doc__ or "").strip()}"""', "", ""]
    for name, member in vars(module).items():
        if name.startswith("__"):
            continue
        if inspect.isclass(member):
            lines += _class(name, member)
        elif callable(member):
            lines += [*_function(member.__doc__), ""]
        else:
            of = "tuple[str, ...]" if isinstance(member, tuple) else type(member).__name__
            lines += [f"{name}: {of}", ""]
    text = "\n".join(lines)
    arrays = "ArrayLike, NDArray" if "ArrayLike" in text else "NDArray"
    typing = "Any, ClassVar, TypeAlias" + ", overload" * ("@overload" in text)
    lines[2] = HEAD.format(typing=typing, arrays=arrays)
    command = [sys.executable, "-m", "ruff", "format", "-q", "--stdin-filename", "made.pyi", "-"]
    text = "\n".join(lines)
    done = subprocess.run(command, input=text, capture_output=True, text=True, cwd=ROOT)
    if done.returncode != 0:
        raise SystemExit(f"{module.__name__}: no stub: {done.stderr}")
    return done.stdout


def _class(name: str, kind: type) -> Iterator[str]:
    base = kind.__mro__[1].__name__
    yield f"class {name}({base}):" if issubclass(kind, Exception) else f"class {name}:"
    body = list(_members(kind, name))
    words = (kind.__doc__ or "").partition("\n\nMembers:")[0]  # of an enumeration: they follow
    yield from _indented([*_words(words), *(body or ["..."])])
    yield ""


def _members(kind: type, name: str) -> Iterator[str]:
    if issubclass(kind, Exception):
        return
    if hasattr(kind, "__members__"):
        yield from _enumeration(kind)
        return
    fields: tuple[str, ...] = getattr(kind, "FIELDS", ())
    yield from _described(kind, fields)
    for member_name in vars(kind):
        member = inspect.getattr_static(kind, member_name)
        if member_name == "__init__" and "Initialize self" not in member.__doc__:
            made = _from_fields(kind, fields) if fields and "**kwargs" in member.__doc__ else None
            yield from made or _function(member.__doc__)
        elif member_name.startswith("_") or member_name in ("FIELDS", *fields):
            continue
        elif isinstance(member, property):
            yield from _property(member_name, member)
        elif isinstance(member, staticmethod):
            yield "@staticmethod"
            yield from _function(getattr(kind, member_name).__doc__)
        elif callable(member):
            yield from _function(member.__doc__)
        else:
            yield f"{member_name}: ClassVar[{type(member).__name__}]"


def _enumeration(kind: Any) -> Iterator[str]:
    yield from (f"{name}: ClassVar[{kind.__name__}]" for name in kind.__members__)
    yield from (
        "@property",
        "def name(self) -> str: ...",
        "@property",
        "def value(self) -> int: ...",
    )


def _described(kind: type, fields: tuple[str, ...]) -> Iterator[str]:
    if fields:
        yield "FIELDS: ClassVar[tuple[str, ...]]"
    for name in fields:
        yield f"{name}: {_type_of(getattr(kind, name))}"
        yield from _words(getattr(kind, name).__doc__)


def _from_fields(kind: type, fields: tuple[str, ...]) -> list[str]:
    """Of a struct that keyword arguments make."""
    types = {name: _type_of(getattr(kind, name)) for name in fields}
    arguments = [f"{name}: {WIDER.get(of, _sequence(of))} = ..." for name, of in types.items()]
    return [f"def __init__(self, *, {', '.join(arguments)}) -> None: ..."]


def _sequence(of: str) -> str:
    return re.sub(r"^list\[", "Sequence[", of)


def _property(name: str, member: property) -> Iterator[str]:
    if member.fset is not None:
        yield f"{name}: {_type_of(member)}"
        yield from _words(member.__doc__)
        return
    yield "@property"
    yield f"def {name}(self) -> {_type_of(member)}:"
    yield from _indented(list(_words(member.__doc__)) or ["..."])


def _type_of(member: property) -> str:
    assert member.fget is not None
    return _plain((member.fget.__doc__ or "").strip().rpartition(" -> ")[2])


def _function(text: str | None) -> Iterator[str]:
    """A definition from pybind11's signature and the words behind it; one for each overload."""
    head, _, words = (text or "").partition("\n")
    if words.startswith("Overloaded function."):
        for one in re.split(r"\n\d+\. ", words)[1:]:
            yield "@overload"
            yield from _function(one)
        return
    found = SIGNATURE.fullmatch(head)
    if found is None:
        raise SystemExit(f"not a signature: {head}")
    arguments = _plain(re.sub(r"^self: [^,]*", "self", found["arguments"]))
    arguments = DEFAULT.sub(" = ...", arguments)
    if "arg0" in arguments:
        raise SystemExit(f"an argument without a name (py::arg): {head}")
    yield f"def {found['name']}({arguments}) -> {_plain(found['result'])}:"
    yield from _indented(list(_words(words)) or ["..."])


def _plain(text: str) -> str:
    for pattern, word in WORDS:
        text = re.sub(pattern, word, text)
    return text


def _words(text: Any) -> Iterator[str]:
    """A docstring, none where there are no words."""
    words = textwrap.dedent(text or "").strip()
    if words:
        several = "\n" in words
        yield from (
            f'r"""{words}{chr(10) * several}"""'.splitlines()
            if "\\" in words
            else (f'"""{words}{chr(10) * several}"""'.splitlines())
        )


def _indented(lines: list[str]) -> Iterator[str]:
    yield from (f"    {line}" if line else "" for line in lines)


def main() -> None:
    """Writes all stubs."""
    for name, path in STUBS.items():
        if importlib.util.find_spec(name) is None:
            print(f"{name} is not built: it has no stub, which 'make lint' wants")
            continue
        path.write_text(stub(importlib.import_module(name)), "utf-8")


if __name__ == "__main__":
    main()
