"""The text that Intel Memory Latency Checker prints, whole or with single options.

Idle latencies and read bandwidths between nodes, peak bandwidths under mixes of reads and writes,
the loaded-latency curve. The outputs of several calls may stand in one text, ``numactl -H`` too,
which adds CPUs, memory and SLIT. MLC tells nothing of cores, and its MB/sec are 10^6 B/s.
"""

import re
from dataclasses import dataclass, field

from ...inputs import Quantity
from ...inputs.number_sets import format_list
from ..schema import LoadedPoint, MachineDescription, ReadWriteMix
from . import lscpu, numactl
from .inventory import Inventory, NodeFacts, Pair, machine_title, quantity
from .source import Source

_NODES_MAX = 256  # more than any machine that MLC runs on
_VALUES_MAX = 4 * _NODES_MAX**2

_BEGINNING = re.compile(
    r"Intel\(R\) Memory Latency Checker|Measuring idle latenc|Measuring Loaded Latenc"
    r"|Measuring Memory Bandwidths between nodes|Memory Bandwidths for the system"
    r"|Each iteration took [\d.]{1,20} \w+"
)
_VERSION = re.compile(r"Intel\(R\) Memory Latency Checker - v([\w.-]{1,16})", re.ASCII)
_HEAD = re.compile(r"(?:numa node|socket)((?:\s+\d{1,6})+)", re.ASCII | re.IGNORECASE)
_DECIMAL = re.compile(r"\d{1,12}(\.\d{1,9})?", re.ASCII)
_ROW = re.compile(r"(\d{1,6})\s+([\d.].*|-.*)", re.ASCII)
_LOADED = re.compile(r"(\d{5})(?:\s+(.*))?", re.ASCII)
_MIX = re.compile(r"([\w:][\w: +-]{0,60}?)\s*:\s*(\S{1,20})", re.ASCII)
_ITERATION = re.compile(r"Each iteration took .*\(\s*([\d.]{1,20})\s*ns\s*\)", re.ASCII)
# '-R' (reads) is the default; '-W5' is one read for each write, which no later line says.
_COMMAND = re.compile(r"(?:Command line parameters:|.*\bmlc\b.* --).*?\s(-W\d{1,2})\b", re.ASCII)
_FIGURE = re.compile(r"(?<!\S)\d{1,12}\.\d{1,9}(?!\S)", re.ASCII)
_TRAFFIC = re.compile(r"Using (?!traffic with)(.{1,60}?) traffic", re.ASCII)

# What MLC measures by default, in its order.
_DELAYS = [
    f"{delay:05}"
    for delay in (
        *(0, 2, 8, 15, 50, 100, 200, 300, 400, 500, 700, 1000, 1300, 1700, 2500, 3500, 5000),
        *(9000, 20000),
    )
]
_MIXES = [
    "ALL Reads",
    "3:1 Reads-Writes",
    "2:1 Reads-Writes",
    "1:1 Reads-Writes",
    "Stream-triad like",
]

# What a line begins -> the section it opens. 'Measuring' anything else ends the one before.
_SECTIONS = (
    (re.compile(r"Measuring idle latenc"), "latency"),
    (re.compile(r"Measuring Memory Bandwidths between"), "bandwidth"),
    (re.compile(r"Measuring Loaded Latenc|Inject\s+Latency"), "loaded"),
    (re.compile(r"Measuring .{0,40}Memory Bandwidths? for|Using traffic with the foll"), "mixes"),
    (re.compile(r"Measuring cache-to-cache"), "caches"),
    (re.compile(r"Measuring "), "other"),
)


def recognises(source: Source) -> bool:
    """Whether one of its headings is there."""
    return source.tree is None and _BEGINNING.search(source.head_text()) is not None


def read(source: Source) -> MachineDescription:
    """The machine in the text; raises InputError."""
    return Printed(source).inventory().description()


