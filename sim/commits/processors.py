"""How the processes of one host share its processors, in plain integers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Processors:
    """``count`` processors of one host that all clients and nodes share, each a process of its own.

    Who waits for one stands in one queue; whoever has run for ``slice_ps`` while others wait goes
    to its end, and so does a client that aborted or waits for timestamps, where it ``gives_way``.
    A process without work looks for more for ``spin_ps`` of its time, then sleeps. What a process
    pays for, in its own time: ``switch_ps`` as it takes over from another one, ``look_ps`` as it
    finds messages, however many, ``sleep_ps`` for falling asleep and being woken, ``notify_ps``
    for waking another one for whom a processor is idle, which runs ``wake_ps`` later, ``yield_ps``
    for giving way. Where no processor is idle, who is woken stands in the queue, or
    (``wakes_first``) runs at once where it ran last, and whoever ran there is the next to go on.
    Pauses are slept through but for their last ``awake_ps``; those of up to twice that are not.
    """

    count: int
    slice_ps: int
    switch_ps: int = 0
    look_ps: int = 0
    spin_ps: int = 0
    sleep_ps: int = 0
    wake_ps: int = 0
    notify_ps: int = 0
    yield_ps: int = 0
    gives_way: bool = False
    wakes_first: bool = False
    awake_ps: int = 50_000_000
