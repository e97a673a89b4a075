"""The immutable result of one run: a JSON head and, beside it, time series in Parquet.

Everything under ``provenance`` (wall time, host, version) may differ between two runs of the same
scenario and seed; everything else may not.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

import numpy as np

from ...inputs import InputError
from ..planes.outcome import ControlEvent, ResourceUse, Series, Why
from .figures import bottleneck, figures
from .record_files import LARGEST, SCHEMA, not_tiny, read_head, read_series, write_files

if TYPE_CHECKING:
    import pandas as pd
    from pydantic import BaseModel

FRAME = ("throughput", "latency_ns", "bandwidth_Bps", "utilisation", "energy_J")  # to_frame's


@dataclass(frozen=True)
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
    throughput: Mapping[str, float]
    operations: Mapping[str, float]
    """Operations done over the horizon."""
    bandwidth_Bps: Mapping[str, float | None]
    """``memory``: through all memory controllers; ``links``: over all directed links, None where
    links are not known; ``network``: out of all network adapters, where transactions ran."""
    resources: tuple[ResourceUse, ...]
    latency_ns: Mapping[str, Mapping[str, float | None] | None]
    why: Mapping[str, Why]
    energy_J: float | None
    control_events: tuple[ControlEvent, ...]
    confidence: Mapping[str, Any]
    model: Mapping[str, Any]
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
    ``throughput``, ``bandwidth_Bps``, ``energy_J`` shaped as here, each [low, high], in which it
    lies with probability ``level``, given all ``doubts`` (facts with a range, and what was assumed:
    ``name``, ``setting``, ``stream`` of their draws) and what one more replication may differ by;
    ``most``: the two that decide most (``name``), and between what each changes throughput
    (``low``, ``high``, relative); ``model``: by what ``factor`` the model may be wrong, either way,
    in each ``figure``, by so many ``rows`` of evidence from so many ``sources``; ``shifts``: by
    what each draw of the doubts multiplies each figure.
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
            f.name: _plain(getattr(self, f.name))
            for f in dataclasses.fields(self)
            if f.name not in ("series", "provenance")
        }
        return {
            "schema": SCHEMA,
            **head,
            "wall_s": self.provenance.get("wall_s"),
            "events": self.provenance.get("events"),
            "bottleneck": bottleneck(self),
            "provenance": _plain(self.provenance),
        }

    def to_frame(self, *, series: bool = False) -> pd.DataFrame:
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


def part_at(data: Any, path: Sequence[str]) -> Any:
    """What stands at ``path`` of nested mappings; None where nothing does."""
    for key in path:
        data = data.get(key) if isinstance(data, Mapping) else None
    return data


def load_record(path: str | Path) -> Record:
    """The Record in a folder (or its ``record.json``); raises InputError."""
    head, head_path = read_head(path)
    fields = _checked(head, head_path)
    return Record(**fields, series=read_series(head, head_path))


def _checked(head: dict[str, Any], path: Path) -> dict[str, Any]:
    """The fields of a Record, with the types of theirs."""
    from pydantic import ValidationError

    from .record_shape import check_shape

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
def _head_model() -> type[BaseModel]:
    """The fields of a Record but for its series, with their types, to check a head against."""
    from pydantic import create_model

    hints = get_type_hints(Record)
    fields: dict[str, Any] = {
        f.name: (hints[f.name], ...) for f in dataclasses.fields(Record) if f.name != "series"
    }
    return create_model("Head", **fields)


_PLAIN = frozenset((str, int, bool, type(None)))


def _plain(value: Any) -> Any:
    """As JSON values; what is not a finite number, or as large as none, becomes null."""
    if type(value) in _PLAIN:  # nearly all there is
        return value
    if type(value) is float:
        return not_tiny(value) if abs(value) < LARGEST else None
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if isinstance(value, np.ndarray):
        return [_plain(part) for part in value.tolist()]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return not_tiny(value) if abs(value) < LARGEST else None
    return value
