"""The tasks system in plain SimPy: the readable specification of its compiled model."""
