"""Parquet that others may have written: how much it unfolds to is known before it is unfolded."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import InputError
from .text_lines import check_regular

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

UNFOLDED_MAX_BYTES = 2**31
INDEX_BITS = 32
"""Of a text: each is held once, as runs of the same one take next to nothing in the file."""


@contextmanager
def open_parquet(path: Path, what: str) -> "Iterator[pq.ParquetFile]":
    """The file at ``path``, whose texts are read as dictionaries.

    Raises InputError (``not {what}: …``), for what is read within too: of a file that is damaged,
    whose columns are neither numbers nor texts, or that unfolds to more than a limit.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        check_regular(path)
        if path.stat().st_size > UNFOLDED_MAX_BYTES:
            raise ValueError(f"larger than {UNFOLDED_MAX_BYTES:,} bytes")
        # Reading a file starts a thread, still starting when a short command ends: it aborts (134).
        source = pa.BufferReader(path.read_bytes())
        texts = _checked(pq.ParquetFile(source))
        yield pq.ParquetFile(source, read_dictionary=texts)
    except UnicodeDecodeError:
        raise InputError(f"not {what}: a text that is not UTF-8", str(path)) from None
    except (OSError, ValueError, pa.ArrowException) as failure:
        reason = getattr(failure, "strerror", None) or str(failure).partition("\n")[0]
        raise InputError(f"not {what}: {reason or 'unreadable'}", str(path)) from None


def read_parquet(path: Path, what: str, columns: Sequence[str] | None = None) -> "pa.Table":
    """The table, or those of ``columns`` that it has. Raises InputError as ``open_parquet``."""
    import pyarrow as pa

    with open_parquet(path, what) as file:
        names = file.schema_arrow.names
        wanted = [name for name in names if columns is None or name in columns]
        table = file.read(wanted, use_threads=False)
        table.validate(full=True)
        return pa.table([_plain(column) for column in table.columns], table.column_names)


def _checked(file: "pq.ParquetFile") -> list[str]:
    """The names of columns of texts. Raises ValueError."""
    import pyarrow as pa

    found, texts, bits = file.metadata, [], 1
    for field in file.schema_arrow:
        type_ = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if pa.types.is_string(type_) or pa.types.is_large_string(type_):
            texts.append(field.name)
            bits += INDEX_BITS
        elif pa.types.is_null(type_) or pa.types.is_primitive(type_):
            bits += 8 if pa.types.is_null(type_) else type_.bit_width
        else:
            raise ValueError(f"column {field.name}: {field.type}, expected numbers or texts")
    if len(set(file.schema_arrow.names)) != len(file.schema_arrow):
        raise ValueError("two columns of one name")
    sizes = (found.row_group(k).total_byte_size for k in range(found.num_row_groups))
    unfolded = sum(sizes) + found.num_rows * bits // 8
    if not 0 <= unfolded <= UNFOLDED_MAX_BYTES:
        raise ValueError(
            f"it unfolds to {unfolded:,} bytes, expected {UNFOLDED_MAX_BYTES:,} at most"
        )
    return texts


def _plain(column: "pa.ChunkedArray") -> Any:
    """Texts themselves in place of a dictionary of them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_dictionary(column.type):
        return column
    lengths = (pc.take(pc.binary_length(c.dictionary), c.indices) for c in column.chunks)
    length = sum(pc.sum(one).as_py() or 0 for one in lengths)
    if length > UNFOLDED_MAX_BYTES // 2:
        raise ValueError(f"texts of {length:,} bytes")
    return column.cast(column.type.value_type)
