"""What a program fetches anew after each call into the kernel, which took the place of its lines.

Counts are of the program alone. How many lines it touches between two calls follows from how often
caches of several sizes miss: after c lines, another one is touched as often as a cache of c lines
misses (Xiang et al., HOTL: a higher order theory of locality, ASPLOS 2013). After a call the first
caches hold none of these: each line is one more fetch that misses, from the second cache, or from
the last one where the kernel took its place there, too. A short call takes few places.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from .counts import CallGraph
from .loops import FIRST_CACHE_BYTES, LINE_BYTES, Floats, Loop, Structure, rates

SECOND_CACHE_BYTES = 512.0 * 2**10
POINTS, RATIO_MIN = 1000, 1e-12
# The kernel takes a line's place each so many ns; a part of its counted time is that of counting:
# estimates, not verified (file calls displaced 660 to 985 lines of the second cache in 5 to 14 µs:
# Soares and Stumm, FlexSC, OSDI 2010, table 1).
DISPLACED_EACH_NS, COUNTING_NS = 8.0, 2500.0
# Where lines lie then: in what second caches hold, or in what only last ones do, or between. Two at
# a time: an estimate, as code is fetched line by line, data partly together.
SIZES = 724.0 * 2**10, 256.0 * 2**10, 2.0 * 2**20
AT_ONCE = 2.0, 1.0, 4.0


def refills(
    graphs: Sequence[CallGraph], calls: Floats, kernel_ns: Floats, queries: float
) -> list[Loop]:
    """The loop that fetches them, once a query, of a program that answered so many ``queries``;
    none where no cache smaller than first ones was simulated. ``calls`` (F,): of each function into
    the kernel, not all 0; ``kernel_ns`` (F,): the processor time of these."""
    plain, whole = [graph for graph in graphs if not graph.prefetched], float(calls.sum())
    data = {graph.caches[0]: float(graph.of("D1mr", "D1mw").sum()) for graph in plain}
    code = {graph.code_cache: float(graph.of("I1mr").sum()) for graph in plain}
    touched = _touched(data, float(graphs[0].of("Dr", "Dw").sum()), whole)
    touched += _touched(code, float(graphs[0].of("Ir").sum()), whole)
    each_ns = kernel_ns[calls > 0] / calls[calls > 0]
    displaced = np.clip((each_ns - COUNTING_NS) / DISPLACED_EACH_NS, 0.0, touched)
    lines = float(displaced @ calls[calls > 0]) / queries
    if not lines:
        return []
    structure, rate = Structure(lines, *SIZES), rates(lines, 0.0, fetches=lines)
    return [Loop("after calls into the kernel", lines, rate, 0.0, 0.0, (structure,), AT_ONCE)]


def _touched(missed: Mapping[float, float], accesses: float, calls: float) -> float:
    """Lines that are touched between two calls, but for what a second cache misses anyway;
    ``missed``: by bytes of caches."""
    sizes = sorted(size for size in missed if size)
    if not accesses or min(sizes, default=np.inf) >= FIRST_CACHE_BYTES:
        return 0.0
    ratios = np.minimum.accumulate([missed[size] / accesses for size in sizes])
    lines = np.geomspace(1.0, SECOND_CACHE_BYTES / LINE_BYTES, POINTS)
    # A straight line between logarithms; the first access is to another line.
    known = np.log([1.0, *(size / LINE_BYTES for size in sizes)])
    ratio = np.exp(np.interp(np.log(lines), known, np.log([1.0, *np.maximum(ratios, RATIO_MIN)])))
    steps, between = np.diff(lines), np.sqrt(ratio[1:] * ratio[:-1])
    touched = np.cumsum(steps / between) <= accesses / calls
    return float(((1.0 - ratio[-1] / between) * steps)[touched].sum())
