"""The model of a cluster that joins, in SimPy."""
