"""What hardware does: facts of a machine as costs, and its parts as events."""
