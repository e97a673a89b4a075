"""YAML of users: what it may hold, what is refused, and where the error is said to be."""

import os
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import told_by

from numatwin.inputs import InputError, Limits, load_yaml, parse_yaml

SMALL = Limits(bytes_max=1_000, depth_max=5, values_max=50, aliases_max=3)


def refused(text: str | bytes, limits: Limits | None = None) -> InputError:
    with pytest.raises(InputError) as failure:
        parse_yaml(text, "x.yaml", limits)
    told = str(failure.value)
    assert told.startswith("x.yaml")
    assert told.isprintable()
    return failure.value


def test_plain_values() -> None:
    text = "a: 1\nb: 1.5\nc: [yes, null, text]\nd: {e: 2026-01-01, f: 1:30}\n"
    value = parse_yaml(text, "x.yaml").value
    assert value == {
        "a": 1,
        "b": 1.5,
        "c": [True, None, "text"],
        "d": {"e": "2026-01-01", "f": "1:30"},
    }


@pytest.mark.parametrize(
    ("text", "message", "line", "column"),
    [
        ("", "empty file", 1, 1),
        ("a: [1\n", "not YAML", 2, 1),
        ("a: 1\n\tb: 2", "not YAML", 2, 1),
        ("a: 1\na: 2\n", "duplicate key 'a' (first at line 1)", 2, 1),
        ("a: &x [*x]\n", "an alias inside its own anchor", 1, 4),
        ("a: !!python/name:os.system x\n", "os.system is not allowed", 1, 4),
        ("a: !!binary aGk=\n", "binary is not allowed", 1, 4),
        ('a: "x\\u202ey"\n', "control character U+202E: expected printable text", 1, 4),
        ('a: 1\n"\\x1b[2J": 2\n', "control character U+001B: expected printable", 2, 1),
        ("a: !mine [1]\n", "tag !mine is not allowed", 1, 4),
        ("a: {<<: {b: 1}}\n", "expected a plain key", 1, 5),
        ("? [1, 2]\n: 3\n", "expected a plain key", 1, 3),
        ("%TAG ! tag:x:\n---\na: 1\n", "tag directives are not allowed", 1, 1),
        ("a: 1\n--- \nb: 2\n", "not YAML", 2, 1),
    ],
)
def test_refused_with_its_place(text: str, message: str, line: int, column: int) -> None:
    failure = refused(text)
    assert message in str(failure)
    assert (failure.line, failure.column) == (line, column)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: " + "x" * 1_000, "too large: expected at most 1,000 bytes"),
        ("[" * 6 + "]" * 6, "nested too deeply"),
        ("a: [" + "1, " * 50 + "]", "too many values"),
        ("a: &a 1\nb: [*a, *a, *a, *a]\n", "too many aliases"),
        ("a: &a [1,1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a]\nc: [*b]\n", "aliases expand"),
        (b"a: \xff\n", "not text: found 'byte 0xff'"),
        *(
            (f"a: b\nc: é{mark}\n".encode(), f"x.yaml:2:5: not text: control character {name}: exp")
            for mark, name in (
                *(("\0", "U+0000"), ("\1", "U+0001"), ("\x7f", "U+007F"), ("\x9f", "U+009F")),
                *(("\ufffe", "U+FFFE"), ("\ufeff", "U+FEFF"), ("\uffff", "U+FFFF")),
            )
        ),
        ("a: \ud800", "x.yaml:1:4: not text: control character U+D800"),
    ],
)
def test_limits(text: str | bytes, message: str) -> None:
    assert message in str(refused(text, SMALL))


def test_an_alias_bomb_is_refused_at_once() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 10)}]" for k in range(1, 12)]
    started = time.process_time()
    assert "aliases expand to too many values" in str(refused("\n".join(lines)))
    assert time.process_time() - started < 1


def test_a_huge_file_is_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    with open(path, "wb") as stream:
        for _ in range(100):
            stream.write(b"- a\n" * (1 << 18))
    started = time.process_time()
    assert "too large: expected at most" in told_by(load_yaml, path)
    assert time.process_time() - started < 1


@pytest.mark.parametrize("name", ["none.yaml", "\0", "."])
def test_unreadable_files_are_told(tmp_path: Path, name: str) -> None:
    assert "cannot be read" in told_by(load_yaml, f"{tmp_path}/{name}")


def test_what_has_no_end_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    with pytest.raises(InputError, match=r"pipe.yaml: cannot be read: a pipe: expected a file"):
        load_yaml(tmp_path / "pipe.yaml")
    assert "cannot be read: a device or socket" in told_by(load_yaml, "/dev/zero")


trees = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text("ab: -#'\"0{\n", max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc0", max_size=3), inner),
    max_leaves=12,
)


@given(value=trees)
def test_what_is_dumped_loads(value: object) -> None:
    import yaml

    if value is None:
        return  # an empty file
    assert parse_yaml(yaml.safe_dump(value), "x.yaml").value == value


@settings(max_examples=500)
@given(st.text("ab:&*![]{}-?|>'\"%#@0\n\t ,", max_size=60) | st.binary(max_size=60))
def test_any_text_is_read_or_refused(text: str | bytes) -> None:
    try:
        document = parse_yaml(text, "x.yaml", SMALL)
    except InputError as failure:
        told = str(failure)
        assert told.startswith("x.yaml")
        assert told.isprintable()
    else:
        assert document.marks[()][0] >= 1


@pytest.mark.parametrize("text", ["1e-3", "1E3", "-2e+5", "1.5e3", ".5e1", "3.e2"])
def test_numbers_with_an_exponent(text: str) -> None:
    """As in YAML 1.2; YAML 1.1 takes most of them for text."""
    found = parse_yaml(f"a: {text}\nb: '{text}'\nc: {text}s\n", "file").value
    assert found == {"a": float(text), "b": text, "c": f"{text}s"}
    assert isinstance(found["a"], int if float(text).is_integer() else float)


@pytest.mark.parametrize("mark", ["\xa0", "\ue000", "\ufffd", "😀", "\uff01"])
def test_what_yaml_may_hold_is_no_control_character(mark: str) -> None:
    assert parse_yaml(f"a: 'x{mark}y'\n", "x.yaml").value == {"a": f"x{mark}y"}
