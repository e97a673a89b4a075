"""Values in a machine file that have no unit: counts, nodes and runs of them, plain numbers.

The identity of a processor: the name and numbers by which it is found in the catalogue.
"""

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from ..inputs.facts import Fact as Fact
from ..inputs.facts import Factor
from ..inputs.names import Name
from ..inputs.yaml_file import Strict

NODES_MAX = 1_024
LINKS_MAX = 25_000  # 224 nodes all to all: a run takes five seconds of processor time
NODE_ID_MAX = 1_000_000


def _run(raw: Any) -> Any:
    """Text such as ``0-7``: the first and the last node of a run, both included."""
    found = re.fullmatch(r"(\d{1,20})-(\d{1,20})", raw, re.ASCII) if isinstance(raw, str) else None
    if found is None:
        raise ValueError("expected the first and the last node, such as 0-7")
    first, last = int(found[1]), int(found[2])
    if last < first:
        raise ValueError("expected first ≤ last")
    if last > NODE_ID_MAX:
        raise ValueError(f"expected nodes of at most {NODE_ID_MAX:,}")
    if last - first >= NODES_MAX:
        raise ValueError(f"expected at most {NODES_MAX:,} nodes")
    return raw


def _node_or_run(raw: Any) -> Any:
    return _run(raw) if isinstance(raw, str) else raw


def _bits(text: str) -> str:
    if not re.fullmatch(r"[01]{2,10}", text):
        raise ValueError("expected 2 to 10 bits, such as 011")
    return text


Count = Annotated[int, Field(strict=True, ge=1, le=1_000_000)]
NodeId = Annotated[int, Field(strict=True, ge=0, le=NODE_ID_MAX)]
NodeRun = Annotated[str, BeforeValidator(_run)]
NodeOrRun = Annotated[NodeId | str, BeforeValidator(_node_or_run)]
Bits = Annotated[str, AfterValidator(_bits)]
EndId = NodeId | Name  # a node by its number, a hub by its name
WRITE_TURNAROUND_MIN = -0.9  # a written line takes a tenth of one that is read
Turnaround = Annotated[float, Field(ge=WRITE_TURNAROUND_MIN, allow_inf_nan=False)]


class Misfit(Strict):
    """How far throughputs of a fitted engine are from the fit: of so many ``rows`` the standard
    deviation of the logarithm of measured over predicted, ``error``; what to say of it where that
    is much.
    """

    error: Factor
    rows: Count
    warning: Annotated[str, Field(max_length=1_000)] | None = None


class WriteTurnaround(Fact):
    """The same; negative where reads have a path of their own."""

    value: Turnaround
    range: tuple[Turnaround, Turnaround] | None = None


StallPart = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class StreamStall(Fact):
    """Between 0 and 1."""

    value: StallPart
    range: tuple[StallPart, StallPart] | None = None


Number = Annotated[int, Field(strict=True, ge=0, le=0xFFFFFFFF)]
Text = Annotated[str, Field(max_length=200)]


class ProcessorIdentity(Strict):
    """A processor's own words; no plane reads them.

    ``vendor``, ``family``, ``model``, ``stepping``: of CPUID (Itanium's likewise); ``implementer``,
    ``part``: of Arm's MIDR_EL1; ``pvr``: the upper half of POWER's version register. ``board``: who
    made the board or the virtual machine. ``packages``: in how many sockets a node's cores are.
    ``virtual``: a hypervisor is beneath.
    """

    model_name: Text | None = None
    vendor: Text | None = None
    family: Number | None = None
    model: Number | None = None
    stepping: Number | None = None
    implementer: Number | None = None
    part: Number | None = None
    pvr: Number | None = None
    board: Text | None = None
    packages: Annotated[int, Field(strict=True, ge=1, le=4_096)] = 1
    virtual: bool = False
