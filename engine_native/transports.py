"""Transports between processes of this host, by name, and their settings of UCX."""

import os
from pathlib import Path
from typing import Any

from ..inputs import InputError
from . import _engine

THREADS = "threads"
INFINIBAND = Path("/sys/class/infiniband")
VARIABLE = "NUMATWIN_TRANSPORT"
# Settings of UCX by transport: its transports and devices, and whether they use the network.
# Shared memory: POSIX segments, which UCX opens by /proc; none is left behind
# (fabric/segment_folder.hpp). CMA is left out: many containers forbid it, and copies here are
# smaller than what it is for. Sockets use the loopback device, as all processes are on this host.
UCX = {
    "shm": ("posix,self", "all"),
    "sysv": ("sysv,self", "all"),
    "tcp": ("tcp,self", "lo"),
    "ib": ("rc,ud,self", "all"),
}
TRANSPORTS = (*UCX, THREADS)


def usual_transport(*, verbs: bool) -> str:
    """Sockets stay sockets; verbs take InfiniBand where this host has it, else shared memory.

    The environment variable NUMATWIN_TRANSPORT chooses another one; threads where there is no UCX.
    """
    if chosen := os.environ.get(VARIABLE):
        return chosen
    if not _engine.HAS_UCX:
        return THREADS
    if not verbs:
        return "tcp"
    return "ib" if INFINIBAND.is_dir() and any(INFINIBAND.iterdir()) else "shm"


def ucx_settings(transport: str, *, direct: bool = True) -> dict[str, Any]:
    """The fields of a run that choose the transport. Raises InputError."""
    if transport == THREADS:
        return {}
    if transport not in UCX:
        raise InputError("unknown transport", token=transport, expected=" or ".join(TRANSPORTS))
    if not _engine.HAS_UCX:
        raise InputError(
            "the native engine was built without UCX",
            expected="libucx-dev (tools/system-packages ucx) and 'make setup' again; transport "
            f"'{THREADS}' does without",
        )
    transports, devices = UCX[transport]
    return {"transports": transports, "devices": devices, "direct": direct}
