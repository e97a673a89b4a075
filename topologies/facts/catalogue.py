"""The catalogue of facts: its files read as one, and the entry of a processor found in it."""

import csv
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from ...inputs import DescriptionError, InputError, load_yaml
from ..schema import ProcessorIdentity
from .schema import Core, Facts, Guess, Links, Model, Processor

FOLDER = Path(__file__).parent
PARTS = ("memory_types", "memory_nodes", "interconnects", "cores", "processors", "adapters")


@dataclass(frozen=True)
class Entry:
    """A processor of the catalogue: its name there, its facts, and those of its model."""

    name: str
    processor: Processor
    model: Model
    model_name: str | None = None

    @property
    def label(self) -> str:
        """What stands in the source of each value taken from it."""
        return self.name if self.model_name is None else f"{self.name}, {self.model_name}"

    @property
    def threads_per_core(self) -> int:
        """Of the model, else as many as its microarchitecture has."""
        return self.model.threads or core_of(self).threads

    @property
    def links(self) -> Links | None:
        """Of a socket: as many and as fast as the model has."""
        known, model = self.processor.links, self.model
        if known is None:
            return None
        changed: dict[str, object] = {"rate": model.link_rate or known.rate}
        if model.links is not None:
            changed |= {"count": model.links, "fewest": None}
        return known.model_copy(update=changed)

    @property
    def cores(self) -> int:
        """Cores of a socket; raises InputError where the model's are unknown."""
        if self.model.cores is None:
            raise InputError(
                f"cores unknown: the catalogue has {self.processor.title}, but not this model",
                token=self.model_name,
                expected="--cores N, the cores of one processor",
            )
        return self.model.cores


@cache
def facts() -> Facts:
    """All files as one; raises InputError where one is wrong."""
    whole: dict[str, dict[str, object]] = {}
    guesses: tuple[Guess, ...] = ()
    for path in sorted(FOLDER.glob("*.yaml")):
        document = load_yaml(path)
        read = document.read_as(Facts)
        guesses += read.guesses
        for part in PARTS:
            known = whole.setdefault(part, {})
            for name, entry in getattr(read, part).items():
                if name in known:
                    raise document.error((part, name), f"'{name}' is in another file, too")
                known[name] = entry
    _add_models(whole["processors"])
    joined = Facts.model_construct(**whole, guesses=guesses)  # type: ignore[arg-type]
    for problem in _unknown_names(joined):
        raise DescriptionError((), problem)
    return joined


