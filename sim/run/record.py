"""The immutable result of one run: a JSON head and, beside it, time series in Parquet.

Everything under ``provenance`` (wall time, host, version) may differ between two runs of the same
scenario and seed; everything else may not.
"""

import dataclasses
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_type_hints

import numpy as np

from ...inputs import InputError
from ...inputs.fields import part_at as part_at
from ...inputs.grouping import by_key
from ..planes.outcome import ControlEvent, ResourceUse, Series, Why
from .record_files import LARGEST, SCHEMA, not_tiny, read_head, read_series, write_files

if TYPE_CHECKING:
    import pandas as pd
    from pydantic import BaseModel

FRAME = ("throughput", "latency_ns", "bandwidth_Bps", "utilisation", "energy_J")  # to_frame's


@dataclass(frozen=True, kw_only=True)
class Record:
    """Result of one run; dictionaries are by operation name. Series share the column ``time_s``.

    ``series``: one row per piece of time in which rates are constant, ``time_s`` its start and
    ``duration_s`` its length; the other columns are ``throughput/<operation>`` (per second),
    ``utilisation/<resource name>`` and ``imbalance/<object>`` (standard deviation of the
    partitions' accesses over their mean).
    A random run's figures are means over its replications (``why`` and ``control_events`` are those
    of the first), and so are its series, in which ``under_way/<operation>`` is how many are under
    way. ``confidence``: ``level`` (0.95) and the interval [low, high] of each figure, None where it
    is unknown: ``throughput``, ``bandwidth_Bps``, ``latency_ns``, ``energy_J`` as here;
    ``utilisation`` {kind: {mean, busiest}}; ``resources`` {name: {utilisation, Bps}};
    ``resolution_ns`` {operation: {p50 …}}: by how much a percentile may be off either way because
    latencies are counted in bins (its interval holds this).
    ``machine``: ``Machine.as_json()`` with ``title``, ``hubs`` [{id, kind, group}], ``groups`` (of
    the nodes, in their order) and each link's ``kind``.
    """

    scenario: str
    title: str
    scenario_hash: str
    plane: str
    policy: str
    seed: int
    horizon_s: float
    machine: Mapping[str, Any]
    settings: Mapping[str, Any]
    """The whole scenario as plain data, enough to run it again."""
    throughput: Mapping[str, float] = field(default_factory=dict)
    operations: Mapping[str, float] = field(default_factory=dict)
    """Operations done over the horizon."""
    bandwidth_Bps: Mapping[str, float | None] = field(default_factory=dict)
    """``memory``: through all memory controllers; ``links``: over all directed links, None where
    links are not known; ``network``: out of all network adapters, where transactions ran."""
    resources: tuple[ResourceUse, ...] = ()
    latency_ns: Mapping[str, Mapping[str, float | None] | None] = field(default_factory=dict)
    why: Mapping[str, Why] = field(default_factory=dict)
    energy_J: float | None = None
    control_events: tuple[ControlEvent, ...] = ()
    confidence: Mapping[str, Any] = field(default_factory=dict)
    model: Mapping[str, Any] = field(default_factory=dict)
    """What the model saw on the way: cache hit rates, line states, bytes per operation …"""
    warnings: tuple[str, ...]
    """What the prediction leans on that is uncertain or derived."""
    provenance: Mapping[str, Any]
    """``wall_s``, ``events``, ``version``, ``host``, ``created``; of a random run
    ``events_per_s``, per second of one processor, where they are simulated."""
    replications: int = 0
    """Runs with independent draws that the figures are means of; 0 where nothing is random."""
    warm_up_s: float = 0.0
    """What is left out of the figures at the beginning of each run; series begin at time 0."""
    policies: Mapping[str, str] = field(default_factory=dict)
    """The name of the policy of each family; ``policy`` has them all in one line."""
    replicates: Mapping[str, Any] = field(default_factory=dict)
    """The value of each replication, in a list, by figure, shaped as ``confidence``."""
    uncertainty: Mapping[str, Any] = field(default_factory=dict)
    """How far the figures may be off; empty where it was left out, and of what was measured:
    ``throughput``, ``latency_ns`` (the mean), ``bandwidth_Bps``, ``energy_J`` shaped as here, each
    [low, high], in which it lies with probability ``level``, given all ``doubts`` (facts with a
    range, and what was assumed: ``name``, ``setting``, ``stream`` of their draws) and what one more
    replication may differ by;
    ``most``: the two that decide most (``name``), and between what each changes throughput
    (``low``, ``high``, relative); ``model``: by what ``factor`` the model may be wrong, either way,
    in each ``figure``, by so many ``rows`` of evidence from so many ``sources``; ``shifts``: by
    what each draw of the doubts multiplies each figure; ``offer``: what open clients offer, and
    what could be done, by draw, in parts of what is; ``left_out``: families of policies whose later
    orders the draws leave out.
    """
    idle_settings: tuple[Mapping[str, Any], ...] = ()
    """Settings of the command line that change throughput by less than 2%: ``setting``
    (``path=value``), ``throughput`` (by operation, relative to the run without it), ``changes``
    (what else differs, in words: latency, use of resources, traffic, energy), ``instead`` (what
    binds). ``throughput`` is None where it was not looked at, as runs are long."""
    assumptions: tuple[Mapping[str, Any], ...] = ()
    """What the run counted with though nobody stated it: ``name``, ``value`` (a number in ``unit``,
    or words), ``source``, ``settings`` (paths that would state it), ``low`` and ``high``: the ends
    of its range where the machine file states one (``ranged``), else a tenth less and more, or what
    else it may well be, as {``value``; ``throughput``, ``power``: relative change that the flow
    plane predicts for the first moments}, None where nothing else can be stated. Without effects
    where they were not asked for."""
    traffic: Mapping[str, Any] = field(default_factory=dict)
    """Bytes that were counted in the emulator, empty of other planes, which tell rates.
    ``span``: ``command``, or ``regions`` that it marked (so many); ``pairs`` {name: square list}
    in the order of the machine's nodes, row the processor's (``topologies/emulator/traffic.py``
    says what each is); ``found`` [node][level], the last past the last level; ``memory`` [{node,
    read_bytes, written_bytes}]; ``links`` [{name, ends, data_bytes, message_bytes,
    bandwidth_Bps}]; ``remote_share``: of the last level's misses, those of other nodes' memory;
    ``user_remote_share``: the same without the kernel's."""
    series: Series = field(default_factory=dict, compare=False)

    def interval(self, *path: str) -> list[float] | None:
        """The interval [low, high] of the figure at ``path`` of ``confidence``; None if unknown."""
        found = part_at(self.confidence, path)
        if not isinstance(found, (list, tuple)) or len(found) != 2:
            return None
        return list(found) if all(isinstance(bound, (int, float)) for bound in found) else None

    def as_json(self) -> dict[str, Any]:
        """The stable JSON form of ``numatwin run --json`` (no series).

        ``bottleneck``: of the first operation. ``resource`` binds it; more of ``gain_of`` would
        bring most, ``gain_per_unit`` in relative throughput per relative addition.
        """
        head = {
            f.name: plain_values(getattr(self, f.name))
            for f in dataclasses.fields(self)
            if f.name not in ("series", "provenance")
        }
        return {
            "schema": SCHEMA,
            **head,
            "wall_s": self.provenance.get("wall_s"),
            "events": self.provenance.get("events"),
            "bottleneck": bottleneck(self),
            "provenance": plain_values(self.provenance),
        }

    def to_frame(self, *, series: bool = False) -> "pd.DataFrame":
        """A data frame of one row, a column for each main figure by its path, such as
        ``throughput.lookup``, beside scenario, machine, policy, plane and seed; with ``series``
        its time series instead, a row a span of time. Needs pandas.
        """
        import pandas as pd

        columns = {name: list(column) for name, column in self.series.items()}
        return pd.DataFrame(columns) if series else pd.DataFrame([self.figures()])

    def figures(self) -> dict[str, Any]:
        """The main figures by their path, such as ``throughput.lookup``, with the bounds of their
        intervals (``….low``, ``….high``) where there are any; None where one is unknown.
        """
        row: dict[str, Any] = {
            "scenario": self.scenario,
            "machine": self.machine.get("name"),
            "policy": self.policy,
            "plane": self.plane,
            "seed": self.seed,
            "horizon_s": self.horizon_s,
        }
        for path, value in figures(self, FRAME):
            if path[-1] == "mean" and path[0] == "utilisation":
                continue
            name = ".".join(path)
            row[name] = value
            if (between := self.interval(*path)) is not None:
                row[f"{name}.low"], row[f"{name}.high"] = between
        return row | {"bottleneck.resource": bottleneck(self)["resource"]}

    def _repr_html_(self) -> str:
        """Its main figures, in a notebook."""
        rows = [("scenario", self.title or self.scenario), ("machine", self.machine.get("name"))]
        rows += [("plane", self.plane), ("policy", self.policy)]
        for name, rate in self.throughput.items():
            between = self.interval("throughput", name)
            text = f"{rate:,.4g}" + (f" [{between[0]:,.4g}, {between[1]:,.4g}]" if between else "")
            rows.append((f"{name}/s", text))
        rows += [(f"{name}: limited by", why.resource) for name, why in self.why.items()]
        cells = (f"<tr><th>{escape(n)}</th><td>{escape(str(v))}</td></tr>" for n, v in rows)
        return f"<table>{''.join(cells)}</table>"

    def save(self, folder: str | Path) -> Path:
        """Writes head and series into ``folder``, both or neither; returns the folder."""
        return write_files(Path(folder), self.as_json(), self.series, len(self.resources))