@dataclass
class Table:
    """A matrix of one measurement: what is known between pairs, and its rows and columns."""

    columns: tuple[int, ...] = ()
    rows: set[int] = field(default_factory=set)
    values: dict[Pair, Quantity] = field(default_factory=dict)
    lines: dict[Pair, int] = field(default_factory=dict)


def printed(source: Source) -> "Printed":
    """All that ``source`` says, to calibrate on; raises InputError, also where it is cut off."""
    found = Printed(source)
    found.inventory()
    found.check_whole()
    return found


@dataclass
class Printed:
    """What a text of MLC holds, each value with its line: all of reads but for the mixes.

    ``zeros``: how many figures are 0; ``between_caches``: latencies from cache to cache.
    """

    source: Source
    version: str | None = None
    section: str = "other"
    traffic: str | None = None  # of this section, None where it is not named: reads
    asked: str | None = None  # traffic that the command line asks for
    table: Table = field(default_factory=Table)
    tables: dict[str, Table] = field(default_factory=dict)
    loaded: list[tuple[LoadedPoint, int]] = field(default_factory=list)  # with its line
    mixes: dict[str, tuple[ReadWriteMix, int]] = field(default_factory=dict)
    iteration: Quantity | None = None
    notes: list[str] = field(default_factory=list)
    values_left: int = _VALUES_MAX
    begun: tuple[str, int] | None = None  # the last heading of figures, and its line
    last_figure: int = 0  # the last line that has one
    series: list[str] = field(default_factory=list)  # what its lines begin with: delays, mixes
    zeros: int = 0
    between_caches: int = 0

    def inventory(self) -> Inventory:
        """What it tells of a machine; raises InputError."""
        for number, line in enumerate(self.source.lines, 1):
            self._line(line.strip(" \t\0"), number)
        known = self._other_tools()
        self._check_tables({node.id for node in known.nodes if not node.cpus} if known else set())
        found = known or Inventory(self.source.machine, source="")
        mlc = f"Intel Memory Latency Checker{f' {self.version}' if self.version else ''}"
        tool = known.source.split(",")[0] if known else ""
        found.source = f"{mlc}, {self.source.label()}" + (f" with {tool}" if known else "")
        if known is None:
            found.nodes = self._nodes()
            found.title = machine_title((), 0, len(found.nodes))
        self._check_nodes(found)
        for what in ("latency", "bandwidth"):
            if what in self.tables:
                setattr(found, what, self.tables[what].values)
        self._use_iteration(found)
        points = [point for point, _ in self.loaded]
        found.loaded_latency = sorted(points, key=lambda point: point.bandwidth.value)
        found.read_write_mixes = [mix for mix, _ in self.mixes.values()]
        if self.zeros:
            self._note(f"Left out, as not measured: figures of 0 ({self.zeros}).")
        found.notes += self.notes
        if not (found.latency or found.bandwidth or self.loaded or self.mixes):
            left_out = "".join(f" ({note})" for note in self.notes if "left out" in note)
            raise self.source.error(
                f"no measurement of reads{left_out}", expected="the output of Intel MLC"
            )
        return found

    def _other_tools(self) -> Inventory | None:
        """What numactl -H or lscpu say in the same text."""
        if numactl.recognises(self.source):
            return numactl.inventory(self.source)
        return lscpu.inventory(self.source) if lscpu.lists_cores(self.source) else None

    def _nodes(self) -> list[NodeFacts]:
        """Nodes with rows have CPUs, though MLC does not say which; the others have memory only."""
        tables = self.tables.values()
        ids = sorted({node for table in tables for node in (*table.columns, *table.rows)})
        starts = {node for table in tables for node in table.rows}
        if memory_alone := sorted(set(ids) - starts) if starts else []:
            self._note(
                f"Nodes without a row are taken as memory without CPUs: {format_list(memory_alone)}"
            )
        if not ids:
            self.notes.append("The text has no nodes: assumed to be one.")
            return [NodeFacts(0, None, None)]
        return [NodeFacts(node, None if node in starts else frozenset(), None) for node in ids]

    def _check_nodes(self, found: Inventory) -> None:
        ids = {node.id for node in found.nodes}
        measured = {n for table in self.tables.values() for n in (*table.columns, *table.rows)}
        if unknown := measured - ids:
            raise self.source.error(f"node {min(unknown)} is measured, but numactl has no such")

    def _use_iteration(self, found: Inventory) -> None:
        """``--idle_latency`` measures one CPU and its own memory: all there is of one node."""
        if self.iteration is not None and not found.latency and len(found.nodes) == 1:
            node = found.nodes[0].id
            found.latency[node, node] = self.iteration

    def _line(self, line: str, number: int) -> None:
        if match := _VERSION.search(line):
            self.version, self.section, self.asked = match[1], "other", None
        elif match := _COMMAND.match(line):
            self.asked = match[1]
        elif found := next((name for head, name in _SECTIONS if head.match(line)), None):
            self._begin(found, line, number)
        elif match := _TRAFFIC.match(line):
            self.traffic = match[1]
            if self.section in ("other", "mixes"):  # an excerpt without its headings
                self._begin("bandwidth", line, number, traffic=match[1])
        elif match := _ITERATION.match(line):
            self.iteration = self._quantity(match[1], "ns", "time", number)
        elif self.section in ("latency", "bandwidth"):
            self._matrix_line(line, number)
        elif self.section == "loaded" and (match := _LOADED.fullmatch(line)):
            self._loaded_line(match[1], (match[2] or "").split(), number)
        elif self.section == "caches":
            self.between_caches += len(_FIGURE.findall(line))
        elif self.section == "mixes" and (match := _MIX.fullmatch(line)):
            value = self._quantity(match[2], "MB/s", "bandwidth", number)
            self.last_figure = number
            self.series.append(match[1])
            if value is not None:
                self.mixes[match[1]] = ReadWriteMix(name=match[1], bandwidth=value), number

    def _begin(self, section: str, line: str, number: int, traffic: str | None = None) -> None:
        if section == "loaded" and line.startswith("Inject"):
            self.section, traffic = "loaded", self.traffic  # the heading of the table itself
            if self.loaded:
                self._note("Several loaded-latency curves: the last is given.")
            if self._reads("loaded-latency curve"):
                self.loaded = []
            self.series = []
            return
        if section == "latency" and "(in " in line and "(in ns)" not in line:
            raise self.source.error("idle latencies in another unit", number, token=line)
        self.section, self.traffic, self.table = section, traffic or self.asked, Table()
        self.series = []
        self.begun = (line, number) if section not in ("other", "caches") else None

    def _end(self) -> int:
        """The last line that is not empty."""
        lines = enumerate(self.source.lines, 1)
        return max((number for number, line in lines if line.strip()), default=0)

    def _check_tables(self, without_cpus: set[int]) -> None:
        """Raises InputError where a matrix lacks rows that another has, or the text ends in it."""
        end = self._end()
        for name, table in self.tables.items():
            others = [other.rows for key, other in self.tables.items() if key != name]
            missing = [
                node
                for node in table.columns
                # A node without CPUs has no row in any table.
                if node not in table.rows | without_cpus
                and (not others or any(node in rows for rows in others))
            ]
            last = max(table.lines.values(), default=0)
            if missing and (others or last == end):
                raise self.source.error(
                    f"cut off: no row of node {missing[0]}",
                    last or None,
                    expected=f"{len(table.columns)} rows, one per column (if it has no CPUs, "
                    "append the output of numactl -H, which lists CPUs)",
                )

    def check_whole(self) -> None:
        """Raises InputError where the text ends in the middle of a series, or of a number."""
        lines, end = self.source.lines, self._end()
        if self.begun is not None and self.last_figure < self.begun[1]:
            line, number = self.begun
            raise self.source.error("cut off: no figures below", number, token=line)
        # All figures of these tables have a decimal point and digits behind it.
        if self.last_figure == end and not re.search(r"\.\d+$|-$", lines[end - 1].strip()):
            raise self.source.error("cut off in the last number", end, token=lines[end - 1].strip())
        for whole, row, least in ((_DELAYS, "delay", 2), (_MIXES, "mix", 1)):
            have = len(self.series)  # of the section in which the text ends
            # One delay alone may have been asked for.
            if least <= have < len(whole) and self.series == whole[:have]:
                raise self.source.error(
                    f"cut off: no row of {row} {whole[have]}",
                    end,
                    expected=f"{len(whole)} rows, as MLC prints by itself",
                )

    def _matrix_line(self, line: str, number: int) -> None:
        if match := _HEAD.fullmatch(line):
            self.table = Table(self._columns(match[1].split(), number))
            if self._reads("matrix of bandwidths"):
                if self.section in self.tables:
                    self._note(f"Several matrices of {self.section}: the last is given.")
                self.tables[self.section] = self.table
        elif self.table.columns and (match := _ROW.fullmatch(line)):
            self._row(int(match[1]), match[2].split(), number)
        elif self.table.columns and line.isdigit() and len(line) < 7:
            self._row(int(line), [], number)
        elif len(words := line.split()) == len(self.table.columns) + 1 and words[0] in {
            str(node) for node in self.table.columns
        }:  # a row, of which a word that is no number will be refused
            self._row(int(words[0]), words[1:], number)

    def _columns(self, names: list[str], number: int) -> tuple[int, ...]:
        if len(names) > _NODES_MAX:
            raise self.source.error(f"more than {_NODES_MAX} nodes", number)
        return tuple(map(int, names))

    def _row(self, node: int, values: list[str], number: int) -> None:
        if len(values) != len(self.table.columns):
            raise self.source.error(
                f"{len(values)} values in a row",
                number,
                expected=f"{len(self.table.columns)}, one per column",
            )
        if node in self.table.rows:
            raise self.source.error(f"node {node} is listed twice in a table", number)
        self.values_left -= len(values)
        if self.values_left < 0:
            raise self.source.error(f"more than {_VALUES_MAX:,} values", number)
        unit, dimension = ("ns", "time") if self.section == "latency" else ("MB/s", "bandwidth")
        self.table.rows.add(node)
        self.last_figure = number
        for home, text in zip(self.table.columns, values, strict=True):
            value = None if text == "-" else self._quantity(text, unit, dimension, number)
            if value is not None:
                self.table.values[node, home] = value
                self.table.lines[node, home] = number

    def _loaded_line(self, delay: str, values: list[str], number: int) -> None:
        if len(values) < 2:
            raise self.source.error(
                "cut off: a row of the loaded latencies",
                number,
                expected="delay, latency and bandwidth",
            )
        self.last_figure = number
        self.series.append(delay)
        latency = self._quantity(values[0], "ns", "time", number)
        bandwidth = self._quantity(values[1], "MB/s", "bandwidth", number)
        if latency is not None and bandwidth is not None and self._reads("loaded-latency curve"):
            self.loaded.append((LoadedPoint(bandwidth=bandwidth, latency=latency), number))

    def _reads(self, what: str) -> bool:
        """Whether this section's traffic is reads, which is what a description holds."""
        if self.traffic is None or "read-only" in self.traffic.lower():
            return True
        self._note(f"The {what} under '{self.traffic}' traffic is left out: not only reads.")
        return False

    def _quantity(self, text: str, unit: str, dimension: str, number: int) -> Quantity | None:
        if not _DECIMAL.fullmatch(text):
            raise self.source.error("no number", number, token=text, expected="such as 89.2")
        found = quantity(f"{text} {unit}", dimension)
        self.zeros += found is None
        return found

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)
