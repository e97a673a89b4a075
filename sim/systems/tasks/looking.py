"""How many idle workers look for work, where they give up and sleep after a while, as rates.

The worker that became idle last takes the next task, so idle workers are a stack: its k-th place is
in use while k or more workers are busy. A place that falls idle is looked at for ``look_s``, or
until it is in use again, whichever comes first. Queries come at random, each keeps g workers busy
for a time that is exponentially distributed, and there are places for c = W / g of them: the number
of queries is a birth-death process, and a place is in use again as soon as this has climbed from
k - 1 to k. With the rates l_j of births and m_j of deaths while there are j, and the eigenvalues -t
and eigenvectors u of its symmetric generator on 0 .. k - 1, the part of time in which the k-th
place is looked at is

    p_(k-1) l_(k-1) E[min(I, look)]
    E[min(I, look)] = sum of l_(k-1) u_(k-1)^2 (1 - e^(-t look)) / t^2

(Keilson, Markov Chain Models: Rarity and Exponentiality, 1979, chapter 5). Clients that never pause
leave nobody idle for a while: who is idle then, stays so and sleeps.

Left out: pauses of single workers between the stages of a query, and tasks of one query that end at
different times.
"""

from functools import lru_cache

import numpy as np

from ...kernel.arrays import Floats, Ints
from .steady_rates import Rates

TAIL_MAX = 512  # queries that wait, beyond which there are none


def looking_threads(
    rates: Rates, workers: Ints, busy: Floats, look_s: float, think_s: float
) -> Floats:
    """(n,) workers of each node that look for work, of ``workers`` (n,) of whom ``busy`` (n,) run
    tasks; ``think_s``: clients' mean pause, infinite where they are open. Where workers take tasks
    of other nodes, or are moved, they are one pool.
    """
    asked = {(batch.query, batch.node) for batch in rates.batches}
    idle = np.maximum(workers - busy, 0.0)

    def in_pool(node: float, busy: float, queries: set[int]) -> float:
        which = sorted(queries)
        per_s, response_s = rates.queries[which], rates.response_s[which]
        asked_per_s = float(per_s.sum())
        present = float((per_s * response_s).sum())
        pausing = think_s * asked_per_s if asked_per_s > 0 else 0.0
        return workers_looking(node, busy, asked_per_s, present, pausing, look_s)

    if rates.moved or (rates.stolen & (rates.running > 0)).any():
        found = in_pool(float(workers.sum()), float(busy.sum()), {k for k, _ in asked})
        return np.asarray(found * idle / max(float(idle.sum()), 1e-12))
    return np.array(
        [
            in_pool(float(workers[k]), float(busy[k]), {q for q, node in asked if node == k})
            for k in range(len(workers))
        ]
    )


def workers_looking(
    workers: float,
    running: float,
    queries_per_s: float,
    queries_present: float,
    pausing: float,
    look_s: float,
) -> float:
    """Of ``workers``, of whom ``running`` are busy on average; ``queries_present``: queries that
    run or wait, ``queries_per_s`` that are asked. ``pausing``: clients that think on average;
    infinite where clients are open.
    """
    idle = workers - running
    if idle <= 0 or running <= 0 or queries_per_s <= 0 or pausing <= 0 or look_s <= 0:
        return 0.0
    each = min(max(running / max(queries_present, 1e-12), 1.0), workers)
    places = max(round(workers / each), 1)
    offered = running / each
    found = each * _places_looked_at(
        places,
        float(f"{offered:.6g}"),
        float(f"{queries_per_s:.6g}"),
        float(f"{pausing:.6g}"),
        float(f"{look_s:.6g}"),
    )
    return min(found, idle)


@lru_cache(maxsize=1024)
def _places_looked_at(
    places: int, offered: float, per_s: float, pausing: float, look_s: float
) -> float:
    service_s = offered / per_s
    states = np.arange(places + TAIL_MAX + 1)
    if np.isinf(pausing):
        births = np.full(len(states), per_s)
    else:  # of a fixed number of clients, who come at this rate on average
        births = per_s / pausing * np.maximum(pausing + offered - states, 0.0)
    deaths = np.minimum(states, places) / service_s
    with np.errstate(divide="ignore"):
        log_p = np.concatenate([[0.0], np.cumsum(np.log(births[:-1]) - np.log(deaths[1:]))])
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    found = 0.0
    for k in range(1, places + 1):
        birth = float(births[k - 1])
        if birth <= 0.0:
            break
        found += float(p[k - 1]) * birth * _least_of(births[:k], deaths[:k], look_s)
    return found


def _least_of(births: Floats, deaths: Floats, look_s: float) -> float:
    """The mean of the time from k - 1 to k queries, or ``look_s`` where that is less."""
    coupling = -np.sqrt(births[:-1] * deaths[1:])
    generator = np.diag(births + deaths) + np.diag(coupling, 1) + np.diag(coupling, -1)
    rates, vectors = np.linalg.eigh(generator)
    rates = np.maximum(rates, 1e-300)
    weights = float(births[-1]) * vectors[-1] ** 2 / rates  # add up to 1
    return float((weights * -np.expm1(-rates * look_s) / rates).sum())
