"""The mark of tests that need the emulator: QEMU, busybox and a kernel."""

import os

import pytest

from numatwin.inputs import InputError
from numatwin.topologies.emulator.image import find_kernel
from numatwin.topologies.emulator.platforms import (
    find_busybox,
    find_qemu,
    host_architecture,
    platform_of,
)


def _missing() -> str | None:
    try:
        host = platform_of(host_architecture())
        find_qemu(host), find_busybox(host), find_kernel(host)
    except InputError as failure:
        return str(failure)
    return None


# Where all must run, a test without QEMU fails by itself.
needs_emulator = pytest.mark.skipif(
    _missing() is not None and not os.environ.get("NUMATWIN_REQUIRE_EMULATOR"),
    reason=_missing() or "",
)
