"""Lines of a text file of limited size.

Regular files only: a pipe or a device may keep its reader waiting forever.
"""

import os
import stat
from pathlib import Path

from .errors import InputError


def text_lines(path: Path, bytes_max: int) -> list[str]:
    """The lines of a file in UTF-8; raises InputError, and OSError where it cannot be read."""
    check_regular(path)
    with open(path, "rb") as stream:
        content = stream.read(bytes_max + 1)
    if len(content) > bytes_max:
        raise InputError(f"too large: expected at most {bytes_max:,} bytes", str(path))
    return decoded(content, str(path)).splitlines()


def decoded(content: bytes, name: str, encoding: str = "utf-8-sig") -> str:
    """The text in ``content``; ``name`` stands in errors. Raises InputError."""
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as failure:
        line = failure.object.count(b"\n", 0, failure.start) + 1
        token = f"byte 0x{failure.object[failure.start]:02x}"
        raise InputError("not text", name, line, token=token, expected="UTF-8") from None


def kernel_text(path: str | Path) -> str:
    """The text of a file of the kernel's; empty where there is none, or it may not be read."""
    try:
        return Path(path).read_text("utf-8", "replace").strip()
    except OSError:
        return ""


def check_regular(path: str | Path) -> None:
    """Raises InputError where something stands at ``path`` that is neither file nor folder.

    Raises OSError where nothing stands there.
    """
    mode = os.stat(path).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        what = "a pipe" if stat.S_ISFIFO(mode) else "a device or socket"
        raise InputError(f"cannot be read: {what}", str(path), expected="a file")
