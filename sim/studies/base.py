"""What all runs of a study have in common, and the scenario of one of them."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...inputs import Document, InputError, changed, parse_setting
from ...inputs.fields import kinds_at
from ...inputs.settings import Setting, place_of, with_setting
from ...inputs.yaml_file import Place
from ..run.real_planes import SIMULATED
from ..run.scenario import Scenario, load_document, scenario_from_settings, scenario_of_document
from ..run.scenario_description import described_system, description_of
from ..run.scenario_parts import INNER, named_or_inline
from ..run.scenario_policies import POLICIES, check_policy
from .levels import written

# Fields that a factor may name as options of the command line do.
OPTIONS = {"on": "plane", "replications": "statistics.replications"}
POLICY, PLANE = "policy", "plane"


@dataclass(frozen=True)
class Base:
    """A scenario by name or path, and what is set in all runs.

    ``scenario``: a bundled name, a path, or the whole scenario as plain values (then ``file`` says
    where these stand). ``options``: of ``load_scenario``. ``settings``: ``path=value`` each.
    """

    scenario: str | Mapping[str, Any]
    options: Mapping[str, Any] = field(default_factory=dict)
    settings: tuple[str, ...] = ()
    file: str = "scenario"

    def load(self, settings: Sequence[str] = (), policy: str | None = None) -> Scenario:
        """The scenario with further settings; raises InputError."""
        options = dict(self.options)
        if policy is not None:
            options[POLICY] = [*options.get(POLICY, ()), policy]
        document = self.document()
        return scenario_of_document(document, [*self.settings, *settings], **options)

    def document(self) -> Document:
        """The scenario's document, with all that it extends."""
        if isinstance(self.scenario, str):
            return load_document(self.scenario)
        return Document(dict(self.scenario), self.file)

    def command(self, settings: Sequence[str], policy: str | None = None) -> str:
        """The command that runs the scenario with these settings on its own."""
        name = self.scenario if isinstance(self.scenario, str) else self.file
        words = ["numatwin", "run", name]
        for option, value in self.options.items():
            flag = {"plane": "--on"}.get(option, f"--{option}")
            for part in value if isinstance(value, (list, tuple)) else [value]:
                words += [flag, str(part)]
        if policy is not None:
            words += ["--policy", policy]
        for setting in (*self.settings, *settings):
            words += ["--set", setting]
        return shlex.join(words)

    def check_path(self, path: str, source: str) -> list[Any]:
        """The types of the field at ``path``; raises InputError where it names no field."""
        if path == POLICY:
            return [str]
        field = self._field(path, source)
        return kinds_at(field.model, field.place)

    def check_values(self, path: str, values: Sequence[Any], unit: str = "") -> None:
        """Raises InputError for the first of ``values`` that the field at ``path`` does not take,
        by its own type and bounds: whether it goes with the rest of a scenario is seen when it is
        run.
        """
        parts = path.split(".")
        names_policy = path == POLICY or (parts[0] == POLICIES and parts[2:] in ([], ["policy"]))
        if names_policy:
            system = described_system(self._with_named_parts(""))
            family = "".join(parts[1:2]) or None
            for value in values:
                if not isinstance(value, dict):
                    check_policy(system, written(value, unit), family)
        if path == POLICY:
            return
        field = self._field(path, "")
        for value in values:
            text = written(value, unit)
            if path in INNER and isinstance(value, str):
                catalogue, _ = INNER[path]
                catalogue.path(value)
            if OPTIONS.get(path, path) == PLANE and value not in SIMULATED:
                raise InputError("no plane of a study", token=text, expected=" or ".join(SIMULATED))
            parsed = parse_setting(f"{path}={text}").value
            document = changed(field.document, field.place, parsed, "")
            try:
                document.read_as(field.model)
            except InputError as failure:
                for fault in (failure, *failure.others):
                    if fault.place is not None and fault.place[: len(field.place)] == field.place:
                        raise InputError(
                            fault.message, token=fault.token or text, expected=fault.expected
                        ) from None

    def _field(self, path: str, source: str) -> "_Field":
        """Where ``path`` leads, beside what is set in all runs; raises InputError where it names no
        field."""
        setting = Setting(source, tuple(OPTIONS.get(path, path).split(".")), None)
        document = self._with_named_parts(source)
        first = setting.path[0]
        model: Any = description_of(described_system(document))
        siblings = [
            other
            for other in map(parse_setting, self.settings)
            if other.path[0] == first and len(other.path) > 1
        ]
        if first in INNER and len(setting.path) > 1:
            _, model = INNER[first]
            document, _ = named_or_inline(document, first, [other.inside() for other in siblings])
            setting = setting.inside()
        else:
            for other in siblings:
                document = with_setting(document, model, other)
        return _Field(document, model, place_of(document, model, setting))

    def _with_named_parts(self, source: str) -> Document:
        """The document with the machine, workload and kind of system that settings name."""
        document = self.document()
        for option, value in self.options.items():
            if option in INNER and value is not None:
                document = changed(document, (option,), value, source)
        for setting in map(parse_setting, self.settings):
            if setting.path in (*((name,) for name in INNER), ("system", "kind")):
                document = changed(document, setting.path, setting.value, source)
        return document


@dataclass(frozen=True)
class _Field:
    """A field of a document that is read as ``model``."""

    document: Document
    model: Any
    place: Place


def is_whole(kinds: Sequence[Any]) -> bool:
    """Whether a field of these types takes whole numbers alone."""
    return int in kinds and float not in kinds


def settings_of(
    paths: Sequence[str], units: Sequence[str], values: Sequence[Any]
) -> tuple[list[str], str | None]:
    """The settings of one run's values, and its policy where that is a factor."""
    policy, settings = None, []
    for path, unit, value in zip(paths, units, values, strict=True):
        if path == POLICY:
            policy = str(value)
        else:
            settings.append(f"{OPTIONS.get(path, path)}={written(value, unit)}")
    return settings, policy


__all__ = ["INNER", "Base", "InputError", "is_whole", "scenario_from_settings", "settings_of"]
