"""What the engine's own steps cost: routing of commands, index operations, verbs of the fabric."""

from __future__ import annotations

from collections.abc import Iterator

from .bench import Bench

ROUTING = (
    "random keys in batches of 512: owner looked up, command of 16 bytes appended, full buffers "
    "copied to their targets; one thread"
)
LOOKUP = "random keys of a prefix tree of random 64-bit keys, all found, in batches; one thread"
UPSERT = "new values for random keys of a prefix tree of random 64-bit keys, in batches; one thread"
SCAN = "pairs of a prefix tree in order from random keys on, copied and summed; one thread"
FABRIC = "one request after the other between two threads; a put until it has landed"
MESSAGES = "a message and its echo between two threads; half a round trip"

# Of a buffer, and of a command.
HEADER_BYTES, COMMAND_BYTES = 16.0, 16.0
TARGETS = (2, 8, 64)
BUFFERS = (272, 528, 1_040, 2_064, 4_112)  # a header and 16 to 256 commands of 16 bytes
QUICK_TARGETS, QUICK_BUFFERS = (8,), (528, 2_064)
KEYS = (100_000, 1_000_000, 10_000_000)
QUICK_KEYS = (100_000,)
BATCHES = (1, 16, 256)
QUICK_BATCHES = (1, 256)
SCAN_PAIRS = 1_000
# What a key takes: 16 bytes in a bucket, which are not all full, and the nodes above; and room for
# the sample that is looked up.
BYTES_PER_KEY = 64

# How the two ends reach each other: the engine's name of it, and whether their processors do it.
# Threads stand in where there is no UCX.
TRANSPORTS = {
    "threads": ("threads", True),
    "shm": ("posix,self", True),
    "shm-ucx": ("posix,self", False),
    "tcp": ("tcp,self", False),
}
MESSAGE_SIZES = (8, 64, 1 << 10, 8 << 10, 64 << 10, 512 << 10)
QUICK_MESSAGE_SIZES = (64, 8 << 10)


def measure_routing(bench: Bench) -> Iterator[float]:
    """A command by number of targets and size of their buffers."""
    from ...engine_native._engine import routing

    cpu, quick = bench.layout.starts[0].cores[0], bench.effort.quick
    targets, buffers = (QUICK_TARGETS, QUICK_BUFFERS) if quick else (TARGETS, BUFFERS)
    cases = [(count, buffer) for count in targets for buffer in buffers]
    for at, (count, buffer) in enumerate(cases):
        samples = bench.run([(cpu, routing(count, buffer))], limit_s=0.2).ns_each()
        bench.add("routing", samples, "time", ROUTING, targets=count, buffer=buffer)
        yield (at + 1) / len(cases)


def measure_index(bench: Bench) -> Iterator[float]:
    """A key looked up and upserted by size of the index and of the batch; a pair of a scan."""
    from ...engine_native._engine import MeasuredIndex

    start, quick = bench.layout.starts[0], bench.effort.quick
    cpu = start.cores[0]
    sizes, batches = (QUICK_KEYS, QUICK_BATCHES) if quick else (KEYS, BATCHES)
    free = max(home.memory_bytes for home in bench.layout.homes)
    for at, keys in enumerate(sizes):
        if keys * BYTES_PER_KEY > free:
            bench.warn(f"index: not enough free memory for {keys:,} keys: not measured")
            break
        index = MeasuredIndex(keys)
        yield (at + 0.5) / len(sizes)
        for batch in batches:
            for name, maker, method in (
                ("index-lookup", index.lookups, LOOKUP),
                ("index-upsert", index.upserts, UPSERT),
            ):
                samples = bench.run([(cpu, maker(batch))], limit_s=0.3).ns_each()
                bench.add(name, samples, "time", method, keys=keys, batch=batch)
        samples = bench.run([(cpu, index.scans(SCAN_PAIRS))], limit_s=0.3).ns_each()
        bench.add("index-scan", samples, "time", SCAN, keys=keys, batch=SCAN_PAIRS)
        yield (at + 1) / len(sizes)


def measure_fabric(bench: Bench) -> Iterator[float]:
    """Verbs and messages by transport and size."""
    from ...engine_native._engine import HAS_UCX, FabricPair, Verb

    cpus = [cpu for node in bench.layout.starts for cpu in node.cores][:2]
    if len(cpus) < 2:
        bench.warn("fabric: one core alone has no other to reach: not measured")
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
            method = MESSAGES if verb is Verb.MESSAGE else FABRIC
            bench.add(f"fabric-{name}", samples, "time", method, size=size, transport=transport)
            yield (at + (k + 1) / len(cases)) / len(transports)
