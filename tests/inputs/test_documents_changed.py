"""Documents made from others: values, and where each part is said to come from."""

from pathlib import Path

import pytest
from pydantic import Field
from refusals import told_by

from numatwin.inputs import (
    Catalogue,
    Document,
    Strict,
    changed,
    merged,
    parse_setting,
    parse_yaml,
    part_of,
    with_setting,
)
from numatwin.inputs.fields import field_names, near

BASE = parse_yaml("a: 1\nb:\n  c: 2\n  d: [3, 4]\n", "base")


class Inner(Strict):
    """A part of a schema."""

    speed: int
    items: tuple[int, ...] = ()


class Outer(Strict):
    """A schema with parts of every form."""

    first: Inner | None = None
    many: tuple[Inner, ...] = ()
    named: dict[str, Inner] = Field(default_factory=dict)
    free: dict[str, int] = Field(default_factory=dict)


def _where(document: Document, *place: str | int) -> tuple[str | None, int | None]:
    error = document.error(place, "wrong")
    return error.file, error.line


def test_merged_by_key() -> None:
    over = parse_yaml("b: {c: 20,\n d: [5]}\ne: 6\n", "over")
    made = merged(BASE, over)
    assert made.value == {"a": 1, "b": {"c": 20, "d": [5]}, "e": 6}
    assert _where(made, "a") == ("base", 1)
    assert _where(made, "b", "c") == ("over", 1)
    assert _where(made, "b", "d", 0) == ("over", 2)
    assert _where(made, "e") == ("over", 3)
    assert BASE.value == {"a": 1, "b": {"c": 2, "d": [3, 4]}}
    assert _where(BASE, "b", "c") == ("base", 3)


def test_what_is_no_mapping_is_replaced_whole() -> None:
    assert merged(BASE, parse_yaml("b: 7", "over")).value == {"a": 1, "b": 7}
    assert merged(BASE, parse_yaml("a: {x: 1}", "over")).value["a"] == {"x": 1}
    assert merged(BASE, parse_yaml("b: null", "over")).value["b"] is None


def test_changed_parts_have_no_line() -> None:
    made = changed(BASE, ("b", "d", 1), {"x": 9}, "by hand")
    assert made.value == {"a": 1, "b": {"c": 2, "d": [3, {"x": 9}]}}
    assert _where(made, "b", "d", 1, "x") == ("by hand", None)
    assert _where(made, "b", "d", 0) == ("base", 4)
    assert BASE.value["b"]["d"] == [3, 4]
    deeper = changed(made, ("new", "part"), 1, "again")
    assert deeper.value["new"] == {"part": 1}
    assert _where(deeper, "new") == ("again", None)
    whole = changed(deeper, ("b",), 0, "at last")
    assert _where(whole, "b", "d", 1) == ("at last", None)


def test_a_part_knows_where_it_stands() -> None:
    part = part_of(changed(BASE, ("b", "c"), 5, "by hand"), ("b",))
    assert part.value == {"c": 5, "d": [3, 4]}
    assert _where(part, "c") == ("by hand", None)
    assert _where(part, "d", 1) == ("base", 4)


def test_fields_at_a_place() -> None:
    assert field_names(Outer, ()) == ["first", "free", "many", "named"]
    for place in (("first",), ("many", 0), ("named", "any")):
        assert field_names(Outer, place) == ["items", "speed"]
    for place in (("free",), ("named",), ("first", "items"), ("first", "none")):
        assert field_names(Outer, place) == []


def test_near_names() -> None:
    assert near("sped", ["items", "speed"]) == "'speed'"
    assert near("x", ["items", "speed"]) == "one of items, speed"
    assert near("x", []) is None
    assert near("x", [f"name{k}" for k in range(40)]) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a=1", 1),
        ("a=1_000", 1000),
        ("a=1.5", 1.5),
        ("a=20 GB/s", "20 GB/s"),
        ("a='1'", "1"),
        ("a=[0, 1]", [0, 1]),
        ("a={b: 1}", {"b": 1}),
        ("a=x=y", "x=y"),
        ("a=null", None),
        ("a=A title: with a colon", "A title: with a colon"),
    ],
)
def test_values_are_read_as_yaml(text: str, value: object) -> None:
    assert parse_setting(text).value == value


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("first.speed=2", {"first": {"speed": 2}}),
        ("first={speed: 2}", {"first": {"speed": 2}}),
        ("many.1.speed=2", {"many": [{"speed": 0}, {"speed": 2}]}),
        ("many.0.items=[1]", {"many": [{"speed": 0, "items": [1]}, {"speed": 1}]}),
        ("named.a.b.speed=2", {"named": {"a.b": {"speed": 2}}}),
        ("free.x=2", {"free": {"x": 2}}),
    ],
)
def test_settings(setting: str, value: dict[str, object]) -> None:
    start = {"many": [{"speed": 0}, {"speed": 1}], "named": {"a.b": {"speed": 1}}}
    made = with_setting(Document(start, "file"), Outer, parse_setting(setting))
    assert made.value == start | value
    made.read_as(Outer)


def test_a_catalogue(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.yaml").write_text("a: 1")
    (tmp_path / "three.csv").write_text("")
    catalogue = Catalogue(tmp_path, "thing")
    assert catalogue.names() == ["one", "two"]
    assert catalogue.path("two") == tmp_path / "two.yaml"
    assert catalogue.path("x/two", Path("beside")) == Path("beside/x/two")
    assert catalogue.path("two.yaml", Path("beside")) == Path("beside/two.yaml")
    assert catalogue.path("/x/two.yml", Path("beside")) == Path("/x/two.yml")
    assert "unknown thing: found 'tow', expected 'two', or a path" in told_by(catalogue.path, "tow")
    assert "expected a name that 'numatwin thing list' prints, or" in told_by(catalogue.path, "")
