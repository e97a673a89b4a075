"""Policies in a scenario or on a command line: one of each family of its system."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ...inputs import DescriptionError, Document, InputError, changed
from ...inputs.fields import near
from ...inputs.yaml_file import Place
from ..control import NO_POLICY, ChosenPolicy, PolicySpec
from ..control.family import Family, choose
from ..control.policy import named
from ..systems.descriptor import System
from ..systems.registry import family_names
from .scenario_description import ScenarioDescription, described_system
from .scenario_parts import check_mappings, folder_of, reported_at

POLICIES = "policies"
_BY_FAMILY = re.compile(r"([A-Za-z][\w-]*)=(.+)", re.ASCII)


def with_long_forms(document: Document) -> Document:
    """The document with policies in their long form."""
    if not isinstance(document.value, dict):
        return document  # reported where it is read
    check_mappings(document, (POLICIES,))
    for name, value in dict(document.part((POLICIES,)) or {}).items():
        if isinstance(value, str):
            document = _in_long_form(document, (POLICIES, name), value)
    return document


def _in_long_form(document: Document, place: Place, text: str) -> Document:
    """The document with the policy that ``text`` stands for in full; errors name the same line."""
    try:
        fields = named(text)
    except ValueError:  # reported where it is read
        return document
    made = changed(document, place, fields, document.source_of(place))
    if (mark := document.marks.get(place)) is not None:
        made.marks.update(dict.fromkeys((place, *((*place, key) for key in fields)), mark))
    return made


def with_policies(document: Document, texts: Sequence[str]) -> Document:
    """The document with other policies, as ``--policy`` names them: ``FAMILY=NAME`` each, or the
    name alone where the system has but one family; in place of a name ``FILE.py:CLASS``.

    Periods stay; options of the policies before go.
    """
    system = described_system(document)
    for text in texts:
        source = f"--policy {text}"
        by_family = _BY_FAMILY.fullmatch(text)
        family = _family(system, by_family[1] if by_family else None, text, source)
        if family is not None:
            name = by_family[2] if by_family else text
            document = _with_policy(document, (POLICIES, family.name), name, source)
    return document


def check_policy(system: System, text: str, family: str | None = None) -> None:
    """Raises InputError where a system has no policy that ``text`` names: as ``--policy`` takes it,
    or of that ``family``. Whether it goes with its options is seen where these are known.
    """
    by_family = None if family else _BY_FAMILY.fullmatch(text)
    found = _family(system, by_family[1] if by_family else family, text)
    if found is None:
        return
    try:
        spec = found.spec.model_validate(named(by_family[2] if by_family else text))
        choose(spec, found, Path())
    except DescriptionError:
        return
    except ValueError as failure:
        expected = str(failure).removeprefix("expected ")
        raise InputError("no policy class", token=text, expected=expected) from None


def _family(
    system: System, name: str | None, text: str, source: str | None = None
) -> Family | None:
    """The family that is meant; None where the system has none, and none is asked of it."""
    names = [family.name for family in system.families]
    if name is not None:
        if (found := system.family(name)) is None:
            raise InputError(
                f"unknown kind of policy '{name}'",
                source,
                expected=near(name, names) or f"none, as a system of kind {system.name} has none",
            )
        return found
    if len(names) == 1:
        return system.families[0]
    if names:
        own, titles = ".py:" in text, [one for family in system.families for one in family.titles]
        meant = text if own or text in titles else (near(text, titles) or "").strip("'")
        forms = [f"{one.name}={meant}" for one in system.families if own or meant in one.titles]
        raise InputError(
            f"a system of kind {system.name} has "
            + ("policies of several kinds" if meant == text else f"no policy '{text}'"),
            source,
            expected=" or ".join(forms) or "FAMILY=NAME, as 'numatwin policy list' has them",
        )
    if text != NO_POLICY:
        raise InputError(
            f"a system of kind {system.name} has no policies",
            source,
            token=text,
            expected=NO_POLICY,
        )
    return None


def _with_policy(document: Document, place: Place, text: str, source: str) -> Document:
    check_mappings(document, place)
    try:
        spec = named(text)
    except ValueError as failure:
        expected = str(failure).removeprefix("expected ")
        raise InputError("no policy class", source, expected=expected) from None
    for key, value in (document.part(place) or {}).items():
        # A name leaves what bundled policies of the family have in common, and the period.
        kept = key == "period" or (
            "policy" in spec and key not in ("policy", "file", "class", "options")
        )
        if not kept and value is not None:
            document = changed(document, (*place, key), None, source)
    for key, value in spec.items():
        document = changed(document, (*place, key), value, source)
    return document


def without_foreign_families(document: Document, system: System) -> Document:
    """Refuses a policy of a family that the system does not have; ``none`` of one is left out."""
    policies = document.part((POLICIES,)) or {}
    names, kept = [family.name for family in system.families], {}
    for name, value in policies.items():
        if name in names:
            kept[name] = value
            continue
        place: Place = (POLICIES, name)
        if name not in family_names():
            raise document.error(
                place, f"unknown kind of policy '{name}'", expected=near(name, names)
            )
        given = value or {}
        policy = given.get("policy") if isinstance(given, dict) else given
        if policy not in (None, NO_POLICY) or (isinstance(given, dict) and given.get("file")):
            raise document.error(
                (*place, "policy"),
                f"a system of kind {system.name} has no policies of kind '{name}'",
                token=None if policy is None else str(policy),
                expected=NO_POLICY,
            )
    if len(kept) == len(policies):
        return document
    return replace(document, value={**document.value, POLICIES: kept})


def policies_of(
    document: Document, description: ScenarioDescription, system: System
) -> dict[str, ChosenPolicy]:
    """The policy of each family, as chosen, in the order in which they are asked."""
    chosen = {}
    for family in system.families:
        spec: PolicySpec = getattr(description.policies, family.name)
        place: Place = (POLICIES, family.name, "file" if spec.file is not None else "policy")
        with reported_at(document, place):
            chosen[family.name] = choose(spec, family, folder_of(document, place))
    return chosen


def policy_text(policies: dict[str, str]) -> str:
    """Policies in one line: the name of the only one, or ``family=name`` of each."""
    if len(policies) < 2:
        return next(iter(policies.values()), NO_POLICY)
    return ", ".join(f"{family}={name}" for family, name in policies.items())
