"""When a semi-join pays off on a network: where both plans take the same time.

Binnig et al., PVLDB 9 (2016), section on OLAP, whose figure 7 plots cost formulas. Costs per byte
of both inputs: a byte of memory takes c_mem, a byte that is shipped c_net, in messages of 2 KB.

  Grace hash join                     4 c_mem + c_net
  behind a semi-join by Bloom filter  c_mem + sel (4 c_mem + c_net)

``sel`` is what the filters let through, their false positives among it. Notes tell what the
formulas alone say, with the c_net that follows from the machine's adapter and clock: the longest of
a thread's time for the message and the adapter's. One thread sends, as the source's network facts
are those of one thread.
"""

from collections.abc import Callable

from scipy.optimize import brentq

from ...sim.systems.descriptor import LazyImport
from ...topologies import Machine
from ...topologies.nics import message_curve
from ..results import Prediction, Runs, read_source
from .descriptor import Microbenchmark, Validation

SOURCE = read_source("joins")
SCENARIO = "nam-fig7"
MACHINE = "ib-fdr-8n"
MESSAGE_BYTES = 2048.0
C_MEM_S = 1e-9  # the source's, per byte
FALSE_POSITIVES = 0.10  # the source's, of all tuples: 50% become 60%
NEARLY_ALWAYS = 0.9
NEAR = 1e-3  # to which a break-even is looked for


def shipped_s(machine: Machine, transport: str) -> float:
    """c_net: time per byte of messages of 2 KB that one thread sends by ``transport``."""
    curve, clock_Hz = message_curve(machine, 0, transport, 1), machine.nodes[0].clock_Hz
    assert clock_Hz is not None
    thread_s = curve.cycles(MESSAGE_BYTES) / clock_Hz
    return max(thread_s, curve.occupancy_s(MESSAGE_BYTES)) / MESSAGE_BYTES


def break_even(c_net_s: float) -> float:
    """The share that the filter may let through for both to cost the same."""
    return (3.0 * C_MEM_S + c_net_s) / (4.0 * C_MEM_S + c_net_s)


def played_break_even(runs: Runs, transport: str, *settings: str) -> float:
    """The part of tuples with a partner for which both plans take the same time; 0 where filters
    never pay, 1 where they always do."""
    more = (f"system.transport={transport}", *settings)

    def query_ns(operator: str, selectivity: float) -> float:
        record = runs(
            SCENARIO,
            f"system.operator={operator}",
            f"workload.operations.join.selectivity={selectivity:.6f}",
            *more,
        )
        return float((record.latency_ns["join"] or {})["mean"] or 0.0)

    without_ns = query_ns("ghj", 1.0)

    def saved_ns(selectivity: float) -> float:
        return without_ns - query_ns("ghj-bloom", selectivity)

    if saved_ns(0.0) <= 0.0:
        return 0.0
    if saved_ns(1.0) >= 0.0:
        return 1.0
    return float(brentq(saved_ns, 0.0, 1.0, xtol=NEAR))


def _passing(selectivity: float) -> float:
    """What filters let through; the scenario's error is the source's."""
    return selectivity + (1.0 - selectivity) * FALSE_POSITIVES


def _by_formulas(runs: Runs) -> bool:
    return runs.chosen("costs of a semi-join", "") == "those of the source's formulas"


def _at(transport: str, passing: bool) -> Callable[[Runs], Prediction]:
    def predict(runs: Runs) -> Prediction:
        formula = break_even(shipped_s(runs.machine(MACHINE), transport))
        shown = _passing if passing else float
        less = 0.0 if passing else FALSE_POSITIVES
        value, two, wide = (
            shown(played_break_even(runs, transport, *settings))
            for settings in ((), TWO_NODES, WIDE)
        )
        facts = {"formula": formula - less, "two": two, "wide": wide}
        return Prediction(facts["formula"] if _by_formulas(runs) else value, facts=facts)

    return predict


TWO_NODES = SOURCE.stated("nodes of the join", "2")
WIDE = SOURCE.stated("width of tuples", "64 B")


def _nearly_always(runs: Runs) -> Prediction:
    each = [
        _passing(played_break_even(runs, "IPoEth", *settings)) for settings in ((), TWO_NODES, WIDE)
    ]
    formula = break_even(shipped_s(runs.machine(MACHINE), "IPoEth"))
    facts = {"two": each[1], "wide": each[2], "formula": formula, "criterion": NEARLY_ALWAYS}
    below = formula if _by_formulas(runs) else each[0]
    return Prediction(f"below a selectivity of {below:.2f}", below > NEARLY_ALWAYS, facts)


PASSES = f"{__package__}.join_passes"
VALIDATION = Validation.of(
    SOURCE,
    {
        "nam-fig7-semijoin": _at("IPoIB", passing=True),
        "nam-fig7-semijoin-error": _at("IPoIB", passing=False),
        "nam-fig7-semijoin-ipoeth": _nearly_always,
    },
    measured={"operators": Microbenchmark(LazyImport(PASSES, "measure"), 5.0)},
    described=LazyImport(PASSES, "described"),
)
