"""ERIS on this host."""
