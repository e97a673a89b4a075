"""The text that ``numactl -H`` (``--hardware``) prints: nodes, CPUs, memory, SLIT."""

import re
from dataclasses import dataclass, field

from ...inputs import InputError
from ..schema import MachineDescription
from ..schema_types import NODES_MAX
from .inventory import Core, Inventory, NodeFacts, Pair, machine_title
from .lscpu_fields import add_cores
from .source import Source

_BEGINNING = re.compile(
    r"\bavailable: \d{1,6} nodes?\b|\bnode \d{1,6} (?:cpus|size): ?|^node +0(?: +\d{1,6})+ *$",
    re.ASCII | re.MULTILINE,
)
_MORE_CPUS = re.compile(r"\d[\d\s,-]*(?:\(\d{1,6}\))?", re.ASCII)
_COUNT = re.compile(r"\s*\((\d{1,6})\)\s*$", re.ASCII)
_AVAILABLE = re.compile(r"available: (\d{1,6}) nodes?(?: \(([\d,-]*)\))?", re.ASCII)
_FACT = re.compile(r"node (\d{1,6}) (cpus|size|free):\s*(.*)", re.ASCII)
_SIZE = re.compile(r"(\d{1,12}) ([kMG]?)B", re.ASCII)
_HEAD = re.compile(r"node((?:\s+\d{1,6})+)", re.ASCII)
_ROW = re.compile(r"(\d{1,6}):(.*)", re.ASCII)
_UNITS = {"": 1, "k": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def recognises(source: Source) -> bool:
    """Whether its lines on nodes are there."""
    return source.tree is None and _BEGINNING.search(source.head_text()) is not None


def read(source: Source) -> MachineDescription:
    """The machine in the text; raises InputError."""
    return inventory(source).description()


def distances(source: Source) -> dict[Pair, int]:
    """The table of distances alone; raises InputError where it is damaged."""
    reader = _Reader(source)
    reader.scan()
    return reader.distances


def take_cpus_as_cores(found: Inventory, tool: str) -> None:
    """Make each CPU of its nodes a core, and note it."""
    found.cores = [Core(frozenset({cpu})) for node in found.nodes for cpu in node.cpus or ()]
    found.notes.append(f"{tool} does not list cores: each CPU is taken as one.")


def inventory(source: Source) -> Inventory:
    """What the text tells; raises InputError. Lines that numactl does not print are passed over."""
    return _Reader(source).inventory()


@dataclass
class _Reader:
    source: Source
    announced: int | None = None
    present: frozenset[int] | None = None
    cpus: dict[int, frozenset[int]] = field(default_factory=dict)
    memory: dict[int, int | None] = field(default_factory=dict)
    columns: tuple[int, ...] = ()
    distances: dict[Pair, int] = field(default_factory=dict)
    rows: set[int] = field(default_factory=set)
    head_line: int = 0
    cpus_begun: tuple[int, int, str] | None = None  # node, line and text of CPUs, maybe wrapped

    def scan(self) -> None:
        """Read all lines."""
        for number, line in enumerate(self.source.lines, 1):
            self._line(line.strip(" \t\0"), number)
        self._end_cpus()
        if self.rows < set(self.columns):
            raise self.source.error(
                f"cut off: {len(self.rows)} of {len(self.columns)} rows of distances",
                self.head_line,
            )

    def inventory(self) -> Inventory:
        self.scan()
        ids = sorted(self.cpus.keys() | self.memory.keys())
        if len(ids) > NODES_MAX:
            raise self._too_many()
        known = len(ids) if self.present is None else len(self.present & set(ids))
        if self.announced is not None and known < self.announced:
            raise self.source.error(
                f"cut off: {known} of {self.announced} nodes", expected="lines on every node"
            )
        if missing := sorted(set(self.columns) - set(ids)):
            raise self.source.error(
                f"cut off: node {missing[0]} has distances only",
                self.head_line,
                expected="the CPUs and size of every node",
            )
        if not ids:
            raise self.source.error("no nodes", expected="the output of numactl -H")
        found = Inventory(self.source.machine, source=f"numactl -H, {self.source.label()}")
        found.nodes = [NodeFacts(n, self.cpus.get(n), self.memory.get(n)) for n in ids]
        found.title = machine_title((), 0, len(ids))
        if any(self.cpus.values()) and not add_cores(found, self.source):
            take_cpus_as_cores(found, "numactl")
        if all((a, b) in self.distances for a in ids for b in ids):
            found.slit = self.distances
        return found

    def _line(self, line: str, number: int) -> None:
        if self.cpus_begun is not None and _MORE_CPUS.fullmatch(line):
            node, first, text = self.cpus_begun
            self.cpus_begun = (node, first, f"{text} {line}")
            return
        self._end_cpus()
        if match := _AVAILABLE.match(line):
            if self.announced is not None:
                raise self.source.error("a second machine in the same text", number, expected="one")
            self.announced = int(match[1])
            self.present = self.source.numbers(match[2], number) if match[2] else None
        elif match := _FACT.match(line):
            self._fact(int(match[1]), match[2], match[3], number)
        elif match := _HEAD.fullmatch(line):
            columns = match[1].split()
            if len(columns) > NODES_MAX:
                raise self._too_many(number)
            self.columns, self.head_line = tuple(map(int, columns)), number
        elif self.columns and (match := _ROW.fullmatch(line)):
            self._row(int(match[1]), match[2].split(), number)

    def _fact(self, node: int, what: str, text: str, number: int) -> None:
        if what == "cpus":
            if node in self.cpus:
                raise self.source.error(f"the CPUs of node {node} are listed twice", number)
            self.cpus[node] = frozenset()
            self.cpus_begun = (node, number, text)
        elif what == "size":
            match = _SIZE.fullmatch(text)
            if match is None and text != "<not available>":
                raise self.source.error(
                    "no size of a node's memory", number, token=text, expected="such as '32768 MB'"
                )
            # What numactl calls MB is 2^20 bytes.
            self.memory[node] = int(match[1]) * _UNITS[match[2]] if match else None

    def _end_cpus(self) -> None:
        """Take the CPUs of a node in, whose list may have been wrapped or have its length."""
        if self.cpus_begun is None:
            return
        (node, number, text), self.cpus_begun = self.cpus_begun, None
        count = _COUNT.search(text)
        found = self.source.numbers(",".join(_COUNT.sub("", text).split()), number)
        if count is not None and len(found) != int(count[1]):
            raise self.source.error(
                f"{len(found)} CPUs of node {node}",
                number,
                expected=f"{count[1]}, as its list ends",
            )
        if twice := sorted(found & frozenset().union(*self.cpus.values())):
            raise self.source.error(
                f"CPU {twice[0]} is listed twice",
                number,
                expected="each CPU in one node (firmware with several memories for each CPU: "
                "keep one node with CPUs, and the others without)",
            )
        self.cpus[node] = found

    def _row(self, node: int, values: list[str], number: int) -> None:
        if len(values) != len(self.columns):
            raise self.source.error(
                f"{len(values)} distances", number, expected=f"{len(self.columns)}, one per node"
            )
        if node in self.rows:
            raise self.source.error(f"the distances of node {node} are listed twice", number)
        for home, value in zip(self.columns, values, strict=True):
            if not re.fullmatch(r"\d{1,3}", value, re.ASCII) or int(value) > 255:
                raise self.source.error(
                    "no distance", number, token=value, expected="a whole number from 0 to 255"
                )
            self.distances[node, home] = int(value)
        self.rows.add(node)

    def _too_many(self, number: int | None = None) -> InputError:
        return self.source.error(f"more than {NODES_MAX:,} nodes", number)
