"""The two files of a record: its head in JSON, and its time series in Parquet.

The shape of those parts of a record that are plain data: what their readers rely on.

A record that was changed by hand, or damaged, is refused as it is read. What ``Record`` types by
itself (throughput, resources, why …) is checked there.
"""

import contextlib
import hashlib
import math
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, create_model, model_validator

from ...inputs import InputError, check_regular, json_text, read_json
from ...inputs.atomic import not_written, replace_file, writing_in
from ...inputs.parquet_file import read_parquet
from ...inputs.settings import SHOWN_MAX
from ..planes.outcome import Series

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA = 1
HEAD_FILE, SERIES_FILE = "record.json", "series.parquet"
PENDING = ".series-{}.parquet"
RECORD = "a folder that 'numatwin run' wrote"
WIDE = 10_000  # resources, and columns of series: such as links of 100 nodes all to all
TIMES = ("time_s", "duration_s")
"""Columns of every series that is not empty."""
LARGEST, SMALLEST = 1e36, 1e-60
"""No figure comes near them: what is larger is none, what is smaller is 0. Ratios and squares of
what is between them are finite, and charts may draw it in single precision."""


def write_files(target: Path, head: dict[str, Any], series: Series, resources: int) -> Path:
    """Writes both into a folder, or neither; adds their digest to ``head``. The folder.

    The rename of the head makes both visible at once: until the series has moved to its own name,
    its file is named by the head's digest.
    """
    missing = [path for path in (target, *target.parents) if not path.exists()]
    pending, known, whole = target, True, False
    try:
        content = _parquet(series)
        head["digest"] = digest = _digest(head, content)
        pending = target / PENDING.format(digest)
        known = pending.exists()  # of the same record, whose writer was killed
        target.mkdir(parents=True, exist_ok=True)
        with writing_in(target):
            replace_file(pending, content)
            replace_file(target / HEAD_FILE, _text(head, resources).encode())
            whole = True
            with contextlib.suppress(OSError):  # where it cannot move, its name stays the digest
                pending.replace(target / SERIES_FILE)
                for left in target.glob(PENDING.format("*")):
                    left.unlink()
    except OSError as failure:
        raise not_written(failure, target) from None
    finally:
        if not whole and not known:
            with contextlib.suppress(OSError):
                pending.unlink()
        for made in missing if not whole else ():
            with contextlib.suppress(OSError):
                made.rmdir()
    return target


def read_head(path: str | Path) -> tuple[dict[str, Any], Path]:
    """The head in a folder (or its file), not checked yet, and its file; raises InputError."""
    head_path = Path(path)
    if head_path.is_dir():
        head_path = head_path / HEAD_FILE
        if not head_path.exists():
            raise InputError(f"not a record: no {HEAD_FILE} in it", str(path), expected=RECORD)
    hooks = {"parse_constant": _number, "parse_float": _number, "parse_int": _whole_number}
    try:
        head = read_json(
            head_path, "a record", None if head_path != Path(path) else RECORD, **hooks
        )
    except InputError as failure:
        failure.file = str(head_path)
        raise
    if not isinstance(head, dict) or head.get("schema") != SCHEMA:
        found = str(head.get("schema")) if isinstance(head, dict) else type(head).__name__
        raise InputError(
            "not a record of this version", str(head_path), token=found, expected=f"schema {SCHEMA}"
        )
    return head, head_path


def read_series(head: dict[str, Any], path: Path) -> Series:
    """The series beside the head in ``path``; takes the digest out of ``head``."""
    stored_digest = head.pop("digest", None)  # records of earlier versions have none
    series_path = path.parent / PENDING.format(str(stored_digest)[:64])
    if not series_path.exists():
        series_path = path.parent / SERIES_FILE
    try:
        check_regular(series_path)
        series = series_path.read_bytes()
    except OSError as failure:
        raise InputError(f"cannot be read: {failure.strerror}", str(series_path)) from None
    if stored_digest is not None and stored_digest != _digest(head, series):
        raise InputError(
            f"damaged or changed: this or {SERIES_FILE} does not match its digest "
            "(to read it anyway, remove the field 'digest')",
            str(path),
        )
    return _series(series_path)


