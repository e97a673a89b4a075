"""The catalogue of facts: what is known of processors, memory and links that trees do not tell."""

from .catalogue import Entry, facts, find, guess_for
from .complete import Completed, complete

__all__ = ["Completed", "Entry", "complete", "facts", "find", "guess_for"]
