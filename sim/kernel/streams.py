"""Named random streams: the same draws for the same (seed, replication, name), on any plane.

Two alternatives that use the same names draw the same numbers: common random numbers come for free.
"""

import hashlib

from .._kernel import Stream


def stream_key(seed: int, replication: int, name: str) -> tuple[int, int]:
    """The Philox key, two 64-bit words, of the stream of that name."""
    digest = hashlib.sha256(f"{seed}/{replication}/{name}".encode()).digest()
    return int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:16], "little")


def stream(seed: int, replication: int, name: str) -> Stream:
    """The stream of that name, from its beginning."""
    return Stream(*stream_key(seed, replication, name))
