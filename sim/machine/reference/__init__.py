"""The machine's parts in plain SimPy."""
