"""What a program fetches anew after each call into the kernel, which took the place of its lines.

Counts are of the program alone. How many lines it touches between two calls follows from how often
caches of several sizes miss: after c lines, another one is touched as often as a cache of c lines
misses (Xiang et al., HOTL: a higher order theory of locality, ASPLOS 2013). After a call the first
caches hold none of these lines: they come from the second cache, or from the last one, where the
kernel took their place there, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from .counts import CallGraph
from .loops import FIRST_CACHE_BYTES, LINE_BYTES, Loop

SECOND_CACHE_BYTES = 512.0 * 2**10
POINTS, RATIO_MIN = 1000, 1e-12
# Where lines lie then: in what second caches hold, or in what only last ones do, or between. Two at
# a time: an estimate, as code is fetched line by line, data partly together.
SIZES = 724.0 * 2**10, 128.0 * 2**10, 4.0 * 2**20
AT_ONCE = 2.0, 1.0, 4.0


def refills(graphs: Sequence[CallGraph], calls: float, queries: float) -> list[Loop]:
    """The loop that fetches them, once a query, of a program that made so many ``calls`` and
    answered so many ``queries``; none where no cache smaller than first ones was simulated."""
    plain = [graph for graph in graphs if not graph.prefetched]
    data = {graph.caches[0]: float(graph.of("D1mr", "D1mw").sum()) for graph in plain}
    code = {graph.code_cache: float(graph.of("I1mr").sum()) for graph in plain}
    lines = _lacking(data, float(graphs[0].of("Dr", "Dw").sum()), calls)
    lines += _lacking(code, float(graphs[0].of("Ir").sum()), calls)
    if not lines:
        return []
    structure, rate = (lines * calls / queries, *SIZES), (1.0, 1.0, 1.0)
    return [Loop("after calls into the kernel", 0.0, rate, 0.0, 0.0, (structure,), AT_ONCE)]


def _lacking(missed: Mapping[float, float], accesses: float, calls: float) -> float:
    """Lines that are touched between two calls, but for what a second cache misses anyway;
    ``missed``: by bytes of caches."""
    sizes = sorted(size for size in missed if size)
    if not calls or not accesses or min(sizes, default=np.inf) >= FIRST_CACHE_BYTES:
        return 0.0
    ratios = np.minimum.accumulate([missed[size] / accesses for size in sizes])
    lines = np.geomspace(1.0, SECOND_CACHE_BYTES / LINE_BYTES, POINTS)
    # A straight line between logarithms; the first access is to another line.
    known = np.log([1.0, *(size / LINE_BYTES for size in sizes)])
    ratio = np.exp(np.interp(np.log(lines), known, np.log([1.0, *np.maximum(ratios, RATIO_MIN)])))
    steps, between = np.diff(lines), np.sqrt(ratio[1:] * ratio[:-1])
    touched = np.cumsum(steps / between) <= accesses / calls
    return float(((1.0 - ratio[-1] / between) * steps)[touched].sum())
