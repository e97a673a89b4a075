"""Default values of the cost model for facts that a machine file lacks, each with its source."""

from .assumptions import Assumed

# Latency over idle latency against load over peak bandwidth: the median of the loaded-latency
# curves that Intel MLC printed on 2-socket Ivy Bridge, Skylake and Ice Lake servers (public cluster
# documentation of KU Leuven). Used where a machine file has no curve of its own.
TYPICAL_LOADED_LATENCY = (
    (0.0, 1.0), (0.35, 1.15), (0.50, 1.27), (0.77, 1.60), (0.94, 1.95), (0.98, 2.4), (1.0, 2.8),
)  # fmt: skip

ASSUMED_IPC = Assumed(
    1.5, "instructions per cycle", "", "Estimate: index code with its data in the first caches",
    place=("ipc",),
)  # fmt: skip
ASSUMED_CLOCK_HZ = Assumed(
    2.5e9, "clock", "Hz", "Estimate: servers' base clocks are from 2 to 3.5 GHz",
    place=("clock",), between=(2e9, 3.5e9),
)  # fmt: skip
ASSUMED_OUTSTANDING_MISSES = Assumed(
    10.0, "outstanding misses of a core", "",
    "Line-fill buffers of Intel's cores, Nehalem to Broadwell (Intel Optimization Reference "
    "Manual)",
    place=("outstanding_misses",),
)  # fmt: skip
ASSUMED_STREAMING_MISSES = Assumed(
    16.0, "outstanding misses of a core that streams", "",
    "Entries of the super queue behind L2, Nehalem to Broadwell (Intel Optimization Reference "
    "Manual); at least as many as it has of single loads",
    place=("streaming_misses",),
)  # fmt: skip
# Exact MVA of a closed network of two stations, core and memory, gives 1/3 with three pieces of
# work, 1/6 with six. Loops of additions over memory gave 0.24 to 0.8 (benchmarks/stream_stall.py);
# their additions wait for each other, which those of a scan do not. Nothing was fitted.
ASSUMED_STREAM_STALL = Assumed(
    0.33, "stall of a stream whose instructions take as long as its lines", "",
    "Estimate: three pieces of work between a core and memory; loops of additions gave 0.24 to 0.8",
    place=("stream_stall",), between=(0.15, 0.6),
)  # fmt: skip
ASSUMED_LATENCY_NS = Assumed(
    100.0, "latency of memory", "ns", "Estimate: servers take 60 to 130 ns to their own memory",
    place=("pair_latency",), part="", between=(60.0, 130.0),
)  # fmt: skip

# What a written line costs a controller beyond its transfer, in times of a line. A switch to writes
# and back leaves the bus idle for tWTR + CL + 2 clocks: 7.5 + 14 + 2 ns (JEDEC JESD79-3 and -4); a
# controller writes some 16 lines before it turns back (the default of gem5's controllers); a line
# takes 2.5 ns (DDR4-3200) to 4.3 ns (DDR3-1866) of a channel: 0.34 to 0.59. How many lines it
# writes, no vendor tells: of 64 each costs 0.09, of 8 up to 1.2. Nothing was fitted. See
# ``line_times``.
ASSUMED_WRITE_TURNAROUND = Assumed(
    0.46, "turnaround of the memory bus per written line", "line times",
    "From JEDEC's timings and batches of 16 writes; 0.09 to 1.2 with 64 to 8; nothing was fitted",
    place=("memory", "write_turnaround"), between=(0.09, 1.2),
)  # fmt: skip
ASSUMED_PAGE_FAULT_NS = Assumed(
    800.0, "first touch of a page of 4 KiB", "ns",
    "Estimate: a fault, a page from the kernel's lists, its zeroing; 1.2 µs on a virtual host",
    place=("kernel", "page_fault"), between=(400.0, 2_000.0),
)  # fmt: skip
ASSUMED_HUGE_PAGE_FAULT_NS = Assumed(
    150e3, "first touch of a page of 2 MiB", "ns",
    "Estimate: 2 MiB are zeroed at 14 GB/s; 5 to 40 GB/s",
    place=("kernel", "huge_page_fault"), between=(50e3, 420e3),
)  # fmt: skip
ASSUMED_PAGE_UNMAP_NS = Assumed(
    150.0, "giving a touched page back", "ns", "Estimate; 0.23 µs on a virtual host",
    place=("kernel", "page_unmap"), between=(60.0, 400.0),
)  # fmt: skip
ASSUMED_MAPPING_NS = Assumed(
    3_000.0, "mapping and unmapping, besides pages", "ns", "Estimate; 3.7 µs on a virtual host",
    place=("kernel", "mapping"), between=(1_000.0, 8_000.0),
)  # fmt: skip
ASSUMED_INTERRUPT_NS = Assumed(
    600.0, "interrupt of another processor as memory is unmapped", "ns",
    "Estimate: of all, 70.8% of an munmap on two sockets (Kumar et al., Latr, ASPLOS 2018); "
    "9 µs each on a virtual host",
    place=("kernel", "interrupt"), between=(300.0, 9_000.0),
)  # fmt: skip
# What goes with a line, and a message without one, where a machine file has no such figures.
ASSUMED_HEADER_BYTES = Assumed(
    0.0, "header of a line on links", "B",
    "Not known: none counted; 8 B on QPI and HyperTransport (their specifications), at most 16",
    place=("data_header",), part="link_types", between=(0.0, 16.0),
)  # fmt: skip
ASSUMED_REQUEST_BYTES = Assumed(
    0.0, "request, snoop or answer on links", "B",
    "Not known: none counted; 8 B on QPI, 12 B on HyperTransport (their specifications)",
    place=("request",), part="link_types", between=(0.0, 16.0),
)  # fmt: skip
