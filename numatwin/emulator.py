"""Marks a region of a Python program to count under ``numatwin emulate --count``.

    from numatwin.emulator import counted_region

    with counted_region():
        index.lookup(keys)

The mark is an instruction that does nothing (``topologies/emulator/plugin/numatwin.emulator.h``),
and so does this outside of the emulator; where memory cannot be made executable, nothing is marked.
"""

import ctypes
import mmap
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

BEGIN, END = 1, 2


def mark_code(mark: int) -> bytes:
    """The marked instruction, nopl 0x6e740000+mark(%rax), and a return."""
    return bytes((0x0F, 0x1F, 0x80, mark, 0x00, 0x74, 0x6E, 0xC3))


@cache
def _marker(mark: int) -> Callable[[], object]:
    if platform.machine() != "x86_64":
        return lambda: None
    try:
        page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    except OSError:  # a system that allows no writable code
        return lambda: None
    page.write(mark_code(mark))
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    call = ctypes.CFUNCTYPE(None)(address)
    call.page = page  # type: ignore[attr-defined]  # it lives as long as its function
    return call


@contextmanager
def counted_region() -> Iterator[None]:
    """What runs inside is counted on its own; regions that overlap are one."""
    begin, end = _marker(BEGIN), _marker(END)
    begin()
    try:
        yield
    finally:
        end()
