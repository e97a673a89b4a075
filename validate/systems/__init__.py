"""What validation has of each system, in a folder or file by the system's name."""
