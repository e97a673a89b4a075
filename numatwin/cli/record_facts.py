"""A record as text: rates, use, what limits each operation; of random runs with their intervals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..reports.intervals import ways
from ..reports.words import listing
from ..sim.run.comparison import has_intervals, level_of, settled
from ..sim.run.limit import limit_in_words, limits, together
from ..sim.run.record import LATENCIES, part_at
from .output import Part, below, facts, latency, number, percent, table, whole_table

if TYPE_CHECKING:
    from ..sim.run.record import Record

RESOURCES_SHOWN, GAINS_SHOWN = 8, 4

NOTHING_KNOWN = "no figure of this kind is known"

Written = Callable[[float | None], str]


def record_parts(record: Record) -> Iterator[Part]:
    """What ran, how fast, the busiest resources, and why it is no faster."""
    yield facts(_head(record))
    if record.traffic:
        yield from traffic_parts(record)
        return
    yield from (f"\nNote: {idle_setting(idle)}" for idle in record.idle_settings)
    yield from _operations(record)
    yield from _resources(record)
    yield from _why(record)
    yield from below([f"Note: {warning}" for warning in record.warnings])


def idle_setting(idle: Mapping[str, Any]) -> str:
    """A setting that changes little or nothing that is asked of the run, in one line."""
    said, change = f"--set {idle['setting']}", idle["throughput"]
    if change is None:
        return f"{said}: whether it changes the prediction was not looked at, as runs are long"
    little = [f"{name} {100 * by:+.2g}%" for name, by in change.items() if by]
    others = " and ".join(idle["changes"])
    if little:
        found = f"changes throughput by no more than {', '.join(little)}"
    elif others:
        found = f"throughput is the same without it; what differs is {others}"
    else:
        found = "the prediction is the same without it"
    return f"{said}: {found}" + (f"; limited by {idle['instead']}" if idle["instead"] else "")


def _head(record: Record) -> Iterator[tuple[str, str | None]]:
    wall_s = record.provenance.get("wall_s")
    kinds = Counter(event.kind for event in record.control_events)
    yield "scenario", ": ".join(filter(None, (record.scenario, record.title)))
    yield "machine", str(record.machine["name"])
    yield "uncertain", _likely(record) if record.uncertainty else None
    yield "policy", None if record.traffic else record.policy
    yield "operator", _operators(record)
    lasts = f", {latency(record.horizon_s * 1e9)}" if record.horizon_s else ""
    took = f" in {latency(wall_s * 1e9)}" if isinstance(wall_s, float) else ""
    yield "plane", record.plane + lasts + took
    yield "replications", _replications(record)
    yield "events", _events(record)
    yield from ((title, _traffic(record, name)) for title, name in ways(record).items())
    yield "energy", _energy(record)
    events = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    yield "control events", events or None
    yield from (("around faults", text) for text in _around_faults(record))


def _around_faults(record: Record) -> Iterator[str]:
    """What faults cost each operation, and when it recovered."""
    for operation, model in record.model.items():
        found = model.get("availability") if isinstance(model, dict) else None
        if not found:
            continue
        before, during = (number(found[key], "/s") for key in ("before_per_s", "during_per_s"))
        back = found["recovery_s"]
        after = f" {latency(back * 1e9)} after" if back else ""
        ended = f"until{after} the last of them"
        if back is None:
            ended = "to the end of the run: it does not recover"
        yield f"{operation} {before} before, then {during} {ended}"


def _operators(record: Record) -> str | None:
    """Of joins and aggregations: what queries were done by, with their shares where several."""
    used: Counter[str] = Counter()
    for seen in record.model.values():
        if isinstance(seen, dict):
            used.update(seen.get("queries_by_operator", {}))
    total = used.total()
    shares = [(name, count / total) for name, count in used.most_common() if count]
    if len(shares) < 2:
        return shares[0][0] if shares else None
    return ", ".join(f"{name} {percent(share)}" for name, share in shares)


def _likely(record: Record) -> str:
    """What makes throughput uncertain; of random runs with the interval, which the table of others
    has.
    """
    found = record.uncertainty
    count, runs = len(found["doubts"]), record.replications
    most = (f"{one['name']} ({one['low']:+.0%} to {one['high']:+.0%})" for one in found["most"])
    causes = [f"{runs} replications differ"] if runs > 1 else []
    if count:
        named = f", most of all {' and '.join(most)}" if found["most"] else ""
        causes.append(f"{count} facts and assumptions may be off{named}")
    texts = [*([" and ".join(causes)] if causes else []), *_model_texts(record)]
    if later := found.get("left_out"):
        texts.append(f"what policies of {listing(later)} change later is left out")
    text = "; ".join(texts)
    if record.replications:  # the table has the interval of replications alone
        text = f"{_ranges(found)} with {found['level']:.0%}, as {text}"
    return text


def _model_texts(record: Record) -> list[str]:
    """What the model itself may be wrong by in throughput, and how that is known."""
    found = [
        one
        for one in record.uncertainty.get("model", ())
        if one["figure"].startswith("throughput.")
    ]
    texts, factors = [], dict.fromkeys(round(one["factor"], 2) for one in found)
    for factor in factors:
        alike = [one for one in found if round(one["factor"], 2) == factor]
        names = listing(one["figure"].partition(".")[2] for one in alike)
        of = f" of {names}" if len(factors) > 1 else ""
        rows = alike[0]["rows"]
        known = f"{rows} figures of this kind are known" if rows else NOTHING_KNOWN
        texts.append(f"the model{of} may be off by ×{factor:.2f} ({known}: numatwin trust)")
    return texts


def _ranges(uncertainty: Mapping[str, Any]) -> str:
    """Throughput and mean latency of the operations that are done; of all where none is."""
    bounds = uncertainty["throughput"]
    done = {name: ends for name, ends in bounds.items() if any(ends)} or bounds
    texts = []
    for operation, ends in done.items():
        texts.append(f"{operation} from {' to '.join(number(end, '/s') for end in ends)}")
        if waits := part_at(uncertainty, ("latency_ns", operation, "mean")):
            texts.append(f"its mean latency from {' to '.join(map(latency, waits))}")
    return ", ".join(texts)


def _replications(record: Record) -> str | None:
    """``5, the first 3.8 ms left out; intervals are 95%``, where any are known.

    None where nothing is random.
    """
    if not record.replications:
        return None
    left_out = f"the first {latency(record.warm_up_s * 1e9)}" if record.warm_up_s else "nothing"
    text = f"{record.replications}, {left_out} left out"
    if not has_intervals(record):
        return text
    return f"{text}; intervals are {100 * level_of([record]):g}%"


def _events(record: Record) -> str | None:
    """How many were played, and how fast; None where there are none to speak of."""
    per_s, count = (record.provenance.get(name) for name in ("events_per_s", "events"))
    if not isinstance(per_s, (int, float)) or not isinstance(count, (int, float)):
        return None
    return f"{number(count)}, {number(per_s, '/s')} on each processor"


def _traffic(record: Record, of: str) -> str:
    return _with_bounds(
        record, ("bandwidth_Bps", of), record.bandwidth_Bps.get(of), lambda v: number(v, "B/s")
    )


def _energy(record: Record) -> str | None:
    if record.energy_J is None:
        return None
    return _with_bounds(record, ("energy_J",), record.energy_J, lambda v: number(v, "J"))


def _with_bounds(record: Record, path: Sequence[str], value: float | None, written: Written) -> str:
    """The value, and its interval where it has one; one from 0 to 0 says no more."""
    likely, between = part_at(record.uncertainty, path), record.interval(*path)
    if not any(likely or between or ()):
        return written(value)
    if likely:
        level = record.uncertainty["level"]
        return f"{written(value)}, with {level:.0%} from {' to '.join(map(written, likely))}"
    return written(value) + (f" [{', '.join(map(written, between))}]" if between else "")


def _operations(record: Record) -> Iterator[Part]:
    """A row for each operation; a latency that is known of none has no column.

    Of a random run a row for each figure, with its interval if it settled.
    """
    yield ""
    if record.replications:
        rows = [row for name in record.throughput for row in _figures(record, name)]
        of = f"{100 * level_of([record]):g}% interval"
        shown = 4 if settled([record]) else 3
        heads = ("operation", "figure", "value", of)[:shown]
        yield table(heads, (row[:shown] for row in rows), left=2)
        return
    names = list(record.throughput)
    columns = [
        ("operation", names),
        ("throughput", [number(r, "/s") for r in record.throughput.values()]),
    ]
    columns += _likely_column(record, lambda v: number(v, "/s"), "throughput")
    for title, name in (("mean latency", "mean"), ("p99", "p99")):
        found = [(record.latency_ns.get(one) or {}).get(name) for one in names]
        if any(value is not None for value in found):
            columns.append((title, [latency(value) for value in found]))
            columns += _likely_column(record, latency, "latency_ns", name)
    columns.append(("total", [number(record.operations.get(name)) for name in names]))
    heads, cells = zip(*columns, strict=True)
    yield table(heads, zip(*cells, strict=True))


def _likely_column(
    record: Record, written: Written, root: str, *leaf: str
) -> list[tuple[str, list[str]]]:
    """The intervals of a figure of all operations, with their title, where any is known."""
    each = [part_at(record.uncertainty, (root, name, *leaf)) or () for name in record.throughput]
    texts = [" to ".join(map(written, ends)) if any(ends) else "" for ends in each]
    return [(f"{record.uncertainty['level']:.0%} interval", texts)] if any(texts) else []


def _figures(record: Record, operation: str) -> list[tuple[str, str, str, str]]:
    """(operation, figure, value, interval) of throughput and of what is known of latency."""

    def row(path: tuple[str, ...], title: str, value: float, written: Written) -> Any:
        between = record.interval(*path)
        text = f"{written(between[0])} to {written(between[1])}" if between else "unknown"
        bin_ns = part_at(record.confidence, ("resolution_ns", *path[1:]))
        if not between and isinstance(bin_ns, (int, float)):
            text += f"; its bin alone ±{latency(bin_ns)}"
        return ("", title, written(value), text)

    path = ("throughput", operation)
    rows = [row(path, "throughput", record.throughput[operation], lambda v: number(v, "/s"))]
    figures = record.latency_ns.get(operation) or {}
    for name, title in LATENCIES.items():
        value = figures.get(name)
        if value is not None:
            rows.append(row(("latency_ns", operation, name), title, value, latency))
    rows.append(("", "total", number(record.operations.get(operation)), ""))
    rows[0] = (operation, *rows[0][1:])
    return rows


def _resources(record: Record) -> Iterator[Part]:
    """The busiest; traffic and capacity where they are known of any."""
    # What differs by rounding stays in the record's order, that of nodes and links.
    busiest = sorted(record.resources, key=lambda use: -round(use.utilisation, 3))
    if not busiest:
        return
    shown = busiest[:RESOURCES_SHOWN]

    def column(field: str, written: Written) -> list[str]:
        return [
            _with_bounds(record, ("resources", use.name, field), getattr(use, field), written)
            for use in shown
        ]

    columns = {
        "busiest resources": [use.name for use in shown],
        "in use": column("utilisation", percent),
    }
    if any(use.Bps is not None for use in record.resources):
        columns["traffic"] = column("Bps", lambda v: number(v, "B/s"))
        columns["capacity"] = [number(use.capacity_Bps, "B/s") for use in shown]
    yield ""
    yield table(list(columns), zip(*columns.values(), strict=True))


def _why(record: Record) -> Iterator[Part]:
    for names, why in together(limits(record.why, record.throughput)):
        gains = [gain for gain in why.gains if gain.gain_per_10pct >= 0.0005][:GAINS_SHOWN]
        best = f"; 10% more {gains[0].resource} would help most" if gains else ""
        limit = limit_in_words(why, record.resources)
        yield f"\n{listing(names)} {'is' if len(names) == 1 else 'are'} limited by {limit}{best}"
        if gains:
            more = ((gain.resource, f"+{percent(gain.gain_per_10pct)}") for gain in gains)
            yield table(("10% more of", "throughput"), more)


PLACEMENTS = (
    "Data all local: each node's misses go to its own memory; interleaved: evenly to all memory; "
    "where used\nmost: each node's pages move to the node that misses there most. "
    "Over 100% is slower."
)
NODES_SHOWN, LINKS_SHOWN, HELD_SHOWN = 8, 8, 4


def traffic_parts(record: Record) -> Iterator[Part]:
    """What was counted; matrices of up to eight nodes."""
    from ..reports.traffic import link_rows, node_pairs

    yield facts(_counted(record))
    ids = [str(node["id"]) for node in record.machine.get("nodes", ())]
    for title, pairs in node_pairs(record).items() if len(ids) <= NODES_SHOWN else ():
        rows = zip(ids, pairs.tolist(), strict=True)
        yield ""
        yield whole_table(
            (title, *(f"memory {name}" for name in ids)),
            ((f"node {name}", *map(number, row)) for name, row in rows),
        )
    links = [row for row in link_rows(record) if row.least_s is not None and row.bytes]
    if links:
        yield ""
        yield table(
            ("busiest links", "bytes", "of them data", "take at least"),
            (
                (
                    row.name,
                    number(row.bytes, "B"),
                    number(row.data_bytes, "B"),
                    latency((row.least_s or 0.0) * 1e9),
                )
                for row in links[:LINKS_SHOWN]
            ),
        )
    if record.traffic.get("predicted"):
        yield ""
        yield from predicted_parts(record.traffic["predicted"])
    yield from below([f"Note: {warning}" for warning in record.warnings])


def _counted(record: Record) -> Iterator[tuple[str, str | None]]:
    from ..reports.traffic import traffic_tiles

    traffic = record.traffic
    span = "the whole command"
    if traffic.get("span") == "regions":
        count = traffic["regions"]
        span = "its marked region" if count == 1 else f"its {count} marked regions"
    yield "counted", span
    yield from ((f"{name} done", f"{count:,.0f}") for name, count in record.operations.items())
    executed = traffic.get("instructions")
    yield "instructions", None if executed is None else f"{executed:,}"
    for name, value, note in traffic_tiles(record):
        yield name, f"{value} ({note})" if note else value
    for name, rate in record.model.items():
        if isinstance(rate, float):
            yield name, percent(rate)


def predicted_parts(predicted: dict[str, Any]) -> Iterator[Part]:
    """How long the command would take on the machine, and what would change it."""

    def seconds(value: float) -> str:
        return latency(value * 1e9)

    time_s, (least, most) = predicted["time_s"], predicted["interval_s"]
    held = list(predicted["binding"].items())[:HELD_SHOWN]
    placed = predicted["placements_s"].items() if time_s else ()
    yield facts(
        (
            ("would take there", f"{seconds(time_s)}, {seconds(least)} to {seconds(most)}"),
            ("held by", ", ".join(f"{name} ({percent(part)})" for name, part in held)),
            *(
                (f"data {name}", f"{seconds(found)}, {percent(found / time_s)} of that")
                for name, found in placed
            ),
        )
    )
    if placed:
        yield f"\n{PLACEMENTS}"