def not_tiny(value: float) -> float:
    """0 for next to nothing."""
    return value if abs(value) >= SMALLEST or math.isnan(value) else 0.0


def _text(head: Mapping[str, Any], resources: int) -> str:
    """As JSON: indented; of so many resources a line a field, which takes a tenth of the time."""
    if resources <= WIDE:
        return json_text(head, indent=1, ensure_ascii=False) + "\n"
    fields = (
        f"{json_text(name)}: {json_text(part, ensure_ascii=False)}" for name, part in head.items()
    )
    return "{\n " + ",\n ".join(fields) + "\n}\n"


def _parquet(series: Series) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({name: _arrow(column) for name, column in series.items()})
    helped = len(series) <= WIDE  # what helps to find rows takes seconds of so many
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", use_dictionary=helped, write_statistics=helped)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _arrow(column: npt.ArrayLike) -> "pa.Array":
    """A column as Arrow's. Of numbers without ``pa.array``, which imports pandas (0.3 s)."""
    import pyarrow as pa

    values = np.ascontiguousarray(column)
    if values.ndim != 1 or values.dtype != np.float64:
        return pa.array(values)
    return pa.Array.from_buffers(pa.float64(), len(values), [None, pa.py_buffer(values)])


def _numbers(column: "pa.ChunkedArray") -> npt.NDArray[Any]:
    """The reverse of ``_arrow``; what else there is goes by ``to_numpy``, which imports pandas."""
    import pyarrow as pa

    if column.type != pa.float64() or column.null_count or not len(column):
        return np.asarray(column.to_numpy())
    chunks = (chunk for chunk in column.chunks if len(chunk))
    parts = [
        np.frombuffer(chunk.buffers()[1], np.float64, len(chunk), 8 * chunk.offset)
        for chunk in chunks
    ]
    return np.concatenate(parts)


def _number(text: str) -> float:
    """The number that ``text`` says, 0 for next to nothing; raises InputError for NaN and for what
    is too large.
    """
    value = not_tiny(float(text))
    if not abs(value) < LARGEST:
        shown = text if len(text) <= SHOWN_MAX else text[: SHOWN_MAX - 1] + "…"
        raise InputError("not a record", token=shown, expected=f"finite numbers, below {LARGEST:g}")
    return value


def _whole_number(text: str) -> int:
    _number(text)
    return int(text)


def _digest(head: Mapping[str, Any], series: bytes) -> str:
    """SHA-256 of both files of a record, whatever the layout of the first."""
    digest = hashlib.sha256(json_text(head, sort_keys=True).encode())
    digest.update(series)
    return digest.hexdigest()


def _series(path: Path) -> Series:
    import pyarrow as pa

    table = read_parquet(path, "a time series")
    for field in table.schema:
        kinds = pa.types.is_floating, pa.types.is_integer, pa.types.is_boolean
        if not any(is_kind(field.type) for is_kind in kinds):
            raise InputError(
                f"not a time series: column {field.name}", str(path), expected="numbers"
            )
    series = {name: _numbers(table[name]) for name in table.column_names}
    for name, column in series.items():
        message = f"not a time series: column {name}"
        if column.dtype.kind not in "biuf":
            raise InputError(message, str(path), expected="numbers")
        if np.any(np.abs(column) >= LARGEST):  # NaN: not known
            raise InputError(message, str(path), expected=f"finite numbers, below {LARGEST:g}")
    for name in TIMES if series else ():
        if name not in series:
            raise InputError(f"not a time series: no column {name}", str(path))
    return series


