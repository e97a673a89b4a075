"""All that validation has of ERIS: its published results, and how each is predicted.

Kissinger et al., ERIS: A NUMA-Aware In-Memory Storage Engine for Analytical Workloads, ADMS 2014.
"""

from collections.abc import Callable
from itertools import pairwise

from ....sim.run.record import Record
from ....sim.run.recovery import recoveries
from ....sim.systems.descriptor import LazyImport
from ...results import Prediction, Runs, read_source
from ..descriptor import Microbenchmark, Validation


def _fig1(runs: Runs) -> Prediction:
    single, many = (runs("eris-fig1", f"system.nodes={nodes}") for nodes in (1, 64))
    speedup = many.throughput["lookup"] / single.throughput["lookup"]
    walk, other = zip(*(_walk_and_other_ns(record) for record in (single, many)), strict=True)
    small = "system.page_size=4 KiB"
    with_small = runs.rate("eris-fig1", "system.nodes=64", small) / runs.rate(
        "eris-fig1", "system.nodes=1", small
    )
    facts = {"walk": walk, "other": other, "small": small, "with_small": with_small}
    return Prediction(f"{speedup:.1f} times on 64 nodes", speedup > 64.0, facts)


# Commands of an outgoing buffer.
BUFFER_SIZES = tuple(2**power for power in range(11))
FEW = 16  # up to here a run of so many milliseconds sees enough flushes


def _fig5(runs: Runs) -> Prediction:
    """Raw routing and lookups per second, by the size of the outgoing buffer."""
    rates: dict[str, list[float]] = {}
    links = []
    for name in ("eris-fig5-raw", "eris-fig5"):
        rates[name] = []
        for size in BUFFER_SIZES:
            length_ms = 4 if size <= FEW else 16
            record = runs(
                name,
                f"system.buffer_commands={size}",
                f"horizon={length_ms} ms",
                f"statistics.warm_up={length_ms / 2:g} ms",
            )
            rates[name].append(sum(record.throughput.values()))
            links.append(_use(record, "link"))
    raw, lookups = rates.values()
    steps = [b / a for a, b in pairwise(raw)]
    best = BUFFER_SIZES[lookups.index(max(lookups))]
    at_128 = lookups[BUFFER_SIZES.index(128)] / max(lookups)
    link = max(links[: len(BUFFER_SIZES)])
    words = (
        f"raw x{steps[0]:.2f}, x{steps[1]:.2f}, x{steps[2]:.2f} per doubling from 1 on, "
        f"x{steps[-1]:.2f} at last, links {100 * link:.0f}% in use; "
        f"lookups best at {best}, at 128 {100 * at_128:.1f}% of that"
    )
    return Prediction(words, best == 128 and steps[0] > 1.9 and link > 0.95)


def _walk_and_other_ns(record: Record) -> tuple[float, float]:
    """Time of a lookup in a worker: in the index, and in all other steps."""
    demands = dict(record.why["lookup"].demands)
    walk = demands.pop("walking the index")
    return walk, sum(demands.values())


def _use(record: Record, kind: str) -> float:
    return max(use.utilisation for use in record.resources if use.kind == kind)


def _fig8_intel(runs: Runs) -> Prediction:
    """ERIS over the shared index, from small to large indexes."""
    ratios = {}
    for power in range(18, 32):
        setting = f"workload.objects.index.keys={2**power}"
        shared = runs.rate("eris-fig8-intel-shared", setting)
        ratios[2**power] = runs.rate("eris-fig8-intel", setting) / shared
    sizes = list(ratios)
    ahead = [size for size in sizes if ratios[size] > 1.0]
    ends = f"{ratios[sizes[0]]:.2f} at 2^18 keys, {ratios[sizes[-1]]:.2f} at 2^31"
    holds = bool(ahead) and ratios[sizes[0]] < 1.0 and ratios[sizes[-1]] > 1.0
    where = f", ahead from {ahead[0] / 1e6:.3g}M keys on" if holds else ""
    return Prediction(f"{ends}{where}", holds)


def _fig8_amd(runs: Runs) -> Prediction:
    load = _use(runs("eris-fig8-amd"), "memory")
    ratio = runs.rate("eris-fig8-amd") / runs.rate("eris-fig8-amd-shared")
    return Prediction(ratio, facts={"load": load})


def _upserts(runs: Runs) -> Prediction:
    """Upserts over lookups, of ERIS and of the shared index, and ERIS over the shared index."""
    lookups, upserts = (
        [runs.rate(f"eris-fig8-amd{kind}{index}") for index in ("", "-shared")]
        for kind in ("", "-upsert")
    )
    own, shared = (b / a for a, b in zip(lookups, upserts, strict=True))
    ahead = upserts[0] / upserts[1]
    words = (
        f"{own:.2f} of the lookups with ERIS, {shared:.2f} with the shared index; ERIS {ahead:.2f} "
        f"times the shared index, {lookups[0] / lookups[1]:.2f} times with lookups"
    )
    return Prediction(words, own < 1.0 and shared < 1.0 and ahead > 1.0)


def _fig9(runs: Runs) -> Prediction:
    names = "eris-fig9", "eris-fig9-interleaved"
    own, interleaved = (runs(name).bandwidth_Bps["memory"] or 0.0 for name in names)
    return Prediction(own / interleaved)


def _fig9_single(runs: Runs) -> Prediction:
    why = runs("eris-fig9-single-ram").why["scan"].resource
    return Prediction(f"bound by {why}", "memory" in why)


