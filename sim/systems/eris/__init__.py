"""ERIS: ownership of partitions, demands of its operations, transfers."""
