"""Recorded histograms: what is read, and what is refused with its line."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from refusals import told_by

from numatwin.inputs import InputError
from numatwin.workloads.key_specs import load_histogram

HEADER = "key_from,key_to,count"


def histogram(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "keys.csv"
    path.write_bytes("\n".join(lines).encode())
    return path


def test_reads_rows_gaps_and_empty_lines(tmp_path: Path) -> None:
    path = histogram(tmp_path, HEADER, "0,10,5", "", "20, 40 ,15", "40,50,0.0", "")
    recorded = load_histogram(path, 100)
    density = recorded.density()
    assert density.breaks.tolist() == [0, 10, 20, 40, 50, 100]
    assert_allclose(density.mass, [0.25, 0, 0.75, 0, 0])


def test_reads_windows_line_ends_and_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "keys.csv"
    path.write_bytes(b"\xef\xbb\xbfkey_from,key_to,count\r\n0,1,2\r\n1,2,6\r\n")
    assert_allclose(load_histogram(path, 2).shares([0, 1, 2]), [0.25, 0.75])


@pytest.mark.parametrize(
    ("rows", "line", "column", "message"),
    [
        (["from,to,n", "0,1,1"], 1, 1, "not a key histogram: found 'from,to,n'"),
        ([], 1, 1, "not a key histogram: found ''"),
        ([HEADER], 1, None, "no accesses"),
        ([HEADER, "0,10,0", "10,20,0"], 3, None, "no accesses"),
        ([HEADER, "0,10,1", "5,20,1"], 3, 1, "key_from: out of order or of the domain: found '5'"),
        ([HEADER, "20,30,1", "0,10,1"], 3, 1, "key_from: out of order or of the domain: found '0'"),
        (
            [HEADER, "10,10,1"],
            2,
            4,
            "key_to: out of order or of the domain: found '10', expected 11",
        ),
        ([HEADER, "0,101,1"], 2, 3, "key_to: out of order or of the domain: found '101'"),
        ([HEADER, "100,101,1"], 2, 1, "key_from: out of order or of the domain: found '100'"),
        ([HEADER, "-1,10,1"], 2, 1, "key_from: not a key: found '-1', expected a whole number"),
        ([HEADER, "0,1e1,1"], 2, 3, "key_to: not a key: found '1e1'"),
        ([HEADER, f"0,{'9' * 5_000},1"], 2, 3, "key_to: not a key"),
        (
            [HEADER, "0,10,-2"],
            2,
            6,
            "count: not a count: found '-2', expected a number of at least 0",
        ),
        ([HEADER, "0,10,nan"], 2, 6, "count: not a count: found 'nan'"),
        ([HEADER, "0,10,inf"], 2, 6, "count: not a count: found 'inf'"),
        ([HEADER, "0,10,1", "10,20"], 3, 1, "wrong row: found '10,20', expected 3 fields"),
        ([HEADER, "0,10,1,7"], 2, 1, "wrong row"),
        ([HEADER, '0,10,"1'], 2, None, "not CSV"),
    ],
)
def test_refuses_with_line_and_column(
    tmp_path: Path, rows: list[str], line: int, column: int | None, message: str
) -> None:
    path = histogram(tmp_path, *rows)
    with pytest.raises(InputError) as failure:
        load_histogram(path, 100)
    assert (failure.value.line, failure.value.column) == (line, column)
    assert failure.value.file == str(path)
    assert message in str(failure.value)
    assert len(str(failure.value).splitlines()) == 1


def test_refuses_what_is_not_text(tmp_path: Path) -> None:
    path = tmp_path / "keys.csv"
    path.write_bytes(HEADER.encode() + b"\n0,1,\xff\n")
    assert "keys.csv:2: not text" in told_by(load_histogram, path, 100)


def test_refuses_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "keys.csv")
    with pytest.raises(InputError, match=r"keys.csv: cannot be read: a pipe: expected a file"):
        load_histogram(tmp_path / "keys.csv", 1000)


def test_refuses_what_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = histogram(tmp_path, HEADER, "0,1,1", "1,2,1")
    monkeypatch.setattr("numatwin.workloads.key_specs.ROWS_MAX", 1)
    assert ":3: too many rows" in told_by(load_histogram, path, 100)
    monkeypatch.setattr("numatwin.workloads.key_specs.BYTES_MAX", 10)
    assert "too large" in told_by(load_histogram, path, 100)


@given(
    st.lists(
        st.tuples(st.integers(1, 10**6), st.integers(0, 10**6), st.integers(0, 10**12)),
        min_size=1,
        max_size=30,
    ).filter(lambda rows: any(count for _, _, count in rows))
)
def test_every_row_has_its_part(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, int, int]]
) -> None:
    lines, key, bounds = [HEADER], 0, []
    for width, gap, count in rows:
        bounds.append((key + gap, key + gap + width))
        lines.append(f"{bounds[-1][0]},{bounds[-1][1]},{count}")
        key = bounds[-1][1]
    path = histogram(tmp_path_factory.mktemp("histogram"), *lines)
    recorded = load_histogram(path, key)
    total = sum(count for _, _, count in rows)
    seen = [float(recorded.shares(pair)[0]) for pair in bounds]
    assert_allclose(seen, np.array([count / total for _, _, count in rows]), atol=1e-12)


@given(st.binary(max_size=200), st.booleans())
def test_noise_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, noise: bytes, header: bool
) -> None:
    path = tmp_path_factory.mktemp("noise") / "keys.csv"
    path.write_bytes((HEADER.encode() + b"\n" if header else b"") + noise)
    recorded = refusal = None
    try:
        recorded = load_histogram(path, 1_000)
    except InputError as failure:
        refusal = str(failure)
    if recorded is None:
        assert refusal is not None
        assert len(refusal.splitlines()) == 1
    else:
        assert recorded.density().mass.sum() == pytest.approx(1.0)
