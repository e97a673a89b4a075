"""Transactions between processes of this host."""
