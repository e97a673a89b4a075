"""The native engine: runs a scenario for real, on this host, under the simulator's policies."""
