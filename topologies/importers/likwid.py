"""The text that ``likwid-topology`` prints: hardware threads, caches, NUMA domains."""

import re

from ..schema import MachineDescription
from ..schema_types import ProcessorIdentity
from .inventory import CacheFacts, Core, Inventory, NodeFacts, clock_of_model, machine_title
from .source import Source

_BEGINNING = re.compile(r"^(?:Hardware Thread Topology|HWThread\s+Thread\s+Core\b)", re.M)
_FIELD = re.compile(r"([A-Z][\w ]{2,30}):\s*(.*)", re.ASCII)
_GROUP = re.compile(r"\(((?: *\d{1,5}\b)* *)\)", re.ASCII)
_SIZE = re.compile(r"(\d{1,7}(?:\.\d{1,6})?) ([kMGT]?)B", re.ASCII)
_SHIFTS = {"": 0, "k": 10, "M": 20, "G": 30, "T": 40}  # its kB are 1,024 B


def recognises(source: Source) -> bool:
    """Whether the table of hardware threads is there."""
    return source.tree is None and _BEGINNING.search(source.head_text()) is not None


def read(source: Source) -> MachineDescription:
    """The machine in the text; raises InputError."""
    found = Inventory(source.machine, source=f"likwid-topology, {source.label()}")
    columns: list[str] = []
    threads: dict[tuple[str, ...], set[int]] = {}
    model, level, size, domain = "", 0, 0, 0
    sizes: dict[int, int] = {}
    cpus: dict[int, frozenset[int]] = {}
    distances: dict[int, list[int]] = {}
    for number, line in enumerate(source.lines, 1):
        words = line.split()
        if words[:2] == ["HWThread", "Thread"]:
            columns = words
        elif columns and len(words) >= len(columns) - 1 and all(map(str.isdigit, words[:4])):
            row = dict(zip(columns, words, strict=False))
            if "Core" not in row or "Socket" not in row or len(words[0]) > 6:
                raise source.error("no row of hardware threads", number, token=line.strip())
            threads.setdefault((row["Socket"], row["Core"]), set()).add(int(words[0]))
        elif match := _FIELD.fullmatch(line.strip()):
            name, text = match[1], match[2].strip()
            groups = [frozenset(map(int, g.split())) for g in _GROUP.findall(text)]
            if name == "CPU name":
                model = re.sub(r"\s+", " ", text)[:200]
            elif name in ("Level", "Domain"):
                if not re.fullmatch(r"\d{1,4}", text, re.ASCII):
                    raise source.error(f"no {name.lower()}", number, token=text)
                level, domain = (int(text), domain) if name == "Level" else (level, int(text))
            elif name in ("Size", "Total memory"):
                amount = _SIZE.fullmatch(text)
                if amount is None:
                    raise source.error("no size", number, token=text, expected="such as '32 kB'")
                size = int(float(amount[1]) * (1 << _SHIFTS[amount[2]]))
                if name == "Total memory":
                    sizes[domain] = size
            elif name == "Cache groups":
                found.caches += [CacheFacts(level, size, None, group) for group in groups]
            elif name == "Processors" and groups:
                cpus[domain] = groups[0]
            elif name == "Distances":
                distances[domain] = [int(d) for d in re.findall(r"\d{1,3}", text)]
    if not threads or not cpus:
        raise source.error("cut off: no hardware threads or NUMA domains", expected="all sections")
    identity = ProcessorIdentity(model_name=model) if model else None
    found.cores = [
        Core(frozenset(own), f"package{socket}", clock_of_model(model), identity)
        for (socket, _), own in threads.items()
    ]
    found.nodes = [NodeFacts(node, own, sizes.get(node)) for node, own in sorted(cpus.items())]
    if all(len(distances.get(node, ())) == len(cpus) for node in cpus):  # in the domains' order
        found.slit = {
            (a, b): d for a in cpus for b, d in zip(sorted(cpus), distances[a], strict=True)
        }
    found.title = machine_title([model], len({key[0] for key in threads}), len(cpus))
    return found.description()
