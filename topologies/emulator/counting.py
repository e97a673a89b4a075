"""Runs a command in a guest and counts its memory traffic."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...inputs import InputError
from ..machine import Machine
from .caches import PlayedCaches, played_caches
from .command_line import Plugin, memory_ranges
from .guest import GuestFailure, GuestRun, run_in_guest
from .guest_machine import GuestMachine, guest_machine
from .host_files import qemu_version
from .platforms import X86_64
from .plugin_build import command_marker, traffic_plugin
from .traffic import Traffic, read_counts, snoop_domains


@dataclass(frozen=True)
class Counting:
    """What is counted. ``caches`` False: accesses alone; ``coherence`` False: each cache alone.

    ``interval``: instructions of one processor after which an interval ends; 0: no instructions
    are counted, and no intervals. ``user_only``: what the kernel accesses is left out, and takes no
    room in caches: between two interrupts, a guest executes a few per cent of what a machine does.
    ``from_s``, ``for_s``: a region that begins so many seconds after the command, and after which
    the command is ended; by default as the command marks it.
    """

    caches: bool = True
    coherence: bool = True
    interval: int = 0
    user_only: bool = False
    from_s: float | None = None
    for_s: float | None = None

    @property
    def region(self) -> tuple[str, str]:
        """As ``run_counted`` of the guest takes it."""
        return (
            "-" if self.from_s is None else f"{self.from_s:g}",
            "-" if self.for_s is None else f"{self.for_s:g}",
        )


@dataclass(frozen=True)
class CountedRun:
    """A command that ran in a guest, and its traffic."""

    run: GuestRun
    traffic: Traffic


class NotStarted(GuestFailure):
    """A command that the guest could not start: it said why. ``run``: its status, as of a shell."""

    def __init__(self, message: str, run: GuestRun) -> None:
        super().__init__(message)
        self.run, self.status = run, run.status


def run_counted(
    machine: Machine | GuestMachine,
    command: Sequence[str],
    counting: Counting | None = None,
    **options: Any,
) -> CountedRun:
    """Runs ``command`` as ``run_in_guest`` does (``options`` are its), and counts its traffic.

    Raises InputError, NotStarted where the guest has no such command, and GuestFailure where the
    guest ended before the command did.
    """
    if not command:
        raise InputError(
            "counting needs a command", expected="numatwin emulate … --count -- COMMAND"
        )
    guest = machine if isinstance(machine, GuestMachine) else guest_machine(machine)
    if guest.platform is not X86_64:
        raise InputError(
            "traffic is not counted of this architecture",
            token=guest.architecture,
            expected=X86_64.architecture,
        )
    counting = counting or Counting()
    caches = played_caches(guest) if counting.caches else PlayedCaches.none(guest)
    with _unnamed_file() as settings, _unnamed_file() as counts:
        text = plugin_settings(
            guest,
            caches,
            _path(counts),
            coherent=counting.coherence,
            interval=counting.interval,
            user_only=counting.user_only,
        )
        _path(settings).write_text(text, encoding="utf-8")
        arguments = {"settings": str(_path(settings))}
        plugin = Plugin(traffic_plugin(), arguments, (settings, counts))
        words = [str(command_marker()), *counting.region, *command]
        run = run_in_guest(guest, words, plugins=[plugin], **options)
        spans = read_counts(
            _path(counts), len(guest.machine.nodes), len(caches.levels), len(caches.cpu_node)
        )
    if not spans:
        raise NotStarted("the command could not be started, so nothing was counted", run)
    traffic = Traffic(
        guest.machine,
        caches.line_bytes,
        tuple(level.level for level in caches.levels),
        spans["command"],
        spans.get("regions"),
        (*guest.notes, *caches.notes, *_turns(len(caches.cpu_node)), *_left_out(counting)),
        tuple(counts for name, counts in spans.items() if name.startswith("interval ")),
        caches.cpu_node,
    )
    broken = traffic.whole.broken_laws(len(caches.cpu_node)) if counting.coherence else []
    if broken:
        raise InputError(f"the counts do not add up: {'; '.join(broken)}")
    return CountedRun(run, traffic)


@contextmanager
def _unnamed_file() -> Iterator[int]:
    """In memory: whatever ends this process and QEMU, nothing is left of it."""
    descriptor = os.memfd_create("numatwin-counts")
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _path(descriptor: int) -> Path:
    """Of an open file, here and in QEMU, which inherits it."""
    return Path(f"/proc/self/fd/{descriptor}")


def _turns(processors: int) -> list[str]:
    """What it means that a host with fewer processors plays them in turn."""
    host = len(os.sched_getaffinity(0))
    if processors <= host:
        return []
    return [
        f"{processors} processors took turns on {host} of this host: lines that several write at "
        "the same time were handed over less often than on the machine"
    ]


def _left_out(counting: Counting) -> list[str]:
    return ["what the kernel accesses is left out"] if counting.user_only else []


def plugin_settings(
    guest: GuestMachine,
    caches: PlayedCaches,
    out: Path,
    *,
    coherent: bool = True,
    interval: int = 0,
    user_only: bool = False,
) -> str:
    """What the plugin reads (``plugin/settings.hpp``); nodes are positions in the machine."""
    lines = [f"nodes {len(guest.machine.nodes)}"]
    lines += [
        f"memory {node} {first:#x} {end - first:#x}"
        for first, end, node in reported_memory(guest, qemu_version())
    ]
    lines.append(f"line_shift {caches.line_bytes.bit_length() - 1}")
    lines += [f"level {level.instances} {level.sets} {level.ways}" for level in caches.levels]
    for cpu, node in enumerate(caches.cpu_node):
        lines.append(" ".join(map(str, ("cpu", node, *(k.instance[cpu] for k in caches.levels)))))
    lines.append("snoop_domain " + " ".join(map(str, snoop_domains(guest.machine))))
    rules = guest.machine.description.coherence
    owned = int(rules is not None and bool(rules.owned))
    lines += [f"coherent {int(coherent)}", f"owned {owned}"]
    lines += [f"exclusive {int(caches.exclusive)}", f"interval {interval}"]
    windows = [guest.machine.nodes[node].reorder_window for node in set(caches.cpu_node)]
    if windows and None not in windows:
        lines.append(f"window {round(min(filter(None, windows)))}")
    lines += [f"user_only {int(user_only)}"]
    lines += [f"out {out}", ""]
    return "\n".join(lines)


def reported_memory(guest: GuestMachine, qemu: tuple[int, int]) -> list[tuple[int, int, int]]:
    """(first byte, byte after the last, node) at the addresses that QEMU reports to plugins.

    QEMU 9 reports those of the guest's physical memory. QEMU 7.2 adds a block's place among all
    blocks to its place in memory, so that with a block per node each node begins at twice its
    offset (without the hole for devices, which neither knows of). Raises InputError for others.
    """
    if qemu >= (9, 0):
        return [(first, end, guest.nodes[number]) for first, end, number in memory_ranges(guest)]
    if qemu >= (8, 0):
        raise InputError(
            "counting", token=f"QEMU {qemu[0]}.{qemu[1]}", expected="QEMU 7.2, or 9.0 or later"
        )
    found = []
    offset = 0
    for number, size in enumerate(guest.memory_bytes):
        if size:
            found.append((2 * offset, 2 * offset + size, guest.nodes[number]))
        offset += size
    return found
