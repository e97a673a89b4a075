"""What is validated of each system: its published results."""
