"""Cores, sockets and caches in the fields that ``lscpu`` prints."""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

from .inventory import CacheFacts, Core, Inventory, clock_of_model, identity_of, machine_title
from .source import Source

FIELD = re.compile(r"\s*([A-Z][\w() -]{1,40}?):\s*(.*)", re.ASCII)
# '2.5 MiB (48 instances)'; without the number of instances it is unknown who shares one.
_CACHE = re.compile(r"(\d{1,6}(?:\.\d{1,3})?) ([KMG])iB \((\d{1,5}) instances?\)", re.ASCII)
_LEVELS = {"L1d": 1, "L1d cache": 1, "L2": 2, "L2 cache": 2, "L3": 3, "L3 cache": 3}
_SHIFTS = {"K": 10, "M": 20, "G": 30}


def add_cores(found: Inventory, source: Source) -> bool:
    """Cores, sockets and caches as lscpu says; whether it does. Its nodes are there."""
    fields = {
        match[1]: match[2].strip()
        for line in source.lines
        if (match := FIELD.fullmatch(line.rstrip()))
    }
    threads, unit = _number(fields, "Thread(s) per core"), "Socket"
    if threads is None:
        return False
    if "Cluster(s)" in fields and _number(fields, "Socket(s)") is None:
        unit = "Cluster"  # of ARM's servers whose firmware tells no sockets
    sockets = _number(fields, f"{unit}(s)")
    listed = [sorted(node.cpus) for node in found.nodes if node.cpus]
    expected = (sockets or 0) * (_number(fields, f"Core(s) per {unit.lower()}") or 0)
    alone = _without_siblings(listed, threads, expected)
    cores = [core for own in listed for core in _siblings(own, threads, alone)]
    if alone:
        found.notes.append(
            f"lscpu counts {expected} cores of {sum(map(len, listed))} CPUs: the last {alone} CPUs "
            "are taken as cores of one hardware thread, and private caches are left out."
        )
    if sockets is None or not 0 < sockets <= len(cores):
        sockets = 1
    elif expected and expected != len(cores):
        found.notes.append(f"lscpu counts {expected} cores, its nodes have {len(cores)}: kept.")
    identity = identity_of(fields)
    model = fields.get("Model name", "")
    clock = clock_of_model(model)
    found.cores = [
        Core(own, f"package{k * sockets // len(cores)}", clock, identity)
        for k, own in enumerate(cores)
    ]
    for name, level in _LEVELS.items():
        if match := _CACHE.fullmatch(fields.get(name, "")):
            instances = int(match[3])
            if alone and instances > sockets:
                continue  # a sum over caches that differ
            size = int(float(match[1]) * (1 << _SHIFTS[match[2]])) // max(1, instances)
            found.caches += [
                CacheFacts(level, size, None, frozenset().union(*part))
                for part in _parts(cores, instances)
                if part and size
            ]
    found.title = machine_title([model], sockets, len(found.nodes))
    return True


def _without_siblings(listed: Sequence[Sequence[int]], threads: int, cores: int) -> int:
    """Of a node with two kinds of cores: how many CPUs, the last ones, are a core each."""
    cpus = sum(map(len, listed))
    if len(listed) != 1 or threads == 1 or not -(-cpus // threads) < cores <= cpus:
        return 0
    with_siblings, rest = divmod(cpus - cores, threads - 1)
    return 0 if rest else cores - with_siblings


def _siblings(cpus: Sequence[int], threads: int, alone: int) -> list[frozenset[int]]:
    """The threads of each core: neighbours in one run of numbers, else one of each run; the last
    ones ``alone``."""
    if alone:
        cut = len(cpus) - alone
        return [*_siblings(cpus[:cut], threads, 0), *(frozenset({cpu}) for cpu in cpus[cut:])]
    count = -(-len(cpus) // threads)
    if cpus[-1] - cpus[0] + 1 == len(cpus):
        return [frozenset(cpus[k * threads : (k + 1) * threads]) for k in range(count)]
    return [frozenset(cpus[k::count]) for k in range(count)]


def _parts(cores: Sequence[frozenset[int]], count: int) -> list[Sequence[frozenset[int]]]:
    ends = [k * len(cores) // count for k in range(count + 1)] if count else []
    return [cores[a:b] for a, b in pairwise(ends)]


def _number(fields: Mapping[str, str], name: str) -> int | None:
    text = fields.get(name, "")
    return int(text) if re.fullmatch(r"[1-9]\d{0,3}", text, re.ASCII) else None
