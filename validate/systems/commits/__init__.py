"""Transactions on a cluster: published results, and what is measured and fitted of the engine."""
