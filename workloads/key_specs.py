"""The schema of keys in a workload file: a form for each distribution, selected by its name.

One more distribution is one more form here, with ``over`` that makes it, and its class.
"""

import math
from abc import abstractmethod
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator, ConfigDict, Field, ValidationInfo, field_validator

from ..inputs import DescriptionError, InputError, Quantity, Strict
from ..inputs.csv_rows import csv_rows, field_column
from ..inputs.quantities import Duration, DurationOrZero
from ..inputs.text_lines import text_lines
from .keys import HotRange, KeyDistribution, MovingHotRange, Recorded, Uniform
from .zipf import Zipf

KEYS_MAX = 2**53  # up to here a float holds every whole number
MOVE_EVERY_MIN_S = 1e-3  # more moves than one a millisecond are no phases but a distribution

BUNDLED = Path(__file__).parent


def _whole(raw: Any) -> Any:
    if not isinstance(raw, int) or isinstance(raw, bool):
        raise ValueError("expected a whole number, such as 1_000_000")
    return raw


Whole = Annotated[int, BeforeValidator(_whole)]
Key = Annotated[Whole, Field(ge=0, le=KEYS_MAX)]
Count = Annotated[Whole, Field(ge=1, le=KEYS_MAX)]
Share = Annotated[float, Field(strict=True, ge=0, le=1, allow_inf_nan=False)]


class KeySpec(Strict):
    """What all forms have in common."""

    distribution: str

    @abstractmethod
    def over(self, keys: int, folder: Path) -> KeyDistribution:
        """The distribution over ``keys`` keys; files are looked for in ``folder``.

        Raises DescriptionError, its place counted from the form, or InputError for a file's line.
        """


class UniformSpec(KeySpec):
    """Uniform keys."""

    distribution: Literal["uniform"] = "uniform"

    def over(self, keys: int, folder: Path) -> KeyDistribution:
        return Uniform(keys)


class ZipfSpec(KeySpec):
    """The r-th most popular key in proportion to r^-exponent.

    ``order``: ``scattered`` (popular keys lie all over the domain), ``sorted`` (from key 0 up).
    """

    distribution: Literal["zipf"]
    exponent: Annotated[float, Field(strict=True, gt=0, le=10, allow_inf_nan=False)]
    order: Literal["scattered", "sorted"] = "scattered"

    def over(self, keys: int, folder: Path) -> KeyDistribution:
        return Zipf(keys, self.exponent, scattered=self.order == "scattered")


class _RangeSpec(KeySpec):
    """A range of keys: ``from`` is its first, ``to`` the first after it."""

    model_config = ConfigDict(serialize_by_alias=True)

    first: Annotated[Key, Field(alias="from")]
    end: Annotated[Count, Field(alias="to")]
    share: Share = 1.0

    @field_validator("end")
    @classmethod
    def _rises(cls, end: int, info: ValidationInfo) -> int:
        if end <= info.data.get("first", -1):
            raise ValueError(f"expected above {info.data['first']}, where the range begins")
        return end

    def _check(self, keys: int) -> None:
        if self.end > keys:
            raise DescriptionError(("to",), f"beyond the domain: expected at most {keys}, its keys")
        if self.share < 1 and self.end - self.first == keys:
            raise DescriptionError(("share",), "no key is left for the rest: expected 1")


class HotRangeSpec(_RangeSpec):
    """``share`` of the accesses fall evenly on the range, the rest evenly on all other keys."""

    distribution: Literal["hot_range"]

    def over(self, keys: int, folder: Path) -> KeyDistribution:
        self._check(keys)
        return HotRange(keys, self.first, self.end, self.share)


