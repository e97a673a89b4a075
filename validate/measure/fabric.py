"""What verbs and messages of the fabric take between two threads."""

from collections.abc import Iterator

from .bench import Bench, methods_of

METHODS = methods_of("fabric")
# How the two ends reach each other: the engine's name of it, and whether their processors do it.
# Threads stand in where there is no UCX.
TRANSPORTS = {
    "threads": ("threads", True),
    "shm": ("posix,self", True),
    "shm-ucx": ("posix,self", False),
    "tcp": ("tcp,self", False),
}
EXCHANGED = ("shm", "tcp")
EXCHANGE_SIZES, EXCHANGE_BATCH = (64, 1 << 9, 2 << 10, 16 << 10), 64
MESSAGE_SIZES = (8, 64, 1 << 10, 8 << 10, 64 << 10, 512 << 10)
QUICK_MESSAGE_SIZES = (64, 8 << 10)


def measure(bench: Bench) -> Iterator[float]:
    """Verbs and messages by transport and size."""
    from ...engine_native._engine import HAS_UCX, FabricPair, Verb

    cpus = bench.layout.cores[:2]
    if len(cpus) < 2:
        bench.warn("fabric: not measured: there is only one core")
        return
    if not HAS_UCX:
        bench.warn("fabric: numatwin was built without UCX (Debian: libucx-dev): threads only")
    sizes = QUICK_MESSAGE_SIZES if bench.effort.quick else MESSAGE_SIZES
    verbs = {"get": Verb.GET, "put": Verb.PUT, "message": Verb.MESSAGE}
    words = {"compare-and-swap": Verb.COMPARE_AND_SWAP, "fetch-add": Verb.FETCH_ADD}
    cases = [(name, verb, 8) for name, verb in words.items()]
    cases += [(name, verb, size) for name, verb in verbs.items() for size in sizes]
    transports = {name: how for name, how in TRANSPORTS.items() if (name == "threads") != HAS_UCX}
    for at, (transport, (named, direct)) in enumerate(transports.items()):
        try:
            pair = FabricPair(named, direct)
        except RuntimeError as failure:
            bench.warn(f"fabric: no transport {transport}: {failure}")
            continue
        for k, (name, verb, size) in enumerate(cases):
            members = [(cpus[0], pair.ask(verb, size)), (cpus[1], pair.answer())]
            samples = bench.run(members, limit_s=0.1).ns_each()
            method = METHODS["message" if verb is Verb.MESSAGE else "request"]
            bench.add(f"fabric-{name}", samples, "time", method, size=size, transport=transport)
            yield (at + (k + 1) / len(cases)) / len(transports)


def exchanges(bench: Bench) -> Iterator[float]:
    """Messages and puts both ways, by transport and size: what each end takes for both."""
    from ...engine_native._engine import HAS_UCX, FabricPair, Verb

    cpus = bench.layout.cores[:2]
    if len(cpus) < 2 or not HAS_UCX:
        bench.warn("fabric: no exchanges without two cores and UCX (Debian: libucx-dev)")
        return
    sizes = (EXCHANGE_SIZES[0], EXCHANGE_SIZES[-2]) if bench.effort.quick else EXCHANGE_SIZES
    cases = [(verb, size) for verb in ("message", "put") for size in sizes]
    for at, transport in enumerate(EXCHANGED):
        try:
            pair = FabricPair(*TRANSPORTS[transport])
        except RuntimeError as failure:
            bench.warn(f"fabric: no transport {transport}: {failure}")
            continue
        for k, (verb, size) in enumerate(cases):
            of = Verb.MESSAGE if verb == "message" else Verb.PUT
            members = [
                (cpu, pair.exchange(of, size, EXCHANGE_BATCH, leads))
                for cpu, leads in zip(cpus, (True, False), strict=True)
            ]
            samples = bench.run(members, limit_s=0.1).ns_each()
            bench.add(
                "fabric-exchange", samples, "time", METHODS["exchange"], size=size,
                transport=transport, operation=verb,
            )  # fmt: skip
            yield (at + (k + 1) / len(cases)) / len(EXCHANGED)
