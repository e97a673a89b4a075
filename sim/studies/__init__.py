"""Studies: designs of many runs, their workers, their store, and the analysis of their rows."""
