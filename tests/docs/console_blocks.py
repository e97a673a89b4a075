"""Runs the commands that documents show, and compares or rewrites the outputs written below them.

In a fence of kind ``console`` a line ``$ command`` is run by bash (lines ``> …`` continue it), and
the lines below are its output, both streams. ``...`` in a line stands for any text, alone on a line
for any lines. A fence after a comment ``<!-- file: NAME -->`` is a file that the reader saves;
after ``<!-- file: NAME of PATH -->`` it is the file at that path, seen from the document. A
document's commands run in order in one empty folder; after a comment
``<!-- commands: in a copy of the repository -->`` in such a copy, whose package they use.

A picture ``pictures/NAME.svg`` is the curve of the document's sweep with ``--out NAME``, if any.

As a script (``make docs``): rewrites the outputs that are no longer current. A line with ``...``
stays where it still fits; an output cut by ``...`` lines is replaced as a whole.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from forked_commands import printed_by, without_a_shell

_FENCE = re.compile(
    r"(?:<!-- file: (?P<file>\S+)(?: of (?P<source>\S+))? -->\n)?"
    r"^```(?P<kind>\w*)\n(?P<body>.*?)^```$",
    re.M | re.S,
)
_PICTURE = re.compile(r"\]\(pictures/([\w-]+)\.svg\)")
_IN_A_COPY = "<!-- commands: in a copy of the repository -->\n"
ROOT = Path(__file__).parents[2]
# Folders that are installed as sub-packages.
PARTS = ("topologies", "workloads", "sim", "engine_native", "validate", "reports")
TIMEOUT_S = 900


@dataclass(frozen=True)
class Step:
    """A command of a document and the output written below it, or a file to save."""

    line: int
    command: str
    written: str
    span: tuple[int, int]
    """Where the written output stands in the text."""
    file: str | None = None
    source: str | None = None
    """The file that ``written`` repeats."""


def steps(text: str) -> Iterator[Step]:
    """The commands and files of a document, in order."""
    for fence in _FENCE.finditer(text):
        line = text.count("\n", 0, fence.start("body")) + 1
        if fence["file"]:
            yield Step(line, "", fence["body"], fence.span("body"), fence["file"], fence["source"])
        elif fence["kind"] == "console":
            yield from _commands(fence["body"], line, fence.start("body"))


def _commands(body: str, line: int, start: int) -> Iterator[Step]:
    lines = body.splitlines(keepends=True)
    if lines and not lines[0].startswith("$ "):
        raise ValueError(f"line {line}: a console block begins with '$ command'")
    k, position = 0, start
    while k < len(lines):
        at, command = line + k, lines[k][2:]
        position += len(lines[k])
        k += 1
        while k < len(lines) and lines[k].startswith("> "):
            command += lines[k][2:]
            position += len(lines[k])
            k += 1
        first = position
        while k < len(lines) and not lines[k].startswith("$ "):
            position += len(lines[k])
            k += 1
        written = body[first - start : position - start]
        yield Step(at, command.rstrip("\n"), written, (first, position))


def prepare(text: str, folder: Path) -> None:
    """Puts what a document's commands need into the empty ``folder``."""
    if _IN_A_COPY in text:
        copy_repository(folder)


def copy_repository(folder: Path) -> None:
    """The repository as it is now, with what was compiled of it: only what changes is compiled."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    for objects in ROOT.glob("build/kernel*"):
        shutil.copytree(objects, folder / "build" / objects.name)
    # Paths of headers, as the compiler noted them, may lead through the environment.
    (folder / ".venv").symlink_to(ROOT / ".venv")
    for part in PARTS:
        (folder / "numatwin" / part).symlink_to(folder / part)


def run(step: Step, folder: Path) -> str:
    """Saves the step's file, or runs its command in ``folder`` and returns what it prints."""
    if step.file is not None:
        (folder / step.file).parent.mkdir(parents=True, exist_ok=True)
        (folder / step.file).write_text(step.written, encoding="utf-8")
        return ""
    in_a_copy = (folder / "numatwin").is_dir()
    alone = None if in_a_copy else without_a_shell(step.command)
    if alone is None:
        printed = _printed_by_a_shell(step.command, folder, in_a_copy)
    else:
        printed, told = printed_by(alone[0], folder, TIMEOUT_S, apart=alone[1] != "")
        if alone[1]:
            printed = told + _printed_by_a_shell(f"cat {alone[1]}", folder, False, printed)
    if "numatwin: this is a bug" in printed:
        raise RuntimeError(f"$ {step.command}\n{printed}")  # nothing to write into a document
    return "".join(f"{line.rstrip()}\n" for line in printed.splitlines())


def _printed_by_a_shell(command: str, folder: Path, in_a_copy: bool, given: str = "") -> str:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    if in_a_copy:
        environment["PYTHONPATH"] = str(folder)
    return subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        input=given,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT_S,
        env=environment,
    ).stdout


def drawn(text: str, folder: Path) -> Iterator[tuple[str, Path]]:
    """Pictures of a document that its commands drew in ``folder``: as they are stored, as drawn."""
    for name in _PICTURE.findall(text):
        if (picture := folder / name / "sweep.svg").exists():
            yield f"pictures/{name}.svg", picture


def fits(written: str, printed: str) -> bool:
    """Whether the output is what the document says, ``...`` standing for anything."""
    pattern = "".join(
        r"(?:.*\n)*?" if line.strip() == "..." else _line_pattern(line) + r"\n"
        for line in written.splitlines()
    )
    return re.fullmatch(pattern, printed) is not None


def _line_pattern(line: str) -> str:
    return ".*?".join(map(re.escape, line.rstrip().split("...")))


def renewed(written: str, printed: str) -> str:
    """The output to write below the command: what it printed, with the old lines' ``...`` kept."""
    elastic = [line for line in written.splitlines() if "..." in line and line.strip() != "..."]
    lines = []
    for line in printed.splitlines():
        kept = next((old for old in elastic if re.fullmatch(_line_pattern(old), line)), line)
        lines.append(f"{kept}\n")
    return "".join(lines)


def renew(path: Path) -> int:
    """Rewrites a document's outdated outputs and files; returns how many there were."""
    text = path.read_text(encoding="utf-8")
    changes = []
    with tempfile.TemporaryDirectory() as folder:
        prepare(text, Path(folder))
        for step in steps(text):
            if step.source is not None:
                step = replace(step, written=(path.parent / step.source).read_text("utf-8"))
            printed = run(step, Path(folder))
            if step.file is not None:
                changes.append((step.span, step.written))
            elif not fits(step.written, printed):
                changes.append((step.span, renewed(step.written, printed)))
        for stored, picture in drawn(text, Path(folder)):
            shutil.copy(picture, path.parent / stored)
    changes = [(span, new) for span, new in changes if text[slice(*span)] != new]
    for (first, last), new in reversed(changes):
        text = text[:first] + new + text[last:]
    if changes:
        path.write_text(text, encoding="utf-8")
    return len(changes)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        count = renew(Path(name))
        print(f"{name}: {f'{count} renewed' if count else 'current'}")
