"""The CPUs of a sysfs tree: which are online, their cores, packages, caches and clocks."""

import re
from collections.abc import Sequence, Set
from dataclasses import dataclass, field, replace

from ...inputs import InputError, Quantity
from ..schema_types import ProcessorIdentity
from .inventory import (
    CACHE_LEVEL_MAX,
    CacheFacts,
    Core,
    clock_of_model,
    cpuinfo_identities,
    quantity,
)
from .tree import Tree

CPU_FOLDER = "sys/devices/system/cpu"
_CPUS_MAX = 16_384  # Linux on x86 is built for 8,192 at most

# The present name of each set, then that of older kernels; masks before lists, as in hwloc, since
# trees are found (a saved Opteron 6276) whose lists contradict their masks and the processor.
_SIBLINGS = ("core_cpus", "thread_siblings", "core_cpus_list", "thread_siblings_list")
_PACKAGE = ("package_cpus", "core_siblings", "package_cpus_list", "core_siblings_list")
_SHARED = ("shared_cpu_map", "shared_cpu_list")
_DECIMAL = re.compile(r"\d{1,6}(\.\d{1,9})?", re.ASCII)
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@dataclass
class Cpus:
    """What the tree says of its CPUs. Not ``known``: it has no folder for any CPU."""

    online: frozenset[int] = frozenset()
    cores: list[Core] = field(default_factory=list)
    caches: list[CacheFacts] = field(default_factory=list)
    models: frozenset[str] = frozenset()
    notes: list[str] = field(default_factory=list)
    known: bool = True

    def assume(self, cpus: Set[int]) -> None:
        """Takes each of ``cpus``, of which nothing is known, for a core."""
        self.cores += [Core(frozenset({cpu})) for cpu in sorted(cpus)]
        self.notes.append("The tree has no CPU folders: each CPU is taken for a core.")


def read_cpus(tree: Tree) -> Cpus:
    """The CPUs of ``tree``; raises InputError."""
    return _Reader(tree).cpus()


