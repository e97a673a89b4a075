"""The source of an import: this host, a folder, an archive, or a text; read within limits."""

import contextlib
import io
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

from ...inputs import InputError
from ...inputs.file_names import without_endings
from ...inputs.number_sets import parse_list
from ...inputs.text_lines import decoded
from .archive import BUFFER_BYTES, damage_reported, is_tar, plain_stream, read_exactly
from .tree import Tree, archive_tree, folder_tree, this_host

_HEAD_BYTES = 1 << 20
_TEXT_BYTES_MAX = 8 << 20  # a table of 1,024 nodes has some 5 MiB
_LINES_MAX = 100_000
_XML_BYTES_MAX = 64 << 20
_LINE_END = re.compile(r"\r\n|\n|\r")  # not str.splitlines, which also cuts at form feeds
# What logs write before each line: a date and time, or seconds since the start.
_STAMP = re.compile(
    r"\[?\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[.,\d]{0,10}(?:Z|[+-]\d\d:?\d\d)?\]?[ \t]+"
    r"|\[ {0,6}\d{1,8}\.\d{3,6}\][ \t]+",
    re.ASCII,
)
_BOMS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))


@dataclass
class Source:
    """An input: either ``tree`` is there, or a text of which ``head`` is the first MiB.

    ``name`` stands in errors; ``machine`` is the machine's default name.
    """

    name: str
    machine: str
    tree: Tree | None = None
    head: bytes = b""
    rest: BinaryIO | None = field(default=None, repr=False)

    @cached_property
    def data(self) -> bytes:
        """The whole text, undecoded; raises InputError where it is too large."""
        if self.rest is None:
            return self.head
        rest = read_exactly(self.rest, _TEXT_BYTES_MAX - len(self.head) + 1, self.name)
        if len(self.head) + len(rest) > _TEXT_BYTES_MAX:
            raise self._too_large(_TEXT_BYTES_MAX)
        return self.head + rest

    def chunks(self) -> Iterator[bytes]:
        """The text in pieces, undecoded, to be read once; raises InputError as ``data`` does.

        It may be longer than ``data``, as long as XML may be.
        """
        yield self.head
        size = len(self.head)
        while self.rest is not None and (piece := read_exactly(self.rest, _HEAD_BYTES, self.name)):
            size += len(piece)
            if size > _XML_BYTES_MAX:
                raise self._too_large(_XML_BYTES_MAX)
            yield piece

    def label(self) -> str:
        """The last part of the name, printable: what a description says of its origin."""
        last = Path(self.name).name or self.name
        return "".join(c if c.isprintable() else "?" for c in last)

    def head_text(self) -> str:
        """The head decoded as far as it is text."""
        return self.head.decode(_encoding(self.head), "replace")

    @cached_property
    def lines(self) -> list[str]:
        """The text's lines without ends and time stamps; raises InputError where it is no text."""
        lines = _LINE_END.split(self.text(), maxsplit=_LINES_MAX)
        if len(lines) > _LINES_MAX:
            raise self.error(f"more than {_LINES_MAX:,} lines")
        return [_STAMP.sub("", line, count=1) if _STAMP.match(line) else line for line in lines]

    def text(self) -> str:
        """The text; raises InputError where its encoding is wrong."""
        return decoded(self.data, self.name, _encoding(self.data))

    def numbers(self, text: str, line: int) -> frozenset[int]:
        """The numbers in ``0-3,8``, as ``line`` lists them; raises InputError."""
        try:
            return parse_list(text)
        except ValueError as failure:
            raise self.error(str(failure), line, token=text) from None

    def _too_large(self, bytes_max: int) -> InputError:
        return self.error("too large", expected=f"at most {bytes_max >> 20} MiB")

    def error(
        self,
        message: str,
        line: int | None = None,
        *,
        column: int | None = None,
        token: str | None = None,
        expected: str | None = None,
    ) -> InputError:
        """The InputError for a place in this input (lines and columns count from 1)."""
        return InputError(message, self.name, line, column, token, expected)


def _encoding(data: bytes) -> str:
    """UTF-8, or what the byte order mark says (Windows' shells write UTF-16)."""
    return next((encoding for bom, encoding in _BOMS if data.startswith(bom)), "utf-8")


@contextlib.contextmanager
def open_source(path: str | Path | None) -> Iterator[Source]:
    """The input at ``path``, None for this host; raises InputError where it cannot be read."""
    with contextlib.ExitStack() as closing:
        yield _opened(path, closing)


def _opened(path: str | Path | None, closing: contextlib.ExitStack) -> Source:
    if path is None:
        return Source("this host", "this-host", this_host())
    name, path = str(path), Path(path)
    try:
        if path.is_dir():
            folder = path.resolve()
            machine = folder.parent.name if folder.name == "sys" else folder.name
            return Source(name, machine_name(machine), folder_tree(path))
        file = closing.enter_context(io.BufferedReader(io.FileIO(path), BUFFER_BYTES))
        stream = closing.enter_context(plain_stream(file, name))
    except (OSError, ValueError) as failure:  # ValueError: a name with a NUL byte
        reason = failure.strerror if isinstance(failure, OSError) else None
        raise InputError(f"cannot be read: {reason or failure}", name) from None
    machine = machine_name(without_endings(path.name))
    with damage_reported(name):
        start = stream.peek(1024)
    if is_tar(start):
        unpacked = closing.enter_context(tempfile.TemporaryDirectory(prefix="numatwin-"))
        return Source(name, machine, archive_tree(stream, name, Path(unpacked)))
    return Source(name, machine, head=read_exactly(stream, _HEAD_BYTES, name), rest=stream)


def machine_name(text: str) -> str:
    """``text`` as the schema wants a machine's name."""
    name = re.sub(r"[^A-Za-z0-9._+-]+", "-", text)
    return re.sub(r"^[^A-Za-z0-9]+", "", name)[:64] or "machine"
