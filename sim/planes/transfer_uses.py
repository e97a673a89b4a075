"""Use of initiators and pairs, where the machine's limit transfers between nodes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..machine.costs import LINE_BYTES, CostModel
from .outcome import ResourceUse

Floats = npt.NDArray[np.float64]

SHOWN_FROM, PAIRS_MAX = 0.5, 64


def transfer_uses(costs: CostModel, drawn_Bps: Floats) -> list[ResourceUse]:
    """Of what each node reads of each home per second, ``drawn_Bps`` (n, n): the initiators and
    pairs in use by half or more.
    """
    limits, nodes = costs.limits, costs.machine.nodes
    if not limits.limited or not drawn_Bps.any():
        return []
    lines = drawn_Bps / LINE_BYTES
    by_initiator, by_pair = (lines * limits.initiator_s).sum(axis=1), lines * limits.pair_s
    remote_Bps = (drawn_Bps * costs.others).sum(axis=1)
    found = [
        ResourceUse(
            f"reads under way from node {nodes[i].id}",
            "initiator",
            min(float(by_initiator[i]), 1.0),
            float(remote_Bps[i]),
            None,
            node=nodes[i].id,
        )
        for i in np.flatnonzero(by_initiator >= SHOWN_FROM).tolist()
    ]
    for flat in np.argsort(-by_pair, axis=None, kind="stable")[:PAIRS_MAX].tolist():
        i, j = divmod(flat, len(nodes))
        if by_pair[i, j] < SHOWN_FROM:
            break
        a, b = nodes[i].id, nodes[j].id
        found.append(
            ResourceUse(
                f"node {a} from node {b}",
                "pair",
                min(float(by_pair[i, j]), 1.0),
                float(drawn_Bps[i, j]),
                LINE_BYTES / float(limits.pair_s[i, j]),
                ends=(a, b),
            )
        )
    return found