Place = tuple[str, ...]  # of a figure
LATENCIES = {"mean": "mean latency", "p50": "p50", "p99": "p99", "p999": "p99.9"}
"""What is known of a latency, with its title."""


@dataclass(frozen=True)
class Kind:
    """Of figures whose paths begin with its name: where they stand in a Record, as a number, a
    text, or such below names (``of``); their ``unit``, which direction is ``better`` (None: it
    depends), how many ``names`` follow (None: any number), which ``last`` ones there are, and the
    ``dimension`` that a bound is said in, of which SI's unit is ``per_si`` of theirs.
    """

    of: Callable[[Record], Any]
    unit: str = ""
    better: Literal["more", "less"] | None = None
    names: int | None = None
    last: tuple[str, ...] = ()
    dimension: str | None = None
    per_si: float = 1.0


KINDS: Mapping[str, Kind] = {
    "throughput": Kind(lambda r: r.throughput, "/s", "more", 1, (), "rate"),
    "operations": Kind(lambda r: r.operations, names=1),
    "latency_ns": Kind(
        lambda r: {name: known for name, known in r.latency_ns.items() if known is not None},
        *("ns", "less", 2, (*LATENCIES,), "time", 1e9),
    ),
    "bandwidth_Bps": Kind(
        lambda r: r.bandwidth_Bps, "B/s", None, 1, ("memory", "links", "network"), "bandwidth"
    ),
    "energy_J": Kind(lambda r: r.energy_J, "J", "less", 0),
    "power_W": Kind(lambda r: power_W(r), "W", "less", 0, (), "power"),
    "model": Kind(lambda r: r.model),
    "warm_up_s": Kind(lambda r: r.warm_up_s, names=0),
    "utilisation": Kind(lambda r: _used(r), "1", None, 2, ("mean", "busiest")),
    "resources": Kind(
        lambda r: {u.name: {"utilisation": u.utilisation, "Bps": u.Bps} for u in r.resources}
    ),
    "bottleneck": Kind(
        lambda r: bottleneck(r), names=1, last=("resource", "gain_of", "gain_per_unit")
    ),
    "traffic": Kind(lambda r: _traffic(r)),
}


