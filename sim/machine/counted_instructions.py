"""Cycles of a counted program's instructions and mispredicted branches: bounds, and a middle.

Mispredicted branches are counted apart, so instructions per cycle are those without them.
"""

from __future__ import annotations

# Between instructions that each wait for the one before, and what a core dispatches per cycle (8:
# Zen 5, Lion Cove; 6: Zen 3 and 4, Golden Cove; 4: Nehalem to Skylake). Counts do not show what
# depends on what: the geometric mean is used where a machine file states no IPC.
IPC_LEAST, IPC_MOST = 1.0, 8.0
IPC_MIDDLE = (IPC_LEAST * IPC_MOST) ** 0.5

# Cycles of a mispredicted branch: 11 to 18, mostly 13 (AMD, Software Optimization Guide for Family
# 19h); 12 to 18, mostly 16 (for Family 17h); 15 to 20 (Intel, Optimization Reference Manual).
MISPREDICTION_CYCLES = 15.0
MISPREDICTION_CYCLES_LEAST, MISPREDICTION_CYCLES_MOST = 11.0, 20.0
