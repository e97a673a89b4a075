"""ERIS in plain SimPy: the specification, and the oracle of the compiled model."""
