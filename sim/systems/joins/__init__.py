"""Joins and aggregations across a cluster: operators that exchange rows over its network."""
