"""The compiled kernel's sources, and what Python shares with it: streams, sums."""
