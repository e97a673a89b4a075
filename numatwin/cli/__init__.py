"""The command line: what a user types, what is printed, which status is returned."""

from .app import main

__all__ = ["main"]
