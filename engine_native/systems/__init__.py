"""The systems that the native engine runs, a folder each."""
