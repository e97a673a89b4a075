"""How instructions and misses overlap, as ``kernel/overlap.hpp``."""


def overlapped(instructions: float, misses: float, stall: float) -> float:
    """How long both take together; ``stall``: of a stream, what is left where both take as long."""
    longer, shorter = max(instructions, misses), min(instructions, misses)
    if not (stall > 0 and shorter > 0):
        return longer
    part = shorter / longer
    return longer * (1.0 + 3.0 * stall * (part * part * part) / (1.0 + part + part * part))
