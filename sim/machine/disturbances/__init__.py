"""What other tenants of a host do to a machine's parts."""
