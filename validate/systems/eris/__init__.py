"""ERIS: its published results, and what is measured and fitted of its engine."""
