"""The descriptor of a system: its scenario schema, its workloads and its planes.

A profile of an engine: its costs, independent of the machine.
"""

import dataclasses
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar, Protocol

from ...inputs import AnyPart, DescriptionError, Strict
from ...inputs.names import Name
from ...topologies import Machine
from ...topologies.schema_types import Misfit
from ...workloads import Workload
from ..control import Family
from ..machine.assumptions import LESS, MORE, Assumption, split_quantity, stated, times_value
from ..machine.memory_policy import MemoryField
from ..planes.plane import Change, Experiment


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


# Parts of a machine file that only some systems read.
OF_SOME = ("nics", "processes", "copy_engines")


@dataclass(frozen=True)
class Default:
    """Marks a field of a spec whose default is an assumption: it comes with a ``source``.

    ``between``: what else the value may well be, as a scenario says it; a tenth less and more where
    it is left out.
    """

    source: str
    between: tuple[Any, Any] | None = None


class SystemSpec(Strict):
    """What a scenario says of its system. A system's own spec adds its fields.

    ``kind``: the system's name. ``memory``: where objects lie, in Linux's words. ``PAUSE_MAX_S``:
    the longest pause of a client, on average, that planes which count time in whole steps can run.
    """

    kind: str
    memory: MemoryField | None = None

    PAUSE_MAX_S: ClassVar[float] = float("inf")

    def misfit(self, workload: Workload) -> str | None:
        """Why this cannot run ``workload``, whose operations it runs; None where it can."""
        return None

    def check(self, machine: Machine, workload: Workload) -> None:
        """Raises DescriptionError where the machine does not have what this says."""

    def notes(self, machine: Machine, workload: Workload) -> list[str]:
        """What the run has to say about what the scenario asks for, a sentence each."""
        return []

    def check_memory_of_hosts(self) -> None:
        """Of systems whose nodes are hosts of a cluster. Raises DescriptionError."""
        if self.memory is not None:
            raise DescriptionError(
                ("memory",),
                f"nodes of {self.kind} are hosts, each with its own memory: expected none",
            )

    def check_horizon(self, played_s: float) -> None:
        """Raises DescriptionError for a fault after the end, which would do nothing."""
        for index, fault in enumerate(getattr(self, "faults", ())):
            if fault.at is not None and fault.at.value >= played_s:
                raise DescriptionError(
                    ("faults", index, "at"),
                    f"{fault.subject} fails at {fault.at.value:g} s, after the horizon: expected "
                    f"less than {played_s:g} s",
                )

    def changes(self, machine: Machine) -> tuple[Change, ...]:
        """What happens to it while it runs, by time."""
        return ()

    def assumptions(self, machine: Machine) -> Iterator[Assumption]:
        """Fields marked as ``Default`` that the scenario leaves out; of one that is a group of
        numbers, each number that it leaves out and that ``machine`` does not know.
        """
        plain = self.model_dump(mode="json")
        for name, field in type(self).model_fields.items():
            mark = next((m for m in field.metadata if isinstance(m, Default)), None)
            if mark is None:
                continue
            group = getattr(self, name)
            if isinstance(group, Strict):
                for part in type(group).model_fields:
                    if part not in group.model_fields_set:
                        yield _of_field((name, part), getattr(group, part), mark)
            elif name not in self.model_fields_set:
                yield _of_field((name,), plain[name], mark)

    def arrival_streams(self, machine: Machine) -> int:
        """Into how many streams the arrivals of open clients are divided."""
        return 1


def _of_field(place: tuple[str, ...], value: Any, mark: Default) -> Assumption:
    number, unit = split_quantity(value)
    between = mark.between or (times_value(value, LESS), times_value(value, MORE))
    low, high = (stated(("system", *place), bound, unit) for bound in between)
    name = " of ".join([place[0].replace("_", " "), *place[1:]])
    return Assumption(name, number, unit, mark.source, low, high)


@dataclass(frozen=True)
class LazyImport:
    """Something of a module that is imported when it is first asked for."""

    module: str
    name: str

    def load(self) -> Any:
        """Imports the module."""
        return getattr(import_module(self.module), self.name)

    def __call__(self, *arguments: Any) -> Any:
        """Calls it, which is a function."""
        return self.load()(*arguments)


class Shaker(Protocol):
    """Runs random cases of a system, and checks each."""

    def finding(self, seed: int) -> dict[str, Any] | None:
        """What is wrong with the case of a seed: ``findings`` and the shrunk ``case``, in lines."""


@dataclass(frozen=True, eq=False)
class System:
    """The descriptor of a system.

    ``spec``: the model of a scenario's ``system``. ``operations``: kinds of operations of the
    workloads that it runs. ``families`` of policies, in the order in which they are asked.
    ``planes``: by name, what makes its model. For ``flow``, of an Experiment a ``FlowSystem``, or
    a ``Plane`` of the system's own; for
    planes that draw at random, of an Experiment and the number of a replication a ``RandomPlane``
    (a ``Maker``). Planes that run an engine for real: ``run.real_planes``.
    ``machine_parts``: those of ``OF_SOME`` of a machine file that it reads.
    ``facts``: what a machine file may say, in its ``engines`` under the system's name, of what such
    an engine was measured to take there; None where nothing.
    ``profile``: what a profile of an engine of this kind may say (see ``EngineProfile``); None
    where there are no such profiles.
    ``assumptions``: of an Experiment, what its own model counts with that nobody stated (see
    ``machine.assumptions``); fields that a scenario leaves out are in the spec's.
    ``trainers``: by family of policies, what trains models for it: of a machine, a number of
    observations, a seed, a plane, what is told the part that is done (or None), a machine to be
    scored on, too (or None), and how many observations it learns online from (or None).
    ``shaker``: of what loads the scenario with other settings, a ``Shaker``; None where none.
    ``threshold``: what finds the fact of a machine that the system's policies go by, of a machine,
    a plane, and what is told the part that is done (or None); None where there is none.
    ``pictures``: of a Record (``planes.pictures.PicturedRecord``), what a report shows besides
    what all systems have in common; None where nothing.
    """

    name: str
    spec: type[SystemSpec]
    operations: tuple[str, ...]
    planes: Mapping[str, LazyImport]
    families: tuple[Family, ...] = ()
    machine_parts: tuple[str, ...] = ()
    facts: type[Strict] | None = None
    profile: type[EngineProfile] | None = None
    assumptions: LazyImport | None = None
    trainers: Mapping[str, LazyImport] = dataclasses.field(default_factory=dict)
    shaker: LazyImport | None = None
    threshold: LazyImport | None = None
    pictures: LazyImport | None = None

    def reads(self, path: str) -> bool:
        """Whether it reads the fact of a machine file at that dotted path."""
        part, *rest = path.split(".")
        if part == "engines":
            return rest[:1] == [self.name]
        return part not in OF_SOME or part in self.machine_parts

    def model(self, plane: str) -> Any:
        """What makes its model on that plane."""
        return self.planes[plane].load()

    def family(self, name: str) -> Family | None:
        """The family of that name; None where it has none such."""
        return next((family for family in self.families if family.name == name), None)
