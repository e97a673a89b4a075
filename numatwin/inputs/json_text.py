"""What is written as JSON, results whose numbers may be NumPy's, and read again."""

import json
from pathlib import Path
from typing import Any

from .atomic import write_text_atomically
from .errors import InputError
from .text_lines import check_regular

READ_MAX_BYTES = 2**28
DEPTH_MAX = 64


def json_text(value: Any, **layout: Any) -> str:
    """``value`` as JSON, with NumPy's scalars and arrays as numbers and lists.

    ``layout``: that of ``json.dumps``. Raises ValueError for what is not finite.
    """
    return json.dumps(value, allow_nan=False, default=_plain, **layout)


def write_json(path: str | Path, value: Any) -> None:
    """Writes it to ``path``, whole or not at all. Raises InputError."""
    write_text_atomically(path, json_text(value, indent=1) + "\n")


def read_json(path: Path, what: str, expected: str | None = None, **hooks: Any) -> Any:
    """The value in the file, which should be ``what``.

    ``expected``: said of a file that is none; ``hooks``: of ``json.loads``. Raises InputError of
    one that cannot be read, is no JSON, or is larger or nested deeper than any that is written.
    """

    def refused(message: str, failure: object = None) -> InputError:
        place = getattr(failure, "lineno", None), getattr(failure, "colno", None)
        return InputError(f"not {what}: {message}", str(path), *place, expected=expected)

    try:
        check_regular(path)
        with path.open("rb") as stream:
            content = stream.read(READ_MAX_BYTES + 1)
        if len(content) > READ_MAX_BYTES:
            raise refused(f"larger than {READ_MAX_BYTES:,} bytes")
        found = json.loads(content.decode("utf-8"), **hooks)
        if _is_deeper(found, DEPTH_MAX):
            raise RecursionError
    except OSError as failure:
        message = f"cannot be read: {failure.strerror}"
        raise InputError(message, str(path), expected=expected or what) from None
    except RecursionError:
        raise refused("nested too deeply") from None
    except ValueError as failure:  # of digits, too: too long a number
        raise refused("not JSON", failure) from None
    return found


def _is_deeper(value: Any, depth: int) -> bool:
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(depth):
        parts = (part.values() if isinstance(part, dict) else part for part in level)
        level = [one for part in parts for one in part if isinstance(one, (dict, list))]
    return bool(level)


def _plain(value: Any) -> Any:
    """Scalars and arrays know themselves as Python's values; NumPy is slow to import here."""
    if not hasattr(value, "tolist"):
        raise TypeError(f"JSON has no {type(value).__name__}")
    return value.tolist()
