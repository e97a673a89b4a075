"""When a semi-join pays on a network: the source's own cost formulas, fed with the machine's facts.

Binnig et al., PVLDB 9 (2016), section on OLAP. Costs per byte of both inputs: a byte of memory
takes c_mem, a byte that is shipped c_net, in messages of 2 KB.

  Grace hash join                     4 c_mem + c_net
  behind a semi-join by Bloom filter  c_mem + sel (4 c_mem + c_net)

``sel`` is what the filter lets through, its false positives among it. What c_net is, follows from
the machine's adapter and clock as for transactions: the longest of a thread's time for the message
and the adapter's. One thread sends, as the source's network facts are those of one thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...topologies import Machine
from ...topologies.nics import message_curve
from ..results import Prediction, Published, Runs
from .descriptor import Validation

MACHINE = "ib-fdr-8n"
MESSAGE_BYTES = 2048.0
C_MEM_S = 1e-9  # the source's, per byte
FALSE_POSITIVES = 0.10  # the source's, of all tuples: 50% become 60%
NEARLY_ALWAYS = 0.9


def shipped_s(machine: Machine, transport: str) -> float:
    """c_net: time per byte of messages of 2 KB that one thread sends by ``transport``."""
    curve, clock_Hz = message_curve(machine, 0, transport, 1), machine.nodes[0].clock_Hz
    assert clock_Hz is not None
    thread_s = curve.cycles(MESSAGE_BYTES) / clock_Hz
    return max(thread_s, curve.occupancy_s(MESSAGE_BYTES)) / MESSAGE_BYTES


def break_even(c_net_s: float) -> float:
    """The share that the filter may let through for both to cost the same."""
    return (3.0 * C_MEM_S + c_net_s) / (4.0 * C_MEM_S + c_net_s)


def _at(transport: str, false_positives: float) -> Callable[[Runs], Prediction]:
    def predict(runs: Runs) -> Prediction:
        c_net_s = shipped_s(runs.machine(MACHINE), transport)
        found = break_even(c_net_s) - false_positives
        note = (
            "The source's own formulas, worked out; nothing is played. c_net is "
            f"{c_net_s * 1e9:.2f} ns a byte of 2 KB messages, the longest of one thread's time and "
            "the adapter's. Were bandwidth alone to count, it would be "
            f"{break_even(_wire_s(runs, transport)) - false_positives:.2f}."
        )
        return Prediction(found, note=note)

    return predict


def _wire_s(runs: Runs, transport: str) -> float:
    curve = message_curve(runs.machine(MACHINE), 0, transport, 1)
    return 1.0 / curve.transport.bandwidth.value


def _nearly_always(runs: Runs) -> Prediction:
    each = [
        break_even(shipped_s(runs.machine(MACHINE), "IPoEth")) - more
        for more in (0.0, FALSE_POSITIVES)
    ]
    return Prediction(
        f"below a selectivity of {each[0]:.2f}, with the filter's errors {each[1]:.2f}",
        each[0] > NEARLY_ALWAYS,
        "The source's own formulas, worked out; nothing is played.",
    )


# Formulas: every plane would say the same.
PLANES = ("flow", "event", "reference")

PUBLISHED: Mapping[str, Published] = {
    "nam-fig7-semijoin": Published(
        0.8,
        "selectivity",
        _at("IPoIB", 0.0),
        planes=PLANES,
        about="a semi-join pays below this selectivity, over IPoIB",
    ),
    "nam-fig7-semijoin-error": Published(
        0.7,
        "selectivity",
        _at("IPoIB", FALSE_POSITIVES),
        planes=PLANES,
        about="the same with 10% of false positives",
    ),
    "nam-fig7-semijoin-ipoeth": Published(
        "a semi-join almost always pays",
        "selectivity",
        _nearly_always,
        planes=PLANES,
        about="the same over IPoEth",
    ),
}

BLINDNESS = """\
**Semi-joins (NAM).** The formulas are the source's own. What a shipped byte costs follows from the
rule that transactions had before; that bandwidth alone would do as well was known when it was
chosen, and the notes say what that gives.
"""

VALIDATION = Validation(published=PUBLISHED, blindness=BLINDNESS)
