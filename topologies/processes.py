"""Measured costs of processes on one host: scheduling, shared memory, messages.

These are facts about single steps (``numatwin machine measure``, part ``processes``); how a system
makes its work of them is that system's affair.
"""

from ..inputs.quantities import Duration
from ..inputs.yaml_file import Strict


class ProcessFacts(Strict):
    """Of a host.

    ``slice``: how long a process runs while another one waits for its processor. ``turn``: giving
    way until the other process runs and has its data in its caches again, ``give_way`` where none
    waits. ``clock``: a look at it. ``word_get``, ``words_get``: reading 8 bytes and 8 KiB that a
    cache holds; ``word_add``: an atomic add. ``line``: a cache line from core to core.
    """

    slice: Duration
    turn: Duration
    give_way: Duration
    clock: Duration
    word_get: Duration
    words_get: Duration
    word_add: Duration
    line: Duration | None = None
