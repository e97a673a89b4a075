"""The compiled engine: ERIS and RSI on this host."""

HAS_UCX: bool
"""Whether UCX's headers were there when the module was built."""