def figures(record: Record, roots: Iterable[str]) -> Iterator[tuple[Place, Any]]:
    """All figures of the kinds ``roots`` with their paths: numbers, texts, None where one is not
    known.
    """
    for root in roots:
        yield from _flat((root,), KINDS[root].of(record))


def unit_of(path: str) -> str:
    """The unit of the figure at a path joined by dots; empty where it has none."""
    root, _, rest = path.removesuffix(".low").removesuffix(".high").partition(".")
    if root == "resources":
        return {"utilisation": "1", "Bps": "B/s"}.get(rest.rpartition(".")[2], "")
    if root == "traffic":
        return "B" if rest.endswith("bytes") else "1"
    return KINDS[root].unit if root in KINDS else ""


def better(root: str) -> Literal["more", "less"] | None:
    """Which direction is better of the kind of figures; None where it depends."""
    return KINDS[root].better if root in KINDS else None


def counted_s(record: Record) -> float:
    """The time that a record's sums, such as its energy, are over."""
    return record.horizon_s - record.warm_up_s


def power_W(record: Record) -> float | None:
    """Its energy over the time that this is of."""
    time_s = counted_s(record)
    return record.energy_J / time_s if record.energy_J is not None and time_s > 0 else None


def _used(record: Record) -> dict[str, dict[str, float]]:
    """By kind of resource, its mean use and that of the busiest."""
    by_kind = by_key((use.kind, use.utilisation) for use in record.resources)
    return {
        kind: {"mean": math.fsum(uses) / len(uses), "busiest": max(uses)}
        for kind, uses in by_kind.items()
    }


