"""Queries of a column store as tasks on sockets: placement, stealing, elastic cores."""
