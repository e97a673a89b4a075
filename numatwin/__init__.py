"""numatwin predicts how in-memory databases behave on NUMA machines and RDMA clusters."""

from ._version import __version__

__all__ = ["__version__"]
