"""Costs and parameters of the scheduler of a host's processors, in integers."""

from __future__ import annotations

from dataclasses import dataclass

SHARES_NONE = 2**32 - 1  # a home of None, in the kernel


@dataclass(frozen=True)
class Processors:
    """``count`` processors of one host that several processes share.

    Each process has its home, one of the processors: ``homes`` by process, in turn where it is
    empty; None for one that shares none and is not played here. It stays there until it is moved.
    Idle processors of a group (``groups`` by processor; empty: none) serve all of it: a process
    that is woken while its home is busy runs on the first idle one, and a processor that runs out
    of work takes over a process that waits where most do (Linux: wake_affine, newidle_balance).
    Processes of one processor run by Linux's rules (EEVDF, see machine/reference/processors.py):
    one at a time, until it sleeps, gives way, has used up its slice of ``slice_ps`` at one of the
    ticks that come every ``tick_ps``, or another one is woken that has had less than its share. A
    process that waits for others gives way to them, where ``gives_way`` says so. A process
    without work looks for more for ``spin_ps`` of its time, then sleeps.
    What a process pays for, in its own time: ``switch_ps`` as it takes over from another one,
    ``look_ps`` as it finds messages, however many, and for each process that these are from
    ``connection_ps`` (K,), by how many parts they have together, from 1 on (K or more: the last;
    empty: none), ``sleep_ps`` for falling asleep and being woken, ``across_ps`` for each part of a
    message from another processor, ``notify_ps`` for waking another one
    there, ``interrupt_ps`` for being woken from there while others run here, ``yield_ps`` for
    giving way. Who is woken on an idle processor runs ``wake_ps`` later.
    Pauses are slept through but for their last ``awake_ps``; those of up to twice that are not.
    """

    count: int
    slice_ps: int
    tick_ps: int = 4_000_000_000
    switch_ps: int = 0
    look_ps: int = 0
    connection_ps: tuple[int, ...] = ()
    spin_ps: int = 0
    sleep_ps: int = 0
    wake_ps: int = 0
    across_ps: int = 0
    notify_ps: int = 0
    interrupt_ps: int = 0
    yield_ps: int = 0
    gives_way: bool = False
    awake_ps: int = 50_000_000
    homes: tuple[int | None, ...] = ()
    groups: tuple[int, ...] = ()
