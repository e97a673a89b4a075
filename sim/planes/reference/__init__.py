"""The reference plane: models in plain SimPy, to read, and to check the compiled ones against."""
