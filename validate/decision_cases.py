"""Decisions that were measured, as cases: what was measured, and scenarios that predict it.

A case is a YAML file: a ``scenario``, and ``alternatives`` of it, each with what was measured of it
(``docs/decisions.md`` describes the form). No measured value is an input of its own prediction.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from ..inputs import DescriptionError, InputError, Strict, load_yaml
from ..inputs.names import Name
from ..inputs.yaml_file import Document, Place
from ..sim.run.numactl import numactl_settings
from ..sim.run.scenario import Scenario, extended, scenario_of_document

FOLDER = Path(__file__).parent / "decisions"
KEY = "alternatives"  # a file that has it is a case; others are machines, workloads, READMEs


def _range(raw: Any) -> Any:
    """A number, or the two ends of a range."""
    ends = raw if isinstance(raw, (list, tuple)) else [raw, raw]
    if len(ends) != 2 or any(
        isinstance(end, bool) or not isinstance(end, (int, float)) or not end > 0 for end in ends
    ):
        raise ValueError("expected a number above 0, or the ends of a range, such as [58.3, 65.9]")
    if ends[0] > ends[1]:
        raise ValueError("expected the lower end of the range first")
    return tuple(float(end) for end in ends)


Range = Annotated[
    tuple[float, float], BeforeValidator(_range, json_schema_input_type=float | tuple[float, float])
]


class Alternative(Strict):
    """``set``: settings as for ``--set``; ``numactl``: the options that it ran with. ``measured``:
    its level, in the case's unit; ``ratio``: to the baseline, where no level is known. ``note``:
    why the prediction misses.
    """

    set: tuple[str, ...] = ()
    numactl: str | None = None
    measured: Range | None = None
    ratio: Range | None = None
    note: str = ""

    @property
    def settings(self) -> list[str]:
        """All of them, as for ``--set``."""
        return [*(numactl_settings(self.numactl) if self.numactl else []), *self.set]


class Case(Strict):
    """A decision. ``operation``: whose rate is compared; a rate times ``per_operation`` is a level
    in ``unit``. ``baseline``: what ratios are to, the first alternative by default. ``inputs``:
    alternatives whose level facts of the machine come from; these levels, and ratios of two of
    them, are not scored. ``equal_within``: ratios this near to 1 are no difference. ``typical``:
    what the source does not say, and has ranges. ``not_modelled``: what is not predicted, and why.
    """

    name: Name
    title: str
    source: str
    scenario: dict[str, Any] | None = None
    operation: str | None = None
    per_operation: Annotated[float, Field(gt=0)] | None = None
    unit: str = ""
    alternatives: Annotated[dict[Name, Alternative], Field(min_length=2)]
    baseline: Name | None = None
    inputs: tuple[Name, ...] = ()
    equal_within: Annotated[float, Field(ge=0, lt=1)] = 0.02
    typical: tuple[str, ...] = ()
    not_modelled: str = ""
    note: str = ""

    def _fits(self) -> None:
        if (self.scenario is None) != bool(self.not_modelled):
            raise ValueError("expected either a 'scenario', or why it is 'not_modelled'")
        for field, names in (("baseline", [self.first]), ("inputs", self.inputs)):
            for name in names:
                if name not in self.alternatives:
                    listed = ", ".join(self.alternatives)
                    raise DescriptionError((field,), f"no alternative '{name}': one of {listed}")
        for name, one in self.alternatives.items():
            place = (KEY, name)
            if one.ratio is not None and (one.measured is not None or name == self.first):
                raise DescriptionError(
                    (*place, "ratio"), "expected none, beside a level or of the baseline"
                )
            base = self.alternatives[self.first].measured
            if name != self.first and one.ratio is None and (one.measured is None or base is None):
                raise DescriptionError(place, "expected 'ratio', or 'measured' here and there")

    @property
    def first(self) -> str:
        """The baseline's name."""
        return self.baseline or next(iter(self.alternatives))

    @property
    def publication(self) -> str:
        """The source, without what of it: cases of one are no evidence for each other."""
        return self.source.partition(",")[0]

    def ratio(self, name: str) -> tuple[float, float]:
        """What was measured of an alternative to the baseline: the ends of a range."""
        one, base = self.alternatives[name], self.alternatives[self.first].measured
        if one.ratio is not None:
            return one.ratio
        assert one.measured is not None
        assert base is not None
        return one.measured[0] / base[1], one.measured[1] / base[0]


class CaseFile:
    """A case with its document, which says where its parts stand."""

    def __init__(self, path: Path) -> None:
        self.document = load_yaml(path)
        self.case = self.document.read_as(Case)

    def scenario(self, alternative: str, further: Sequence[str] = ()) -> Scenario:
        """The scenario of an alternative. Raises InputError."""
        own = self.case.alternatives[alternative]
        document = _part(self.document, ("scenario",))
        document.value = {"name": f"{self.case.name}-{alternative}", **document.value}
        try:
            return scenario_of_document(extended(document), [*own.settings, *further])
        except InputError as failure:
            setting = (failure.file or "").removeprefix("--set ")
            if failure.line is not None or setting in further:
                raise
            place: Place = ("set", own.set.index(setting)) if setting in own.set else ()
            message = f"{setting}: {failure.message}" if setting else failure.message
            raise self.document.error(
                (KEY, alternative, *place), message, token=failure.token, expected=failure.expected
            ) from None


def case_files(folder: Path | None = None, id_: str | None = None) -> list[CaseFile]:
    """All cases of a folder, by name, or the one of that name. Raises InputError for none."""
    folder = folder or FOLDER
    paths = sorted(folder.glob("*.yaml")) if folder.is_dir() else []
    found = []
    for path in paths:
        document = load_yaml(path)
        if isinstance(document.value, dict) and KEY in document.value:
            found.append(CaseFile(path))
    if not found:
        raise InputError(
            "no cases", str(folder), expected=f"YAML files with '{KEY}' (docs/decisions.md)"
        )
    names = [file.case.name for file in found]
    for name in names:
        if names.count(name) > 1:
            raise InputError("two cases of one name", str(folder), token=name)
    if id_ is None:
        return found
    if id_ not in names:
        raise InputError("unknown case", token=id_, expected=f"one of {', '.join(names)}")
    return [found[names.index(id_)]]


def _part(document: Document, place: Place) -> Document:
    """What stands at ``place``, as a document of its own that knows where it stands."""
    depth = len(place)
    return Document(
        document.part(place),
        document.file,
        {at[depth:]: mark for at, mark in document.marks.items() if at[:depth] == place},
        within=place,
    )
