"""JSON of results: NumPy's numbers are numbers, and what is not finite is refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from numatwin.inputs import InputError, json_text, write_json


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (np.float64(1.5) > 1, True),
        (np.int64(7), 7),
        (np.float32(0.5), 0.5),
        (np.arange(6).reshape(2, 3), [[0, 1, 2], [3, 4, 5]]),
        ({"a": [np.bool_(False), None]}, {"a": [False, None]}),
    ],
)
def test_numpys_values(value: Any, plain: Any, tmp_path: Path) -> None:
    assert json.loads(json_text(value)) == plain
    write_json(tmp_path / "rows.json", value)
    assert json.loads((tmp_path / "rows.json").read_text()) == plain


def test_what_json_does_not_have(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        json_text(np.float64("nan"))
    with pytest.raises(TypeError, match="JSON has no set"):
        json_text({1})
    with pytest.raises(InputError, match="cannot be written"):
        write_json(tmp_path / "none" / "rows.json", {})