_Name = int | str
_Pair = Annotated[list[float], Field(min_length=2, max_length=2)]
_Ends = Annotated[list[_Name], Field(min_length=2, max_length=2)]
_VARIANT = {"value": Any}
_COUNTED = ("reads", "writes", "read_misses", "write_misses")
_PAIRS = [f"{what}_{by}" for what in _COUNTED for by in ("user", "kernel")]
"""``topologies/emulator/traffic.py`` says what each is."""

SHAPE: dict[str, Any] = {
    "machine": {
        "name": str,
        "title?": str | None,
        "nodes?": [{"id": _Name, "cpus?": list[int]}],
        "groups?": list[_Name | None],
        "hubs?": [{"id": _Name}],
        "links?": [{"ends": _Ends}],
    },
    "provenance": {"host?": dict[str, Any] | None},
    "settings": {"system?": dict[str, Any] | None},
    "assumptions?": [
        {"name": str, "value": Any, "unit": str, "source": str}
        | {"low?": _VARIANT, "high?": _VARIANT}
    ],
    "idle_settings?": [
        {"setting": str, "throughput": dict[str, float] | None}
        | {"changes": list[str] | None, "instead": str | None}
    ],
    "uncertainty?": {
        "level": float,
        "doubts": [{"name": str, "setting": str, "stream": str}],
        "most": [{"name": str, "low": float, "high": float}],
        "model?": [{"figure": str, "factor": float, "rows": int, "sources": int}],
        "throughput": dict[str, _Pair],
        "bandwidth_Bps?": dict[str, _Pair],
        "energy_J?": _Pair | None,
        "shifts": {
            "throughput?": dict[str, list[float]],
            "bandwidth_Bps?": dict[str, list[float]],
            "energy_J?": list[float] | None,
        },
    },
    "traffic?": {
        # Squares of the machine's nodes: see ``_squares_have_a_row_a_node``.
        "pairs": dict.fromkeys([*_PAIRS, "transfers"], list[list[float]]),
        "memory": [{"node": _Name, "read_bytes": float, "written_bytes": float}],
        "links": [
            {"name": str, "ends": _Ends, "data_bytes": float, "message_bytes": float}
            | {"bandwidth_Bps?": float | None}
        ],
        "regions": int,
        "levels": list[int],
        "remote_share": float,
        "user_remote_share": float,
    },
}
"""Of parts of a head. What is named with ``?`` may be missing; a part then may be null, too."""


def _model_of(shape: Any, **validators: Any) -> Any:
    """What reads such a part as it is, not converted: what is checked is not what is read later."""
    if isinstance(shape, list):
        return list[_model_of(shape[0])]  # type: ignore[misc]
    if not isinstance(shape, dict):
        return shape
    fields: dict[str, Any] = {}
    for name, part in shape.items():
        kind, optional = _model_of(part), name.endswith("?")
        nullable = kind | None if optional and isinstance(part, dict) else kind
        fields[name.removesuffix("?")] = (nullable, None if optional else ...)
    strict = ConfigDict(strict=True)
    return create_model("Part", __config__=strict, __validators__=validators, **fields)


def _squares_have_a_row_a_node(parts: Any) -> Any:
    nodes = len(parts.machine.nodes or ())
    for name, rows in parts.traffic.pairs if parts.traffic is not None else ():
        if {nodes} != {len(rows), *map(len, rows)}:
            raise ValueError(f"traffic.pairs.{name}: not a row and a column for each node")
    return parts


@cache
def _whole_model() -> type[BaseModel]:
    squares = model_validator(mode="after")(_squares_have_a_row_a_node)
    model: type[BaseModel] = _model_of(SHAPE, squares=squares)
    return model


def check_shape(head: Mapping[str, Any]) -> None:
    """Raises pydantic's ValidationError. A part that may be missing may be empty instead, as in
    records that have nothing to say there."""
    _whole_model().model_validate({n: part for n, part in head.items() if part != {} or n in SHAPE})
