"""The unit of time of all models, which count in whole picoseconds; elsewhere times are seconds."""

PS_PER_S = 1e12
