"""Exit statuses that several commands return."""

BAD_INPUT = 2
INTERRUPTED = 130
