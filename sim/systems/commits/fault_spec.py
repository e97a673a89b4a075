"""What fails in a cluster that commits transactions, and when: a scenario's ``system.faults``."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import Field

from ....inputs import DescriptionError, Strict
from ....inputs.quantities import Duration, DurationOrZero, Rate, format_quantity
from ..fields import Count, Whole
from .parameters import RSI_STEPS, TWO_PHASE_STEPS

SHOWN = 16  # nodes, of those that there are
Ids = Annotated[tuple[Whole, ...], Field(min_length=1)]


class TimedFault(Strict):
    """A fault at the time ``at``; or again and again, after exponential times of the ``rate`` drawn
    from the named ``stream``, each counted from the end of the one before.
    """

    NODES: ClassVar[str | None] = None
    """The field that names nodes."""
    SUBJECT: ClassVar[str]
    """What fails, in words, of a ``fault`` and its ``nodes``."""

    kind: str
    at: DurationOrZero | None = None
    rate: Rate | None = None
    stream: str | None = None

    def check(self, known: Sequence[int], architecture: str) -> None:
        """Raises DescriptionError, its place counted from the fault."""
        if (self.at is None) == (self.rate is None):
            raise DescriptionError((), "expected 'at', a time, or 'rate' with its 'stream'")
        if self.rate is not None and not self.stream:
            raise DescriptionError(
                ("rate",), "a rate without a stream: expected 'stream', its name"
            )
        if self.rate is None and self.stream is not None:
            raise DescriptionError(("stream",), "a stream without a rate: expected 'rate'")
        for index, node in enumerate(self.nodes):
            if node not in known:
                alone = self.NODES in ("server", "node")
                ids = ", ".join(map(str, sorted(known)[:SHOWN])) + " …" * (len(known) > SHOWN)
                raise DescriptionError(
                    (str(self.NODES), *(() if alone else (index,))),
                    f"there is no {self.NODES if alone else 'node'} {node} in this run: "
                    f"expected one of {ids}",
                )

    @property
    def nodes(self) -> tuple[int, ...]:
        """Those that it names."""
        named: int | tuple[int, ...] = getattr(self, self.NODES) if self.NODES else ()
        return (named,) if isinstance(named, int) else named

    @property
    def subject(self) -> str:
        """What fails, in words."""
        return self.SUBJECT.format(fault=self, nodes=", ".join(map(str, self.nodes)))

    @property
    def effect(self) -> str:
        """What becomes of it, in words."""
        return "stops"


class LastingFault(TimedFault):
    """For ``lasts``, or to the end of the run."""

    lasts: Duration | None = None

    def check(self, known: Sequence[int], architecture: str) -> None:
        super().check(known, architecture)
        if self.rate is not None and self.lasts is None:
            raise DescriptionError(("rate",), "a rate of faults that last: expected 'lasts'")


class ServerFault(LastingFault):
    """All servers on node ``server`` stop; what their threads were at is lost, their logs are not.
    They are back after ``lasts``, or never; with what their ``memory`` held, or without.
    """

    NODES = "server"
    SUBJECT = "node {nodes}"

    kind: Literal["stop"]
    server: Whole
    memory: Literal["kept", "lost"] = "kept"


class PathFault(LastingFault):
    """Paths lose a part ``loss`` of their messages, all by default; or messages take ``slow`` times
    as long; or a part ``late`` of them comes later, by ``delay``. To the end of the run, or for
    ``lasts``. Over sockets, who waits for longer than the transport's timeout sends again, on
    another connection; then the receiver gets both, and drops the late one.
    """

    loss: Annotated[float, Field(strict=True, gt=0, le=1, allow_inf_nan=False)] | None = None
    slow: Annotated[Count, Field(ge=2, le=1_000_000)] | None = None
    late: Annotated[float, Field(strict=True, gt=0, lt=1, allow_inf_nan=False)] | None = None
    delay: Duration | None = None

    def check(self, known: Sequence[int], architecture: str) -> None:
        super().check(known, architecture)
        if (self.late is None) != (self.delay is None):
            given, other = ("late", "delay") if self.delay is None else ("delay", "late")
            raise DescriptionError((given,), f"messages that are late: expected '{other}', too")

    @property
    def is_down(self) -> bool:
        """Whether nothing passes."""
        return self.loss == 1 or (self.loss is None and self.slow is None and self.late is None)

    def sides(self, nodes: tuple[int, ...]) -> tuple[set[int], set[int]]:
        """Nodes between which paths fail, of those in use: these, and all others."""
        return {*self.nodes}, {*nodes} - {*self.nodes}

    @property
    def effect(self) -> str:
        if self.is_down:
            return "is down"
        parts = [f"loses {self.loss:.4g} of its messages"] if self.loss else []
        parts += [f"takes {self.slow} times as long"] if self.slow else []
        if self.late and self.delay:
            delay = format_quantity(self.delay.value, "time")
            parts.append(f"delays {self.late:.4g} of its messages by {delay}")
        return ", ".join(parts)


class LinkFault(PathFault):
    """The path between two nodes."""

    NODES = "between"
    SUBJECT = "the path between nodes {fault.between[0]} and {fault.between[1]}"

    kind: Literal["link"]
    between: Annotated[tuple[Whole, Whole], Field()]

    def check(self, known: Sequence[int], architecture: str) -> None:
        super().check(known, architecture)
        if self.between[0] == self.between[1]:
            raise DescriptionError(("between", 1), "expected another node than the first")

    def sides(self, nodes: tuple[int, ...]) -> tuple[set[int], set[int]]:
        return {self.between[0]}, {self.between[1]}


class PortFault(PathFault):
    """All paths of a node, at its adapter."""

    NODES = "node"
    SUBJECT = "the adapter of node {nodes}"

    kind: Literal["port"]
    node: Whole


class PartitionFault(PathFault):
    """Paths between the nodes ``group`` and all others."""

    NODES = "group"
    SUBJECT = "the network around nodes {nodes}"

    kind: Literal["partition"]
    group: Ids


class ClockFault(LastingFault):
    """The clock of a node is ``ahead``, and gains ``drift`` a second meanwhile (below 0: loses),
    0.0002 where that is 200 ppm. RSI's remedies go by clocks: leases by those of
    clients, a claim that holds up by the timestamp server's.
    """

    NODES = "node"
    SUBJECT = "the clock of node {nodes}"

    kind: Literal["clock"]
    node: Whole
    ahead: Duration | None = None
    drift: Annotated[float, Field(strict=True, ge=-1, le=1, allow_inf_nan=False)] = 0.0

    def check(self, known: Sequence[int], architecture: str) -> None:
        super().check(known, architecture)
        if architecture != "rsi":
            why = "2PC goes by no clock: its timestamps are counted"
            raise DescriptionError(("kind",), f"{why}; expected architecture rsi")
        if not self.drift_ppm and self.ahead is None:
            raise DescriptionError(("kind",), "a clock that is right: expected ahead or drift")

    @property
    def drift_ppm(self) -> int:
        """In parts per million."""
        return round(self.drift * 1e6)

    @property
    def effect(self) -> str:
        parts = [f"is {format_quantity(self.ahead.value, 'time')} ahead"] if self.ahead else []
        parts += [f"drifts by {self.drift_ppm} ppm"] if self.drift_ppm else []
        return ", ".join(parts)


class ClientFault(TimedFault):
    """Client number ``client`` stops for good; with a ``step``, as it next comes to that one:
    ``snapshot``, ``read``; ``lock``, ``write``, ``bit`` of RSI; ``commit`` of 2PC.
    """

    SUBJECT = "client {fault.client}"

    kind: Literal["client"]
    client: Whole
    step: str | None = None

    def check(self, known: Sequence[int], architecture: str) -> None:
        super().check(known, architecture)
        if self.rate is not None:
            raise DescriptionError(("rate",), "a client dies once: expected 'at'")
        steps = RSI_STEPS if architecture == "rsi" else TWO_PHASE_STEPS
        if self.step is not None and self.step not in steps:
            found = f"'{self.step}' is no step of {architecture}"
            raise DescriptionError(("step",), f"{found}: expected one of {', '.join(steps)}")

    @property
    def effect(self) -> str:
        return "dies" if self.step is None else f"is to die at its next {self.step}"


Fault: TypeAlias = Annotated[
    ServerFault | LinkFault | PortFault | PartitionFault | ClockFault | ClientFault,
    Field(discriminator="kind"),
]


class Retransmission(Strict):
    """When a transport sends again what was lost: after ``timeout``, ``growth`` times as long with
    each further loss, up to ``longest``. After so many ``retries`` in vain the connection counts as
    broken (a queue pair in error), and ``reconnect`` is what another one takes. A server that had
    stopped is asked again after the same times.
    """

    timeout: Duration
    growth: Annotated[Count, Field(le=16)] = 1
    longest: Duration | None = None
    retries: Annotated[Whole, Field(le=1_000)] = 7
    reconnect: DurationOrZero | None = None


# TCP: Linux's TCP_RTO_MIN, TCP_RTO_MAX and tcp_retries2 (Documentation/networking/ip-sysctl).
# Reliable RDMA: 4.096 us * 2^14 and 7 retries, the defaults of perftest (InfiniBand Architecture
# Specification, volume 1, 9.7.6.1.3: the local ACK timeout). Neither tells what a new connection
# takes; a queue pair takes milliseconds (an estimate).
VERBS = Retransmission.model_validate({"timeout": "67.1 ms", "retries": 7, "reconnect": "5 ms"})
SOCKETS = Retransmission.model_validate(
    {"timeout": "200 ms", "growth": 2, "longest": "120 s", "retries": 15, "reconnect": "1 ms"}
)
