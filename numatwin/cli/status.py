"""Exit statuses that several commands return."""

INTERRUPTED = 130
