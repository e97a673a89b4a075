"""The mark of tests that need the emulator: QEMU, busybox and a kernel."""

import os

import pytest

from numatwin.inputs import InputError
from numatwin.topologies.emulator.host_files import find_busybox, find_qemu
from numatwin.topologies.emulator.kernel import find_kernel


def _missing() -> str | None:
    try:
        find_qemu(), find_busybox(), find_kernel()
    except InputError as failure:
        return str(failure)
    return None


# Where all must run, a test without QEMU fails by itself.
needs_emulator = pytest.mark.skipif(
    _missing() is not None and not os.environ.get("NUMATWIN_REQUIRE_EMULATOR"),
    reason=_missing() or "",
)