def bottleneck(record: Record) -> dict[str, Any]:
    """What binds the first operation, and what more of it would bring."""
    why = next(iter(record.why.values()), None)
    best = why.gains[0] if why is not None and why.gains else None
    return {
        "resource": None if why is None else why.resource,
        "gain_of": None if best is None else best.resource,
        "gain_per_unit": None if best is None else best.gain_per_10pct / 0.1,
    }


def _traffic(record: Record) -> dict[str, float | None]:
    """Bytes through all memory controllers and over all links: as counted, or the rate over time.

    ``remote_share``: of the lines that cores miss, those of other nodes' memory; unknown of rates.
    """
    counted = record.traffic
    memory_bytes: float | None
    link_bytes: float | None
    if counted:
        memory_bytes = math.fsum(m["read_bytes"] + m["written_bytes"] for m in counted["memory"])
        sizes = [one["data_bytes"] + one["message_bytes"] for one in counted["links"]]
        link_bytes = math.fsum(sizes) if sizes else None
    else:
        rates = (record.bandwidth_Bps.get(name) for name in ("memory", "links"))
        time_s = counted_s(record)
        memory_bytes, link_bytes = (None if rate is None else rate * time_s for rate in rates)
    return {
        "memory_bytes": memory_bytes,
        "link_bytes": link_bytes,
        "links_per_memory": link_bytes / memory_bytes if memory_bytes and link_bytes else None,
        "remote_share": counted.get("remote_share") if counted else None,
    }


def _flat(path: Place, part: Any) -> Iterator[tuple[Place, Any]]:
    if isinstance(part, float):
        yield path, part if math.isfinite(part) else None
    elif isinstance(part, Mapping):
        for name, inner in part.items():
            yield from _flat((*path, str(name)), inner)
    elif isinstance(part, (list, tuple)):
        for index, inner in enumerate(part):
            yield from _flat((*path, str(index)), inner)
    else:
        yield path, part


def load_record(path: str | Path) -> Record:
    """Load the Record in a folder.

    Parameters
    ----------
    path : str or Path
        The folder that a run wrote, or the ``record.json`` in it.

    Returns
    -------
    Record

    Raises
    ------
    InputError
        If there is no record, or it is damaged.
    """
    head, head_path = read_head(path)
    fields = _checked(head, head_path)
    return Record(**fields, series=read_series(head, head_path))


def _checked(head: dict[str, Any], path: Path) -> dict[str, Any]:
    """The fields of a Record, with the types of theirs."""
    from pydantic import ValidationError

    from .record_files import check_shape

    try:
        # As JSON, of which pydantic makes tuples, but no numbers of strings. Of half a surrogate
        # pair, which a name of a foreign file may hold, a question mark remains.
        text = json.dumps(head, ensure_ascii=False).encode("utf-8", "replace")
        checked = _head_model().model_validate_json(text, strict=True)
        check_shape(head)
    except ValidationError as failure:
        first = failure.errors()[0]
        place = ".".join(map(str, first["loc"]))
        message = f"{place}: {first['msg'][:1].lower()}{first['msg'][1:]}"
        if first["type"] == "missing":
            message = f"missing field '{place}'"
        raise InputError(f"not a record: {message}", str(path)) from None
    return {name: getattr(checked, name) for name in type(checked).model_fields}


@cache
def _head_model() -> "type[BaseModel]":
    """The fields of a Record but for its series, with their types, to check a head against."""
    from pydantic import create_model

    hints = get_type_hints(Record)
    fields: dict[str, Any] = {
        f.name: (hints[f.name], ...) for f in dataclasses.fields(Record) if f.name != "series"
    }
    return create_model("Head", **fields)


_PLAIN = frozenset((str, int, bool, type(None)))


def plain_values(value: Any) -> Any:
    """As JSON values; what is not a finite number, or as large as none, becomes null."""
    if type(value) in _PLAIN:  # nearly all there is
        return value
    if type(value) is float:
        return not_tiny(value) if abs(value) < LARGEST else None
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain_values(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain_values(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_values(part) for part in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return plain_values(value.tolist())
    return value
