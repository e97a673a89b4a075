"""ERIS: which worker owns what, what its operations demand, how partitions change hands."""
