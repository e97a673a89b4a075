"""Queries of a column store as tasks, for real: tables, scheduler and operators of this host."""
