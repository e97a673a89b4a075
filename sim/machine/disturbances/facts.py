"""Interruptions of a machine's cores by other programs, from its file."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ....inputs import InputError
from ....topologies.schema import DISTURBANCE_MAX_S, DISTURBANCE_MIN_S, MachineDescription
from ... import _kernel
from ...kernel.picoseconds import PS_PER_S
from ...kernel.streams import stream_key

# Each is drawn by itself, and the longest of all draws is 37 times the mean.
DISTURBANCE_MIN_PS = float(round(PS_PER_S * DISTURBANCE_MIN_S))
DISTURBANCE_MAX_PS = PS_PER_S * DISTURBANCE_MAX_S
STREAM = "{} interruptions"


@dataclass(frozen=True)
class Interruptions:
    """Times in which a core stands still: a timer's handler, an exit to the hypervisor.

    ``every_ps``: from the end of one to the beginning of the next on average, exponentially
    distributed; ``length_ps`` (K,): of each kind; ``share`` (K,): which of all are of this kind or
    one before it, up to 1. Raises InputError where planes cannot count them.
    """

    every_ps: float
    length_ps: tuple[float, ...]
    share: tuple[float, ...]

    def __post_init__(self) -> None:
        if not DISTURBANCE_MIN_PS <= self.every_ps <= DISTURBANCE_MAX_PS:
            raise InputError(
                "every_ps of interruptions",
                token=f"{self.every_ps:g}",
                expected="from 1,000 to 10^17",
            )
        for length_ps in self.length_ps:
            if not 0 <= length_ps <= DISTURBANCE_MAX_PS:
                raise InputError(
                    "length_ps of interruptions", token=f"{length_ps:g}", expected="from 0 to 10^17"
                )
        rises = all(a <= b for a, b in pairwise((0.0, *self.share, 1.0)))
        if not (len(self.length_ps) == len(self.share) > 0 and rises and self.share[-1] == 1.0):
            raise InputError(
                "share of interruptions",
                token=str(self.share),
                expected="one for each length, rising to 1",
            )


class Disturbances:
    """Of a machine. ``interruptions``: None where it has none; ``left``: the share of a core's time
    that they leave it, on average."""

    def __init__(self, description: MachineDescription) -> None:
        found = description.interruptions
        self.interruptions: Interruptions | None = None
        self.left = 1.0
        if not found:
            return
        length_s = np.array([interruption.length.value for interruption in found], dtype=np.float64)
        rate_per_s = 1.0 / np.array(
            [interruption.every.value for interruption in found], dtype=np.float64
        )
        self.left = 1.0 / (1.0 + float(length_s @ rate_per_s))
        every_s, share = 1.0 / float(rate_per_s.sum()), np.cumsum(rate_per_s)
        share /= rate_per_s.sum()
        share[-1] = 1.0
        self.interruptions = Interruptions(
            PS_PER_S * every_s, tuple((PS_PER_S * length_s).tolist()), tuple(share.tolist())
        )

    def compiled(self, cores: Sequence[str], seed: int, replication: int) -> _kernel.Disturbances:
        """For the kernel's models: of cores by these names, each with a stream of its own."""
        if (interruption := self.interruptions) is None:
            return _kernel.Disturbances()
        keys = [stream_key(seed, replication, STREAM.format(core)) for core in cores]
        return _kernel.Disturbances(
            interruption.every_ps, interruption.length_ps, interruption.share, keys
        )
