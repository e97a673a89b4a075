"""Time, runs and results: scenarios, records, replications and their statistics."""