def _add_models(processors: dict[str, object]) -> None:
    """Models of the table: what an entry says of one of its own counts more."""
    with (FOLDER / "models.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            processor = processors.get(row["entry"])
            if not isinstance(processor, Processor):
                raise DescriptionError((), f"models.csv: unknown processor '{row['entry']}'")
            cores = int(row["cores"])
            given: dict[str, object] = {"cores": cores, "threads": int(row["threads"]) // cores}
            if row["clock_GHz"]:
                given["clock"] = f"{row['clock_GHz']} GHz"
            if row["cache_MiB"]:
                given["cache"] = f"{row['cache_MiB']} MiB"
            given |= {name: int(row[name]) for name in ("caches", "links") if row[name]}
            known = processor.models.get(row["model"], Model())
            own = {name: getattr(known, name) for name in known.model_fields_set}
            processor.models[row["model"]] = Model.model_validate(given).model_copy(update=own)


def _unknown_names(joined: Facts) -> Iterator[str]:
    for name, processor in joined.processors.items():
        used: list[tuple[str, str, Mapping[str, object]]] = [("core", processor.core, joined.cores)]
        memory = processor.memory
        models = processor.models.values()
        used += [
            ("memory type", kind, joined.memory_types)
            for kind in (memory.type, memory.slowest, *(model.memory for model in models))
            if kind is not None
        ]
        used += [
            ("interconnect", links.type, joined.interconnects)
            for links in (processor.links, processor.die_link)
            if links is not None
        ]
        for what, wanted, known in used:
            if wanted not in known:
                yield f"facts: processor {name}: unknown {what} '{wanted}'"
    for guess in joined.guesses:
        if guess.core not in joined.cores:
            yield f"facts: {guess.title}: unknown core '{guess.core}'"


def find(identity: ProcessorIdentity | None) -> Entry | None:
    """The entry of a processor, None where the catalogue has none.

    Its model's name counts before its numbers, which virtual machines often keep while they hide
    the name; of entries with the same numbers, that of the board's maker.
    """
    if identity is None:
        return None
    known = facts().processors
    if identity.model_name is not None:
        for name, processor in known.items():
            if any(
                re.search(each.pattern, identity.model_name, re.IGNORECASE)
                for each in processor.names
            ):
                return _entry(name, processor, identity.model_name)
    fitting = [name for name, processor in known.items() if _has_numbers(processor, identity)]
    board = (identity.board or "").casefold()
    fitting.sort(key=lambda name: known[name].board is None)  # the special before the general
    for name in fitting:
        wanted = known[name].board
        if wanted is None or wanted.casefold() in board:
            return _entry(name, known[name], identity.model_name or "")
    return None


def named(model_name: str, cores: int | None = None) -> Entry:
    """The entry that a user names; ``cores``: of one processor, as the user says.

    Raises InputError where the catalogue has no such processor.
    """
    entry = find(ProcessorIdentity(model_name=model_name))
    if entry is None:
        raise InputError(
            "no such processor in the catalogue of facts",
            token=model_name,
            expected="the name of a model, such as 'Xeon Gold 6148' or 'EPYC 7763'",
        )
    if entry.model_name is None:
        entry = replace(entry, model_name=model_name)
    if cores is None:
        return entry
    if cores > (entry.model.cores or cores):
        raise InputError(
            f"more cores than {entry.model_name} has",
            token=str(cores),
            expected=f"{entry.model.cores} at most",
        )
    return replace(entry, model=entry.model.model_copy(update={"cores": cores}))


def with_modules(entry: Entry, modules: str) -> Entry:
    """With the memory modules of a socket, such as ``DDR4-2666`` or ``2xDDR5-4400`` (two channels
    have some). Raises InputError for others.
    """
    count, _, kind = modules.rpartition("x")
    memory = entry.processor.memory
    channels = int(count) if count.isdecimal() else 0 if count else memory.channels
    made = {name.partition("-")[0] for name in (memory.type, memory.slowest or memory.type)}
    other = kind[:3] == "DDR" == min(made)[:3] and kind.partition("-")[0] not in made
    if other or kind not in facts().memory_types or not 1 <= channels <= memory.channels:
        raise InputError(
            "no such memory modules of a socket",
            token=modules,
            expected=f"a type, such as {memory.type}, or {memory.channels // 2 or 1}x{memory.type} "
            f"where only so many of {memory.channels} channels have modules",
        )
    fitted = memory.model_copy(update={"channels": channels, "type": kind, "slowest": None})
    return replace(
        entry,
        processor=entry.processor.model_copy(update={"memory": fitted}),
        model=entry.model.model_copy(update={"memory": None}),
    )


def _has_numbers(processor: Processor, identity: ProcessorIdentity) -> bool:
    return (
        any(
            identity.vendor == known.vendor
            and identity.family == known.family
            and (not known.models or identity.model in known.models)
            and (
                known.steppings is None
                or identity.stepping is None
                or known.steppings[0] <= identity.stepping <= known.steppings[1]
            )
            for known in processor.cpuid
        )
        or any(
            identity.implementer == known.implementer
            and (not known.parts or identity.part in known.parts)
            for known in processor.midr
        )
        or identity.pvr in processor.pvr
    )


def _entry(name: str, processor: Processor, model_name: str) -> Entry:
    """With the longest model whose name is a word of ``model_name``."""
    # 'E7- 4870' and 'E5-2660  v2' are written with more blanks than people write.
    plain = re.sub(r"\s+", " ", re.sub(r"-\s+", "-", model_name))
    for text in sorted(processor.models, key=len, reverse=True):
        if re.search(rf"(?<![\w-]){re.escape(text)}(?![\w+])", plain, re.IGNORECASE):
            return Entry(name, processor, processor.models[text], text)
    return Entry(name, processor, Model())


def guess_for(identity: ProcessorIdentity | None) -> Guess:
    """What is said of a processor that the catalogue does not have."""
    vendor = None if identity is None else identity.vendor
    return next(guess for guess in facts().guesses if not guess.vendors or vendor in guess.vendors)


def core_of(entry: Entry | Guess) -> Core:
    """The microarchitecture of an entry."""
    return facts().cores[entry.processor.core if isinstance(entry, Entry) else entry.core]
