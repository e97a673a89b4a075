"""The shape of those parts of a record that are plain data: what their readers rely on.

A record that was changed by hand, or damaged, is refused as it is read. What ``Record`` types by
itself (throughput, resources, why …) is checked there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator


class _Part(BaseModel):
    """Read as it is, not converted: what is checked here is not what is read later."""

    model_config = ConfigDict(strict=True)


_Name = int | str
_Pair = Annotated[list[float], Field(min_length=2, max_length=2)]
_Ends = Annotated[list[_Name], Field(min_length=2, max_length=2)]
_Square = list[list[float]]
"""Of the machine's nodes; ``check_shape`` looks at its sides."""


class _Node(_Part):
    id: _Name
    cpus: list[int] = []


class _Hub(_Part):
    id: _Name


class _Link(_Part):
    ends: _Ends


class _Machine(_Part):
    name: str
    title: str | None = None
    nodes: list[_Node] = []
    groups: list[_Name | None] = []
    hubs: list[_Hub] = []
    links: list[_Link] = []


class _Variant(_Part):
    value: Any


class _Assumption(_Part):
    name: str
    value: Any
    unit: str
    source: str
    low: _Variant | None = None
    high: _Variant | None = None


class _Most(_Part):
    name: str
    low: float
    high: float


class _Doubt(_Part):
    name: str
    setting: str
    stream: str


class _ModelError(_Part):
    figure: str
    factor: float
    rows: int
    sources: int


class _Shifts(_Part):
    throughput: dict[str, list[float]] = {}
    bandwidth_Bps: dict[str, list[float]] = {}
    energy_J: list[float] | None = None


class _Uncertainty(_Part):
    level: float
    doubts: list[_Doubt]
    most: list[_Most]
    model: list[_ModelError] = []
    throughput: dict[str, _Pair]
    bandwidth_Bps: dict[str, _Pair] = {}
    energy_J: _Pair | None = None
    shifts: _Shifts


class _IdleSetting(_Part):
    setting: str
    throughput: dict[str, float] | None
    changes: list[str] | None
    instead: str | None


class _MemoryBytes(_Part):
    node: _Name
    read_bytes: float
    written_bytes: float


class _LinkBytes(_Part):
    name: str
    ends: _Ends
    data_bytes: float
    message_bytes: float
    bandwidth_Bps: float | None = None


class _Pairs(_Part):
    """``topologies/emulator/traffic.py`` says what each is."""

    reads_user: _Square
    reads_kernel: _Square
    writes_user: _Square
    writes_kernel: _Square
    read_misses_user: _Square
    read_misses_kernel: _Square
    write_misses_user: _Square
    write_misses_kernel: _Square
    transfers: _Square


class _Traffic(_Part):
    pairs: _Pairs
    memory: list[_MemoryBytes]
    links: list[_LinkBytes]
    regions: int
    levels: list[int]
    remote_share: float
    user_remote_share: float


class _Provenance(_Part):
    host: dict[str, Any] | None = None


class _Settings(_Part):
    system: dict[str, Any] | None = None


def _filled(part: Any) -> Any:
    """None of a part that is empty, as in records that have nothing to say there."""
    return None if part == {} else part


_Filled = BeforeValidator(_filled)


class _Parts(_Part):
    machine: _Machine
    provenance: _Provenance
    settings: _Settings
    assumptions: list[_Assumption] = []
    idle_settings: list[_IdleSetting] = []
    uncertainty: Annotated[_Uncertainty | None, _Filled] = None
    traffic: Annotated[_Traffic | None, _Filled] = None

    @model_validator(mode="after")
    def _squares_have_a_row_a_node(self) -> Self:
        nodes = len(self.machine.nodes)
        for name, rows in self.traffic.pairs if self.traffic is not None else ():
            if {nodes} != {len(rows), *map(len, rows)}:
                raise ValueError(f"traffic.pairs.{name}: not a row and a column for each node")
        return self


def check_shape(head: Mapping[str, Any]) -> None:
    """Raises pydantic's ValidationError."""
    _Parts.model_validate(head)
