"""Transactions on a cluster in plain SimPy: the specification of the compiled models."""
