"""A profile of an engine: its costs, independent of the machine."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping

from ...inputs import AnyPart, Strict
from ...inputs.names import Name
from ...topologies import Machine
from ...topologies.schema_types import Misfit
from ..planes.experiment import Experiment


class EngineProfile(Strict):
    """The ``facts`` of a profile. A system's own class adds fields, each a ``Fact`` or None."""

    @classmethod
    @abstractmethod
    def in_play(cls, experiment: Experiment) -> Mapping[str, float]:
        """The facts that a run of this meets, by field, each with what counts where it is left
        out.
        """

    @classmethod
    def serial(cls, experiment: Experiment) -> Mapping[str, float]:
        """Its facts that say what one thread at a time does, each with the instructions that such a
        section executes per second; by default there are none.
        """
        return {}

    @abstractmethod
    def on(self, machine: Machine) -> Strict:
        """What such an engine takes on ``machine``: the ``facts`` of its system there.

        Their ranges count as doubts, so that what is predicted from them is an interval.
        """


class ProfileFile(Strict):
    """A profile's file: ``system``, the kind of system that the engine is of, and its ``facts``.

    ``source``: what they were fitted to, ``misfit``: how well. Planes read ``facts`` alone.
    """

    name: Name
    title: str = ""
    system: Name
    source: str | None = None
    notes: tuple[str, ...] = ()
    misfit: Misfit | None = None
    facts: AnyPart
