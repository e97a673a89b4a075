"""What limits an operation, in words; of the workers' time also what they spend it on."""

from collections.abc import Mapping, Sequence

from ..planes.outcome import ResourceUse, Why
from ..planes.why import WORKERS

NEAR = 0.5  # what is in use less than that is near no limit
SHARED = ("memory", "link", "initiator", "pair")


def limits(why: Mapping[str, Why], throughput: Mapping[str, float]) -> Mapping[str, Why]:
    """Of the operations that are done; of all where none is. Nothing limits a share of 0."""
    return {name: limit for name, limit in why.items() if throughput.get(name)} or why


def together(why: Mapping[str, Why], by_parts: bool = False) -> list[tuple[list[str], Why]]:
    """(operations, why): those of a mix that are held back alike, and gain alike, once;
    ``by_parts``: if the parts of their time are alike too."""
    found: dict[tuple[object, ...], tuple[list[str], Why]] = {}
    for name, one in why.items():
        key = one.resource, *one.gains, *(one.demands.items() if by_parts else ())
        found.setdefault(key, ([], one))[0].append(name)
    return list(found.values())


def limit_in_words(why: Why, resources: Sequence[ResourceUse]) -> str:
    """``why.resource``; of a node whose cores are mostly free, that it is one of its workers, or
    few; the time of workers with the part of it in which their reads are under way, and the busiest
    of what they share, as they are slow by waiting too.
    """
    for use in resources:
        of_node = why.resource.endswith(use.name) or (
            why.resource.startswith(WORKERS)
            and why.resource.endswith(use.name.removeprefix("cores"))
        )
        if use.kind == "cores" and of_node and use.utilisation < NEAR:
            hot = f"one of its workers, or few: all its cores together are {use.utilisation:.0%}"
            return f"{why.resource} ({hot} in use)"
    if not why.resource.startswith(WORKERS):
        return why.resource
    misses = [use.utilisation for use in resources if use.kind == "misses"]
    shared = [use for use in resources if use.kind in SHARED]
    details = []
    if misses:
        details.append(f"for {sum(misses) / len(misses):.0%} of it they have reads under way")
    next_ = max(shared, key=lambda use: use.utilisation, default=None)
    if next_ is not None and next_.utilisation >= NEAR:
        details.append(f"next: {next_.name}, {next_.utilisation:.0%} in use")
    return f"{why.resource} ({'; '.join(details)})" if details else why.resource
