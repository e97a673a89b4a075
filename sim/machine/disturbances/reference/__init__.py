"""Disturbances in plain Python: the twins of the compiled ones."""
