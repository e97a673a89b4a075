"""planes."""
