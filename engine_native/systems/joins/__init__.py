"""Distributed joins and aggregations between processes of this host."""
