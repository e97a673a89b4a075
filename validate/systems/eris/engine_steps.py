"""What single steps of an engine cost: routing of commands, operations on an index."""

from collections.abc import Iterator

from ...measure.bench import Bench, methods_of

METHODS = methods_of("index")

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


def measure_routing(bench: Bench) -> Iterator[float]:
    """A command by number of targets and size of their buffers."""
    from ....engine_native._engine import routing

    cpu, quick = bench.layout.starts[0].cores[0], bench.effort.quick
    targets, buffers = (QUICK_TARGETS, QUICK_BUFFERS) if quick else (TARGETS, BUFFERS)
    cases = [(count, buffer) for count in targets for buffer in buffers]
    for index, (count, buffer) in enumerate(cases):
        samples = bench.run([(cpu, routing(count, buffer))], limit_s=0.2).ns_each()
        bench.add("routing", samples, "time", METHODS["routing"], targets=count, buffer=buffer)
        yield (index + 1) / len(cases)


def measure_index(bench: Bench) -> Iterator[float]:
    """A key looked up and upserted by size of the index and of the batch; a pair of a scan."""
    from ....engine_native._engine import MeasuredIndex

    start, quick = bench.layout.starts[0], bench.effort.quick
    cpu = start.cores[0]
    sizes, batches = (QUICK_KEYS, QUICK_BATCHES) if quick else (KEYS, BATCHES)
    free = max(home.memory_bytes for home in bench.layout.homes)
    for size_index, keys in enumerate(sizes):
        if keys * BYTES_PER_KEY > free:
            bench.warn(f"index: not enough free memory for {keys:,} keys: not measured")
            break
        index = MeasuredIndex(keys)
        yield (size_index + 0.5) / len(sizes)
        for batch in batches:
            for name, maker in (("index-lookup", index.lookups), ("index-upsert", index.upserts)):
                samples = bench.run([(cpu, maker(batch))], limit_s=0.3).ns_each()
                bench.add(name, samples, "time", METHODS[name], keys=keys, batch=batch)
        samples = bench.run([(cpu, index.scans(SCAN_PAIRS))], limit_s=0.3).ns_each()
        bench.add("index-scan", samples, "time", METHODS["index-scan"], keys=keys, batch=SCAN_PAIRS)
        yield (size_index + 1) / len(sizes)