def _fig11_shared(runs: Runs) -> Prediction:
    share = runs("eris-fig11-shared").model["index"]["hits_on_shared_or_forward_lines"]
    return Prediction(float(share))


def _fig11_eris(runs: Runs) -> Prediction:
    share = runs("eris-fig11").model["index"]["hits_on_shared_or_forward_lines"]
    return Prediction(1.0 - float(share))


INTERLEAVED = "system.placement=interleaved"


def _traffic(kind: str, scenario: str, *settings: str) -> Callable[..., Prediction]:
    """Predicts bytes per second over all ``links``, or through all controllers (``memory``)."""

    def predict(runs: Runs) -> Prediction:
        return Prediction(runs(scenario, *settings).bandwidth_Bps[kind] or 0.0)

    return predict


def _shared_traffic(
    kind: str, links: float, memory: float, buffers: float, scenario: str, *settings: str
) -> Callable[..., Prediction]:
    """As ``_traffic``, of a baseline; ``links``, ``memory``: what the source measured;
    ``buffers``: GB/s of memory that few buffers leave (benchmarks/link_buffers.py).
    """

    def predict(runs: Runs) -> Prediction:
        bandwidth_Bps = runs(scenario, *settings).bandwidth_Bps
        model = (bandwidth_Bps["links"] or 0.0) / (bandwidth_Bps["memory"] or 1.0)
        facts = {"model": model, "source": links / memory, "buffers": buffers}
        return Prediction(bandwidth_Bps[kind] or 0.0, facts=facts)

    return predict


SHARED_LOOKUPS = (83.8e9, 41.6e9, 60, "eris-fig8-amd-shared")
SHARED_SCANS = (75.6e9, 33.8e9, 47, "eris-fig12-scan", INTERLEAVED)

FIG13_POLICIES = ("none", "ma-1", "ma-8", "one-shot")


def _fig13(runs: Runs) -> Prediction:
    """Worst drop of a second's throughput, and mean time to be back, of each policy."""
    records = {policy: runs("eris-fig13", policy=policy) for policy in FIG13_POLICIES}
    finals = [[r.final for r in recoveries(record, "lookup")] for record in records.values()]
    levels = [max(rates) for rates in zip(*finals, strict=True)]
    each: dict[str, list[float]] = {}
    drop, back = {}, {}
    for policy, record in records.items():
        seconds = recoveries(record, "lookup", levels, sample_s=1.0)
        each[policy] = [1.0 - r.lowest / r.before for r in seconds if r.before]
        drop[policy] = max(each[policy])
        found = recoveries(record, "lookup", levels)
        back[policy] = sum(r.lasts_s for r in found) / len(found)
    longest = max(r.until_s - r.change_s for r in found)
    low = all(r.recovery_s is None for r in recoveries(records["none"], "lookup", levels))
    holds = (
        drop["one-shot"] > drop["ma-8"] > drop["ma-1"]
        and back["one-shot"] < back["ma-8"] < back["ma-1"]
        and low
    )
    words = ", ".join(
        f"{policy} {100 * drop[policy]:.0f}% / "
        + ("never" if back[policy] >= longest else f"{back[policy]:.1f} s")
        for policy in FIG13_POLICIES
    )
    deeper = sum(a > b for a, b in zip(each["one-shot"], each["ma-8"], strict=True))
    facts = {"deeper": deeper, "changes": len(each["one-shot"])}
    return Prediction(f"drop / time to be back: {words}", holds, facts)


SOURCE = read_source("eris")
STEPS, LOOP, FITTED = (
    f"{__package__}.{part}" for part in ("engine_steps", "engine_loop", "calibration")
)
VALIDATION = Validation.of(
    SOURCE,
    {
        "eris-fig1": _fig1,
        "eris-fig5": _fig5,
        "eris-fig8-intel": _fig8_intel,
        "eris-fig8-amd": _fig8_amd,
        "eris-upserts": _upserts,
        "eris-fig9": _fig9,
        "eris-fig9-single-ram": _fig9_single,
        "eris-fig11-shared": _fig11_shared,
        "eris-fig11": _fig11_eris,
        "eris-fig12-scan": _traffic("memory", "eris-fig12-scan"),
        "eris-fig12-scan-links": _traffic("links", "eris-fig12-scan"),
        "eris-fig12-scan-shared": _shared_traffic("memory", *SHARED_SCANS),
        "eris-fig12-scan-shared-links": _shared_traffic("links", *SHARED_SCANS),
        "eris-fig12-lookup": _traffic("memory", "eris-fig8-amd"),
        "eris-fig12-lookup-links": _traffic("links", "eris-fig8-amd"),
        "eris-fig12-lookup-shared": _shared_traffic("memory", *SHARED_LOOKUPS),
        "eris-fig12-lookup-shared-links": _shared_traffic("links", *SHARED_LOOKUPS),
        "eris-fig13": _fig13,
    },
    measured={
        "routing": Microbenchmark(LazyImport(STEPS, "measure_routing"), 1.0),
        "index": Microbenchmark(LazyImport(STEPS, "measure_index"), 4.0, once=True),
        "loop": Microbenchmark(LazyImport(LOOP, "measure"), 2.0),
        "walk": Microbenchmark(LazyImport(LOOP, "measure_walk"), 4.0),
    },
    described=LazyImport(LOOP, "described"),
    calibration=LazyImport(FITTED, "CALIBRATION"),
    predicted={"routing": LazyImport(FITTED, "routing_measured_s")},
    entry_bytes={"index": LazyImport(FITTED, "key_bytes")},
    traffic_cases=LazyImport(f"{__package__}.traffic_cases", "traffic_cases"),
)
