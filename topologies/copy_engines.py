"""Copy engines: units at hubs or nodes that copy memory while cores do other work."""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Annotated

from pydantic import Field

from ..inputs import DescriptionError, Strict
from ..inputs.names import Name
from ..inputs.quantities import Bandwidth, Duration, Size

End = Annotated[int, Field(strict=True, ge=0)] | Annotated[str, Field(min_length=1, max_length=64)]


class CopyEngineFacts(Strict):
    """One copy engine at each of ``at``: nodes (numbers), hubs (names, or patterns as ``harp*``).

    ``contexts``: copies that are under way at a time; further requests wait, first come first
    served. ``setup``: time of a processor before a thread's first request (system calls);
    ``request``: of a processor for each request, the look at its end among it. ``bandwidth`` of one
    engine: as much is read at most, and as much written. ``in_flight``: bytes that it has asked
    for at a time, over all its copies. ``largest``: of one request. ``non_coherent_bandwidth``: of
    copies that ask no other cache, where it makes such.
    """

    at: Annotated[tuple[End, ...], Field(min_length=1)]
    kind: Name = "copy-engine"
    contexts: Annotated[int, Field(strict=True, ge=1, le=4_096)]
    setup: Duration
    request: Duration
    bandwidth: Bandwidth
    in_flight: Size
    largest: Size | None = None
    non_coherent_bandwidth: Bandwidth | None = None
    source: str | None = None


@dataclass(frozen=True)
class CopyEngine:
    """One of them; ``vertex``: its place in ``Machine.vertices``. See CopyEngineFacts."""

    vertex: int
    kind: str
    contexts: int
    setup_s: float
    request_s: float
    bandwidth_Bps: float
    in_flight_bytes: float
    largest_bytes: float
    non_coherent_Bps: float | None


def build_copy_engines(
    listed: Sequence[CopyEngineFacts], nodes: Sequence[int], hubs: Sequence[str]
) -> tuple[CopyEngine, ...]:
    """Those of a machine with these ``nodes`` and ``hubs``, by vertex; raises DescriptionError."""
    found: dict[int, CopyEngine] = {}
    for k, facts in enumerate(listed):
        for j, end in enumerate(facts.at):
            for vertex in _vertices(end, nodes, hubs, ("copy_engines", k, "at", j)):
                if vertex in found:
                    raise DescriptionError(
                        ("copy_engines", k, "at", j), f"{end!r} has a copy engine already"
                    )
                found[vertex] = _engine(facts, vertex)
    return tuple(found[vertex] for vertex in sorted(found))


def _vertices(
    end: int | str, nodes: Sequence[int], hubs: Sequence[str], place: tuple[str | int, ...]
) -> list[int]:
    if isinstance(end, int):
        if end not in nodes:
            raise DescriptionError(place, f"there is no node {end}")
        return [list(nodes).index(end)]
    vertices = [len(nodes) + h for h, hub in enumerate(hubs) if fnmatchcase(hub, end)]
    if not vertices:
        known = ", ".join(hubs) or "a node"
        raise DescriptionError(place, f"no hub is called '{end}': expected {known}")
    return vertices


def _engine(facts: CopyEngineFacts, vertex: int) -> CopyEngine:
    free = facts.non_coherent_bandwidth
    return CopyEngine(
        vertex=vertex,
        kind=facts.kind,
        contexts=facts.contexts,
        setup_s=facts.setup.value,
        request_s=facts.request.value,
        bandwidth_Bps=facts.bandwidth.value,
        in_flight_bytes=facts.in_flight.value,
        largest_bytes=float("inf") if facts.largest is None else facts.largest.value,
        non_coherent_Bps=None if free is None else free.value,
    )
