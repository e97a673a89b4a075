"""What the documents say is what happens: commands, outputs, links."""

import os
import re
import shutil
from pathlib import Path

import pytest
from console_blocks import Step, drawn, fits, prepare, renew, renewed, run, steps
from forked_commands import without_a_shell

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
FOLDER_READMES = sorted(
    path for path in ROOT.glob("*/**/README.md") if not {".venv", "build", "docs"} & {*path.parts}
)

# What these run takes long: the event plane with its replications, measurements of this host,
# studies, training, fits, a compiler.
LONG = {
    *("a-thousand-scenarios.md", "add-a-system.md", "calibrate.md", "choose-the-access-path.md"),
    *("fit-your-engine.md", "infer-conditions.md", "measure-this-host.md", "planes.md"),
    *("read-a-validation-report.md", "run-on-this-host.md", "test-your-engine-on-64-nodes.md"),
    *("what-if-network.md", "which-fact-first.md", "which-join.md"),
}
_CODE = re.compile(r"^```.*?^```$", re.M | re.S)
_FIRST_COLUMN, _FILE = re.compile(r"^\| (`[^|]*) \|", re.M), re.compile(r"`([\w]+\.[a-z]+)`")
_LINK = re.compile(r"\]\((?!https?://|#)([^)#\s]+)")


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_long_documents_exist() -> None:
    assert {path.name for path in DOCUMENTS} >= LONG


@pytest.mark.parametrize("words", ["run none", "machine show 'amd-8n-ht'"])
def test_without_a_shell_a_command_prints_the_same(words: str, tmp_path: Path) -> None:
    command = f"numatwin {words}"
    assert without_a_shell(f"{command} | sort 'a b'") == (f"{command} ", "| sort 'a b'")
    assert without_a_shell(f"{command} 2>&1") is without_a_shell(f"{command}; true") is None
    lines = (command, f"{command}; true", f"{command} | cat", f"{command} > a; cat a")
    printed = {run(Step(1, line, "", (0, 0)), tmp_path) for line in lines}
    assert len(printed - {""}) == 1


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=name(path), marks=getattr(pytest.mark, kind))
        for path in DOCUMENTS
        for kind in ["sweep" if path.name in LONG else "slow"]
    ],
)
def test_commands_print_what_is_written(path: Path, tmp_path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    required = os.environ.get("NUMATWIN_REQUIRE_EMULATOR")
    if "$ numatwin emulate" in text and not required and not shutil.which("qemu-system-x86_64"):
        pytest.skip("there is no QEMU here")
    prepare(text, tmp_path)
    for step in steps(text):
        if step.source is not None:
            assert step.written == (path.parent / step.source).read_text(encoding="utf-8")
        printed = run(step, tmp_path)
        if step.file is None:
            assert fits(step.written, printed), (
                f"{name(path)}:{step.line}: $ {step.command}\n{printed}('make docs' renews it)"
            )
    for stored, picture in drawn(text, tmp_path):
        assert (path.parent / stored).read_text() == picture.read_text(), "'make docs' renews it"


@pytest.mark.parametrize("path", [*DOCUMENTS, *FOLDER_READMES], ids=name)
def test_links_lead_somewhere(path: Path) -> None:
    targets = _LINK.findall(_CODE.sub("", path.read_text(encoding="utf-8")))
    assert [target for target in targets if not (path.parent / target).exists()] == []


@pytest.mark.parametrize("path", FOLDER_READMES, ids=name)
def test_tables_of_folders_name_files_that_are_there(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    named = [file for row in _FIRST_COLUMN.findall(text) for file in _FILE.findall(row)]
    there = {file.name for file in path.parent.rglob("*")}
    assert [file for file in named if file not in there] == []


def test_documents_name_existing_make_verbs() -> None:
    verbs = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M))
    for path in DOCUMENTS:
        named = set(re.findall(r"\bmake ([a-z]+)\b`", path.read_text(encoding="utf-8")))
        assert named <= verbs, name(path)


DOCUMENT = """\
Save this:
<!-- file: a.txt -->
```text
hello
```
```console
$ cat a.txt
hello
$ for k in 1 2 3
> do echo $k; done
1
...
$ true
```
"""


def test_blocks_are_found_and_run(tmp_path: Path) -> None:
    found = list(steps(DOCUMENT))
    assert [(step.line, step.command or step.file) for step in found] == [
        (4, "a.txt"),
        (7, "cat a.txt"),
        (9, "for k in 1 2 3\ndo echo $k; done"),
        (13, "true"),
    ]
    printed = [run(step, tmp_path) for step in found]
    assert printed == ["", "hello\n", "1\n2\n3\n", ""]
    assert all(fits(s.written, p) for s, p in zip(found[1:], printed[1:], strict=True))
    first, last = found[2].span
    assert DOCUMENT[first:last] == "1\n...\n"


def test_renewal_of_a_document(tmp_path: Path) -> None:
    (tmp_path / "source.txt").write_text("new\n")
    document = tmp_path / "document.md"
    fence, commands = "```text\nold\n```\n", "```console\n$ cat a.txt\n...d\n```\n"
    old = f"<!-- file: a.txt of source.txt -->\n{fence}{commands}"
    document.write_text(old)
    assert renew(document) == 2
    assert document.read_text() == old.replace("old", "new").replace("...d", "new")
    assert renew(document) == 0


@pytest.mark.parametrize(
    ("written", "printed", "same"),
    [
        ("a\n", "a\n", True),
        ("a\n", "b\n", False),
        ("a\n", "a\nb\n", False),
        ("a ... c\n", "a b c\n", True),
        ("a ... c\n", "a b\nc\n", False),
        ("...\nz\n", "a\nb\nz\n", True),
        ("a\n...\n", "a\n", True),
        ("", "a\n", False),
        ("1.5 (x)\n", "125 (x)\n", False),
    ],
)
def test_comparison(written: str, printed: str, same: bool) -> None:
    assert fits(written, printed) is same


def test_renewal_keeps_elastic_lines() -> None:
    assert renewed("took ... ms\nold 1\n", "took 12 ms\nnew 2\n") == "took ... ms\nnew 2\n"
