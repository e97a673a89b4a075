"""Studies: designs of many runs, their workers, their store, and what is read from their rows."""
