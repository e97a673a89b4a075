"""Bytes through this host's memory controllers, by their own counters.

Counters of the controllers ("uncore") are devices of the kernel's perf subsystem, a device for each
channel or controller, in sysfs: its ``type``, the CPUs to read it from (``cpumask``, one a
socket), where parts of an event stand in its configuration (``format/``), and named events with
their scale (``events/``). Intel's drivers name the events that count lines read and written;
AMD's name none, so that they stand here. They count what all programs of the host do. A virtual
machine shows none as a rule; elsewhere a ``perf_event_paranoid`` of 0, or CAP_PERFMON, opens them.
"""

import ctypes
import errno
import os
import platform
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..inputs.number_sets import parse_list
from ..inputs.text_lines import kernel_text

DEVICES = Path("/sys/bus/event_source/devices")
# Of servers, and of clients (whose counters never stop): one CAS command, or request, is a line.
NAMED = ("cas_count_read", "cas_count_write", "data_read", "data_write")
# AMD's unified memory controllers: UMC_CAS_CMD of reads, of writes (its Processor Programming
# Reference; also tools/perf/pmu-events/arch/x86/amdzen4/memory-controller.json in Linux).
AMD_DEVICE, AMD_EVENTS = "amd_umc", ("event=0x0a,rdwrmask=0x1", "event=0x0a,rdwrmask=0x2")
LINE_BYTES = 64.0
# Intel's links: flits of data sent (UNC_Q_TxL_FLITS_G0.DATA, UNC_UPI_TxL_FLITS.ALL_DATA), and the
# bytes of each, as tools/perf/pmu-events/arch/x86 in Linux counts them: a line in 8, and in 9.
LINKS = {
    "uncore_qpi": ("event=0x00,umask=0x02", 8.0),
    "uncore_upi": ("event=0x02,umask=0x0f", LINE_BYTES / 9.0),
}
UNITS = {"MiB": 2.0**20, "KiB": 2.0**10, "GiB": 2.0**30, "Bytes": 1.0, "B": 1.0}

SYSCALL = {"x86_64": 298, "aarch64": 241}  # perf_event_open
# perf_event_attr, version 0: type, size, config, period, sample type, read format, flags, wake-up,
# breakpoint type, its address. The kernel adds, before each count, how long it was enabled and
# how long it ran: more events than counters take turns.
ATTRIBUTES, ATTRIBUTES_BYTES = struct.Struct("=IIQQQQQIIQ"), 64
TIMES_TOO, USER_MODE = 0b11, 0b11 << 5  # neither kernel nor hypervisor
COUNT = struct.Struct("=QQQ")
DENIED = (errno.EACCES, errno.EPERM)


class NoCounters(Exception):
    """Why traffic cannot be counted here, in words."""


@dataclass(frozen=True)
class Counter:
    """An event of a device to be counted on one CPU; ``bytes_each``: what a count stands for;
    ``of_link``: between sockets, else of a memory controller."""

    kind: int
    config: int
    cpu: int
    bytes_each: float
    of_link: bool = False


class MemoryTraffic:
    """The counters of all controllers, open until ``close``; raises NoCounters."""

    what, of_links = "memory controllers", False

    def __init__(self, devices: Path = DEVICES) -> None:
        counters = [
            counter for counter in traffic_counters(devices) if counter.of_link == self.of_links
        ]
        if not counters:
            raise NoCounters(f"this host shows no counters of its {self.what}")
        self._open: list[tuple[int, Counter]] = []
        try:
            for counter in counters:
                self._open.append((opened(counter.kind, counter.config, cpu=counter.cpu), counter))
        except OSError as failure:
            self.close()
            raise NoCounters(
                f"the {self.what}' counters cannot be read: {reason(failure, 0)}"
            ) from None

    def bytes(self) -> float:
        """Moved since the counters were opened."""
        return sum(self.by_cpu().values())

    def by_cpu(self) -> dict[int, float]:
        """The same by the CPU, one of each socket, that counters are read from."""
        found: dict[int, float] = {}
        for descriptor, counter in self._open:
            count, enabled, running = COUNT.unpack(os.read(descriptor, COUNT.size))
            bytes_ = count * counter.bytes_each * (enabled / running if running else 0.0)
            found[counter.cpu] = found.get(counter.cpu, 0.0) + bytes_
        return found

    def close(self) -> None:
        """Ends counting."""
        for descriptor, _ in self._open:
            os.close(descriptor)
        self._open = []


class LinkTraffic(MemoryTraffic):
    """The same of what goes out over the links between sockets: data, without their headers."""

    what, of_links = "links between sockets", True


def traffic_counters(devices: Path) -> Iterator[Counter]:
    """All that count lines of a memory controller, or data that leave over a link."""
    for device in sorted(devices.glob("*")):
        kind = kernel_text(device / "type")
        if not kind.isdigit():
            continue
        cpus = parse_list(kernel_text(device / "cpumask") or "0")
        link = device.name.startswith(tuple(LINKS))
        for event, bytes_each in _events(device):
            config = _config(device, event)
            if config is not None:
                for cpu in sorted(cpus):
                    yield Counter(int(kind), config, cpu, bytes_each, link)


def _events(device: Path) -> Iterator[tuple[str, float]]:
    if device.name.startswith(AMD_DEVICE):
        yield from ((event, LINE_BYTES) for event in AMD_EVENTS)
    elif link := next(filter(device.name.startswith, LINKS), None):
        yield LINKS[link]
    elif "imc" in device.name:
        for name in NAMED:
            if event := kernel_text(device / "events" / name):
                scale = kernel_text(device / "events" / f"{name}.scale")
                unit = UNITS.get(kernel_text(device / "events" / f"{name}.unit"))
                yield event, float(scale) * unit if scale and unit else LINE_BYTES


def _config(device: Path, event: str) -> int | None:
    """The configuration of ``event=0x04,umask=0x03``; None where a part has no place there."""
    config = 0
    for part in event.split(","):
        name, _, value = part.partition("=")
        place = re.fullmatch(r"config:(\d+)(?:-\d+)?", kernel_text(device / "format" / name))
        if place is None:
            return None
        config |= int(value or "1", 0) << int(place[1])
    return config


def opened(kind: int, config: int, *, cpu: int = -1, thread: int = -1) -> int:
    """A descriptor to read an event from: of all processes on ``cpu``, or of ``thread`` in user
    mode. Raises OSError."""
    number = SYSCALL.get(platform.machine())
    if number is None:
        raise OSError(errno.ENOSYS, f"unknown on {platform.machine()}")
    flags = USER_MODE if thread >= 0 else 0
    attributes = ctypes.create_string_buffer(
        ATTRIBUTES.pack(kind, ATTRIBUTES_BYTES, config, 0, 0, TIMES_TOO, flags, 0, 0, 0)
    )
    libc = ctypes.CDLL(None, use_errno=True)
    no_group, close_on_exec = -1, 8
    descriptor = libc.syscall(
        ctypes.c_long(number),
        attributes,
        ctypes.c_int(thread),
        ctypes.c_int(cpu),
        ctypes.c_int(no_group),
        ctypes.c_ulong(close_on_exec),
    )
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return int(descriptor)


def reason(failure: OSError, paranoid: int) -> str:
    """Why an event cannot be counted; ``paranoid``: what the kernel's setting must be at most."""
    if failure.errno in DENIED:
        least = f"kernel.perf_event_paranoid of {paranoid}"
        return f"{failure.strerror}: expected {least}, or CAP_PERFMON"
    if failure.errno == errno.ENOENT:
        return "this host has no such counters"
    return str(failure.strerror)
