"""A page on this computer to explore a scenario with: its fields as sliders, its machine in use."""

from .server import ExploreServer

__all__ = ["ExploreServer"]
