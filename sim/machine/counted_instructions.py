"""Times of a counted program's instructions, branches and system calls: bounds, and a middle.

Mispredicted branches are counted apart, so instructions per cycle are those without them; a
comparison and the branch behind it are one, as processors execute them as one.
"""

# Between instructions that each wait for the one before, and what a core dispatches per cycle (8:
# Zen 5, Lion Cove; 6: Zen 3 and 4, Golden Cove; 4: Nehalem to Skylake). Counts do not show what
# depends on what: the geometric mean is used where a machine file states no IPC.
IPC_LEAST, IPC_MOST = 1.0, 8.0
IPC_MIDDLE = (IPC_LEAST * IPC_MOST) ** 0.5

# Cycles of a mispredicted branch: 11 to 18, mostly 13 (AMD, Software Optimization Guide for Family
# 19h); 12 to 18, mostly 16 (for Family 17h); 15 to 20 (Intel, Optimization Reference Manual).
MISPREDICTION_CYCLES = 15.0
MISPREDICTION_CYCLES_LEAST, MISPREDICTION_CYCLES_MOST = 11.0, 20.0

# Cycles of an instruction fetch that misses the first cache: 12 or more (AMD, Software Optimization
# Guide for Family 19h), 14 (Intel, Optimization Reference Manual, second cache of Golden Cove).
FETCH_MISS_CYCLES = 14.0

# A system call that does nothing, where a machine file does not state it. Estimate, not verified:
# 40 ns on a core without mitigations of side channels, some hundreds with all of them; the
# geometric mean of both ends.
SYSTEM_CALL_NS_LEAST, SYSTEM_CALL_NS_MOST = 40.0, 500.0
SYSTEM_CALL_NS = (SYSTEM_CALL_NS_LEAST * SYSTEM_CALL_NS_MOST) ** 0.5
