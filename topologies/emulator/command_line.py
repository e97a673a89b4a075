"""QEMU's command line for a guest: its processors, nodes, memory, distances and channels."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ...inputs import InputError
from ..routes import Floats, Ints
from .guest_machine import GuestMachine
from .image import Image

# Of x86: of the memory below the hole for devices, where there is more than
_LOW_END = 0x80000000
_LOW_ALL_BYTES = 0xB0000000  # this much in all
_HIGH_BEGIN = 1 << 32


@dataclass(frozen=True)
class Share:
    """A folder of the host that the guest sees at the same path; read-only unless ``writable``."""

    folder: Path
    writable: bool = False


@dataclass(frozen=True)
class Plugin:
    """A plugin of QEMU's translator, its arguments, and open files that QEMU inherits for it."""

    path: Path
    arguments: Mapping[str, str] = field(default_factory=dict)
    descriptors: tuple[int, ...] = ()


@dataclass(frozen=True)
class Topology:
    """Places for processors: of each socket the same, some may stay empty."""

    sockets: int
    cores: int
    threads: int

    def apic_ids(self) -> int:
        """The ids that the places take: each level has whole bits."""
        last = (self.sockets - 1) << (_bits(self.cores) + _bits(self.threads))
        return (last | (self.cores - 1) << _bits(self.threads) | (self.threads - 1)) + 1


def _bits(count: int) -> int:
    return (count - 1).bit_length()


def topology(guest: GuestMachine) -> Topology:
    """A socket for each node with processors."""
    nodes = [guest.node(k) for k in range(len(guest.nodes)) if guest.node(k).threads]
    return Topology(
        len(nodes), max(node.cores for node in nodes), max(node.threads_per_core for node in nodes)
    )


def memory_ranges(guest: GuestMachine) -> list[tuple[int, int, int]]:
    """(first byte, byte after the last, node) of an x86 guest's memory, by rising address."""
    low = _LOW_END if sum(guest.memory_bytes) >= _LOW_ALL_BYTES else _LOW_ALL_BYTES
    found = []
    at = 0
    for node, size in enumerate(guest.memory_bytes):
        end = at + size
        if at < low and size:
            found.append((at, min(end, low), node))
        if end > low:
            shift = _HIGH_BEGIN - low
            found.append((max(at, low) + shift, end + shift, node))
        at = end
    return found


def machine_arguments(guest: GuestMachine, image: Image) -> list[str]:
    """The machine itself, without the ways in and out of it."""
    places = topology(guest)
    if places.apic_ids() > guest.platform.processors_max:
        raise InputError(
            f"{guest.machine.name} with {guest.processors} processors cannot be emulated: QEMU "
            f"holds {guest.platform.processors_max} at most, and fewer of uneven numbers (--scale "
            "takes a part)"
        )
    total = sum(guest.memory_bytes)
    return [
        *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
        *("-machine", guest.platform.machine),
        *("-m", f"size={total >> 20}M"),
        *("-kernel", str(image.kernel), "-initrd", str(image.files), "-append"),
        guest.platform.kernel_words,
        *_nodes(guest),
        *_processors(guest, places),
        *_distances(guest),
        *("-accel", "tcg,thread=multi", "-cpu", guest.platform.processor),
    ]


def _processors(guest: GuestMachine, places: Topology) -> Iterator[str]:
    count = places.sockets * places.cores * places.threads
    yield "-smp"
    yield (
        f"cpus={count},maxcpus={count},sockets={places.sockets},cores={places.cores},"
        f"threads={places.threads}"
    )
    for socket in range(places.sockets):
        yield "-numa"
        yield f"cpu,node-id={socket},socket-id={socket}"


def _nodes(guest: GuestMachine) -> Iterator[str]:
    count = len(guest.nodes)
    initiators = [k for k in range(count) if guest.node(k).threads]
    slit, bandwidth = guest_slit(guest), guest_bandwidth_MBps(guest)
    for k, size in enumerate(guest.memory_bytes):
        # A node without processors names the nearest that has some; of equals, who draws most.
        nearest = k
        if k not in initiators:
            nearest = min(initiators, key=lambda i: (slit[i, k], -bandwidth[i, k], i))
        memory = ""
        if size:
            yield from ("-object", f"memory-backend-ram,id=memory{k},size={size},reserve=off")
            memory = f",memdev=memory{k}"
        initiator = f",initiator={nearest}" if guest.platform.attributes else ""
        yield from ("-numa", f"node,nodeid={k}{memory}{initiator}")


def _distances(guest: GuestMachine) -> Iterator[str]:
    count = len(guest.nodes)
    slit = guest_slit(guest)
    for a in range(count):
        for b in range(count):
            if a != b:
                yield from ("-numa", f"dist,src={a},dst={b},val={slit[a, b]}")
    if not guest.platform.attributes:
        return
    latency = _whole(guest.machine.latency_ns[np.ix_(guest.nodes, guest.nodes)])
    bandwidth = guest_bandwidth_MBps(guest)
    for k in (k for k in range(count) if guest.node(k).threads):
        for home in range(count):
            pair = f"hmat-lb,initiator={k},target={home},hierarchy=memory,data-type=access"
            if latency[k, home]:
                yield from ("-numa", f"{pair}-latency,latency={latency[k, home]}")
            if bandwidth[k, home]:
                # QEMU divides by MiB for a table that counts MB.
                yield from ("-numa", f"{pair}-bandwidth,bandwidth={bandwidth[k, home]}M")


def share_arguments(shares: Sequence[Share]) -> Iterator[str]:
    """The host's files (the first share is all of them, read-only) and the shared folders."""
    for k, share in enumerate(shares):
        access = "" if share.writable else ",readonly=on"
        path = str(share.folder).replace(",", ",,")
        yield from (
            "-fsdev",
            f"local,id=share{k},path={path},security_model=none,multidevs=remap{access}",
        )
        yield from ("-device", f"virtio-9p-pci,fsdev=share{k},mount_tag=share{k}")


def plugin_arguments(plugins: Sequence[Plugin]) -> Iterator[str]:
    """Plugins with their arguments."""
    for plugin in plugins:
        words = [str(plugin.path), *(f"{name}={value}" for name, value in plugin.arguments.items())]
        yield from ("-plugin", ",".join(word.replace(",", ",,") for word in words))


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


def guest_bandwidth_MBps(guest: GuestMachine) -> Ints:
    """(n, n) in MB/s, 0 where unknown, in steps that 16 bits can count; rows are initiators."""
    found = guest.machine.bandwidth_Bps[np.ix_(guest.nodes, guest.nodes)] / 1e6
    most = np.nanmax(found, initial=0.0)
    step = 1
    while most / step >= 2**_BITS - 1:
        step *= 2
    return _whole(found / step) * step


def _whole(values: Floats) -> Ints:
    return np.rint(np.where(np.isfinite(values), values, 0.0)).astype(np.int64)
