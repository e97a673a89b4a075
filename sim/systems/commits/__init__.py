"""Commit protocols on a cluster: snapshot isolation by 2PC and by one-sided verbs (RSI)."""
