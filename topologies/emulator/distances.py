"""What the guest's firmware says of distances: its SLIT, latencies and bandwidths of its HMAT."""

from __future__ import annotations

import numpy as np

from ..routes import Floats, Ints
from .guest_machine import GuestMachine

LOCAL, REMOTE_MIN, REMOTE_MAX, UNREACHABLE = 10, 11, 254, 255
_PER_HOP = 6  # as firmware of HyperTransport machines counts: 16, 22, 28
_BITS = 16  # of an entry of the HMAT; all entries share one unit


def guest_slit(guest: GuestMachine) -> Ints:
    """(n, n) distances in the order of the guest's nodes.

    Where the machine file has none, they are made from latencies, else from hops.
    """
    at = np.ix_(guest.nodes, guest.nodes)
    machine = guest.machine
    if machine.slit is not None:
        wanted, most = machine.slit[at], UNREACHABLE
    else:
        latency, most = machine.latency_ns[at], REMOTE_MAX
        wanted = LOCAL * latency / np.diagonal(latency)[:, None]
        by_hops = LOCAL + _PER_HOP * machine.hops[at]
        wanted = np.where(np.isfinite(wanted), wanted, by_hops)
        wanted = np.where(np.isfinite(wanted), wanted, 2 * LOCAL)
    slit = np.clip(np.rint(wanted), REMOTE_MIN, most).astype(np.int64)
    np.fill_diagonal(slit, LOCAL)
    return slit


def guest_latency_ns(guest: GuestMachine) -> Ints:
    """(n, n) whole nanoseconds, 0 where unknown; rows are initiators."""
    return _whole(guest.machine.latency_ns[np.ix_(guest.nodes, guest.nodes)])


def guest_bandwidth_MBps(guest: GuestMachine) -> Ints:
    """(n, n) in MB/s, 0 where unknown, in steps that 16 bits can count; rows are initiators."""
    found = guest.machine.bandwidth_Bps[np.ix_(guest.nodes, guest.nodes)] / 1e6
    most = np.nanmax(found, initial=0.0)
    step = 1
    while most / step >= 2**_BITS - 1:
        step *= 2
    return _whole(found / step) * step


def _whole(values: Floats) -> Ints:
    known = np.isfinite(values)
    return np.where(known, np.rint(np.where(known, values, 0.0)), 0.0).astype(np.int64)
