"""Cores, sockets and caches in the fields that ``lscpu`` prints."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

from .identities import lscpu_identity
from .inventory import CacheFacts, Core, Inventory, clock_of_model, machine_title
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
    threads, sockets = _number(fields, "Thread(s) per core"), _number(fields, "Socket(s)")
    if threads is None:
        return False
    listed = [node.cpus for node in found.nodes if node.cpus]
    cores = [core for own in listed for core in _siblings(sorted(own), threads)]
    expected = (sockets or 0) * (_number(fields, "Core(s) per socket") or 0)
    if sockets is None or not 0 < sockets <= len(cores):
        sockets = 1
    elif expected and expected != len(cores):
        found.notes.append(f"lscpu counts {expected} cores, its nodes have {len(cores)}: kept.")
    identity = lscpu_identity(fields)
    model = fields.get("Model name", "")
    clock = clock_of_model(model)
    found.cores = [
        Core(own, f"package{k * sockets // len(cores)}", clock, identity)
        for k, own in enumerate(cores)
    ]
    for name, level in _LEVELS.items():
        if match := _CACHE.fullmatch(fields.get(name, "")):
            instances = int(match[3])
            size = int(float(match[1]) * (1 << _SHIFTS[match[2]])) // max(1, instances)
            found.caches += [
                CacheFacts(level, size, None, frozenset().union(*part))
                for part in _parts(cores, instances)
                if part and size
            ]
    found.title = machine_title([model], sockets, len(found.nodes))
    return True


def _siblings(cpus: Sequence[int], threads: int) -> list[frozenset[int]]:
    """The threads of each core: neighbours in one run of numbers, else one of each run."""
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