class MovingHotRangeSpec(_RangeSpec):
    """A hot range that shifts by ``step`` keys (to the left where negative), each ``every``.

    ``moves``: how many times, as often as the domain holds it by default; ``first_move``: when the
    first, after ``every`` by default, counted from the start of the phase.
    """

    distribution: Literal["moving_hot_range"]
    step: Annotated[Whole, Field(ge=-KEYS_MAX, le=KEYS_MAX)]
    every: Duration
    moves: Count | None = None
    first_move: DurationOrZero | None = None

    @field_validator("step")
    @classmethod
    def _moves(cls, step: int) -> int:
        if step == 0:
            raise ValueError("expected a whole number other than 0")
        return step

    @field_validator("every")
    @classmethod
    def _takes_time(cls, every: Quantity) -> Quantity:
        if every.value < MOVE_EVERY_MIN_S:
            raise ValueError(f"expected at least {MOVE_EVERY_MIN_S * 1e3:g} ms")
        return every

    def over(self, keys: int, folder: Path) -> KeyDistribution:
        self._check(keys)
        moving = MovingHotRange(
            keys,
            self.first,
            self.end,
            self.share,
            step=self.step,
            every_s=self.every.value,
            moves=self.moves,
            first_move_s=None if self.first_move is None else self.first_move.value,
        )
        if (self.moves or 1) > moving.moves_in_domain:
            place = "step" if self.moves is None else "moves"
            raise DescriptionError(
                (place,),
                f"the range leaves the domain of {keys} keys after {moving.moves_in_domain} moves",
            )
        return moving


class RecordedSpec(KeySpec):
    """A histogram of accesses; ``file`` is searched in the workload's folder, then bundled."""

    distribution: Literal["recorded"]
    file: Annotated[str, Field(min_length=1, max_length=1_024)]

    def over(self, keys: int, folder: Path) -> KeyDistribution:
        own, bundled = folder / self.file, BUNDLED / Path(self.file).name
        try:
            is_bundled = "/" not in self.file and not own.exists() and bundled.exists()
            return load_histogram(bundled if is_bundled else own, keys)
        except (OSError, ValueError) as failure:  # ValueError: a NUL in the name
            reason = getattr(failure, "strerror", None) or "not a file name"
            raise DescriptionError(("file",), f"cannot be read: {reason}") from None


AnyKeySpec = Annotated[
    UniformSpec | ZipfSpec | HotRangeSpec | MovingHotRangeSpec | RecordedSpec,
    Field(discriminator="distribution"),
]


# Recorded key histograms: CSV, a range of keys a row. ``key_to`` is the first key after the
# range. Ranges rise and do not overlap; nobody asked for the keys in the gaps.
HEADER = ["key_from", "key_to", "count"]
BYTES_MAX = 64 * 2**20
ROWS_MAX = 1_000_000


def load_histogram(path: Path, keys: int) -> Recorded:
    """The histogram in the file at ``path`` over ``keys`` keys; raises InputError with the line.

    OSError where the file cannot be read.
    """
    name = str(path)
    lines = text_lines(path, BYTES_MAX)
    read = csv_rows(lines, name)
    _, header = next(read, (1, []))
    if [field.strip() for field in header] != HEADER:
        found, expected = ",".join(header), f"the header {','.join(HEADER)}"
        raise InputError("not a key histogram", name, 1, 1, found, expected)
    rows: list[tuple[int, int, float]] = []
    for line, fields in read:
        rows.append(_row(fields, rows[-1][1] if rows else 0, keys, name, line))
        if len(rows) > ROWS_MAX:
            raise InputError("too many rows", name, line, expected=f"at most {ROWS_MAX:,}")
    if not any(count for _, _, count in rows):
        raise InputError(
            "no accesses", name, len(lines) or 1, expected="a row with a count above 0"
        )
    table = np.array(rows)
    return Recorded(keys, table[:, 0].astype(np.int64), table[:, 1].astype(np.int64), table[:, 2])


def _row(fields: list[str], above: int, keys: int, name: str, line: int) -> tuple[int, int, float]:
    """One row, whose range must begin at ``above`` or higher and end within ``keys``."""

    def refused(index: int, message: str, expected: str) -> InputError:
        column = field_column(fields, index)
        return InputError(
            f"{HEADER[index]}: {message}", name, line, column, fields[index], expected
        )

    bounds: list[int] = []
    for index, (low, high) in enumerate(((above, keys - 1), (above + 1, keys))):
        text = fields[index].strip()
        if not (text.isascii() and text.isdigit() and len(text) <= 18):
            raise refused(index, "not a key", "a whole number")
        bounds.append(int(text))
        if index:
            low = bounds[0] + 1
        if not low <= bounds[index] <= high:
            raise refused(index, "out of order or of the domain", f"{low} to {high}")
    try:
        count = float(fields[2])
    except ValueError:
        count = math.nan
    if not (math.isfinite(count) and count >= 0):
        raise refused(2, "not a count", "a number of at least 0")
    return bounds[0], bounds[1], count