@dataclass
class _Reader:
    tree: Tree
    identities: dict[int, ProcessorIdentity] = field(default_factory=dict)

    def cpus(self) -> Cpus:
        present = self.tree.numbered(CPU_FOLDER, r"cpu(\d{1,5})")
        if not present:
            return Cpus(known=False)
        if len(present) > _CPUS_MAX:
            raise InputError(f"more than {_CPUS_MAX:,} CPUs", self.tree.full_path(CPU_FOLDER))
        online = self.tree.numbers(f"{CPU_FOLDER}/online")
        if online is not None:
            present &= online
        present = {cpu for cpu in present if self._read(cpu, "online") != "0"}
        models, clocks = self._cpuinfo()
        text, board = self.tree.read("proc/cpuinfo") or "", self._board()
        self.identities = cpuinfo_identities(text, board)
        cores = self._cores(frozenset(present), clocks)
        return Cpus(
            online=frozenset(present),
            cores=cores,
            caches=self._caches(present),
            models=frozenset(models),
        )

    def _read(self, cpu: int, path: str) -> str | None:
        return self.tree.read(f"{CPU_FOLDER}/cpu{cpu}/{path}")

    def _first_set(self, cpu: int, folder: str, files: Sequence[str]) -> frozenset[int] | None:
        for file in files:
            found = self.tree.numbers(f"{CPU_FOLDER}/cpu{cpu}/{folder}/{file}")
            if found is not None:
                return found
        return None

    def _cores(self, online: frozenset[int], clocks: dict[int, Quantity]) -> list[Core]:
        """CPUs that are siblings and have the same number of core and package form one core.

        Siblings alone would not do: on some AMD processors they are two cores that share a module.
        """
        threads: dict[tuple[int, str | None, str | None], set[int]] = {}
        packages = self._packages(online)
        for cpu in sorted(online):
            siblings = self._first_set(cpu, "topology", _SIBLINGS)
            siblings = frozenset({cpu}) if siblings is None else siblings & online | {cpu}
            package = self._read(cpu, "topology/physical_package_id")
            key = (min(siblings), self._read(cpu, "topology/core_id"), package)
            threads.setdefault(key, set()).add(cpu)
        return [
            Core(
                frozenset(cpus),
                packages.get(min(cpus)),
                self._clock(min(cpus), clocks),
                self.identities.get(min(cpus)),
            )
            for cpus in threads.values()
        ]

    def _board(self) -> str | None:
        """Who made the board, or the virtual machine."""
        for name in ("sys_vendor", "board_vendor"):
            text = self.tree.read(f"sys/class/dmi/id/{name}")
            if text and text.isprintable():
                return text.strip()
        return None

    def _packages(self, online: frozenset[int]) -> dict[int, str]:
        """The name of each CPU's package, after its number, where that is no other package's."""
        found: dict[tuple[str, frozenset[int]], set[int]] = {}
        for cpu in sorted(online):
            number = self._read(cpu, "topology/physical_package_id") or ""
            if number.isascii() and number.isdigit():  # the kernel writes -1 where it does not know
                siblings = self._first_set(cpu, "topology", _PACKAGE)
                own = frozenset() if siblings is None else siblings & online
                found.setdefault((number, own), set()).add(cpu)
        numbers = [number for number, _ in found]
        unique = len(set(numbers)) == len(numbers)
        return {
            cpu: f"package{number if unique else place}"
            for place, ((number, _), cpus) in enumerate(found.items())
            for cpu in cpus
        }

    def _clock(self, cpu: int, clocks: dict[int, Quantity]) -> Quantity | None:
        """The highest clock that the governor may choose, else what /proc/cpuinfo says."""
        highest = self._kilohertz(cpu, "cpuinfo_max_freq")
        if highest is None:
            return clocks.get(cpu)
        base = self._kilohertz(cpu, "base_frequency")
        if base is None or base.value > highest.value:
            return replace(highest, source="cpufreq/cpuinfo_max_freq")
        return replace(
            highest,
            low=base.value,
            source="cpufreq/cpuinfo_max_freq, turbo included; range from base_frequency",
        )

    def _kilohertz(self, cpu: int, file: str) -> Quantity | None:
        text = self._read(cpu, f"cpufreq/{file}")
        if text is None or not re.fullmatch(r"\d{1,12}", text, re.ASCII):
            return None
        return quantity(f"{text} kHz", "frequency")

    def _cpuinfo(self) -> tuple[set[str], dict[int, Quantity]]:
        """Names of the processors' models, and the clock of each CPU, from /proc/cpuinfo."""
        models: set[str] = set()
        clocks: dict[int, Quantity] = {}
        cpu, nominal = -1, None
        for line in (self.tree.read("proc/cpuinfo") or "").splitlines():
            key, _, value = (part.strip() for part in line.partition(":"))
            if key == "processor" and re.fullmatch(r"\d{1,5}", value, re.ASCII):
                cpu, nominal = int(value), None
            elif key == "model name" and value:
                models.add(value)
                nominal = clock_of_model(value)
                if nominal is not None:
                    clocks[cpu] = nominal
            elif key == "cpu MHz" and nominal is None and _DECIMAL.fullmatch(value):
                clock = quantity(f"{value} MHz", "frequency")
                if clock is not None:
                    clocks[cpu] = replace(clock, source="/proc/cpuinfo, when it was read")
        return models, clocks

    def _caches(self, online: set[int]) -> list[CacheFacts]:
        """Every instance once, instruction caches left out."""
        found: dict[tuple[int, frozenset[int]], CacheFacts] = {}
        for cpu in sorted(online):
            for name in self.tree.names(f"{CPU_FOLDER}/cpu{cpu}/cache"):
                if re.fullmatch(r"index\d{1,3}", name, re.ASCII):
                    cache = self._cache(cpu, f"cache/{name}")
                    if cache is not None:
                        found.setdefault((cache.level, cache.cpus), cache)
        return list(found.values())

    def _cache(self, cpu: int, folder: str) -> CacheFacts | None:
        kind, level = self._read(cpu, f"{folder}/type"), self._read(cpu, f"{folder}/level")
        size = self._read(cpu, f"{folder}/size")
        if kind == "Instruction" or not level or not size:
            return None
        match = re.fullmatch(r"(\d{1,12})([KMG]?)", size, re.ASCII)
        path = f"{CPU_FOLDER}/cpu{cpu}/{folder}"
        if match is None:
            raise self.tree.error(f"{path}/size", "no size", size, "such as 32K")
        if not re.fullmatch(r"\d{1,2}", level, re.ASCII):
            raise self.tree.error(f"{path}/level", "no level of cache", level, "such as 2")
        size_bytes = int(match[1]) * _UNITS[match[2]]
        if not size_bytes or not 1 <= int(level) <= CACHE_LEVEL_MAX:
            return None
        cpus = self._first_set(cpu, folder, _SHARED)
        return CacheFacts(
            int(level),
            size_bytes,
            self._known(cpu, f"{folder}/coherency_line_size"),
            frozenset({cpu}) if cpus is None else cpus | {cpu},
            self._known(cpu, f"{folder}/ways_of_associativity"),
        )

    def _known(self, cpu: int, path: str) -> int | None:
        """A small number, None where the tree does not tell it, or tells 0."""
        text = self._read(cpu, path) or ""
        return int(text) or None if re.fullmatch(r"\d{1,5}", text, re.ASCII) else None
