"""Effects of other tenants of a host on a machine's parts."""
