"""The systems that a scenario may run, a folder each."""
