"""JSON of results: NumPy's numbers are numbers, and what is not finite is refused."""

import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import told_by

from numatwin.inputs import json_text, read_json, write_json


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
    assert "cannot be written" in told_by(write_json, tmp_path / "none" / "rows.json", {})


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", ":1:1: not a model: not JSON"),
        (b'{\n"a": 1,,\n}', ":2:8: not a model: not JSON"),
        (b"\xff", ": not a model: not JSON"),
        (b"1" * 5000, ": not a model: not JSON"),
        (b"[" * 200_000, ": not a model: nested too deeply"),
        (b"[" * 65 + b"]" * 65, ": not a model: nested too deeply"),
        (b'{"a":' * 65 + b"1" + b"}" * 65, ": not a model: nested too deeply"),
    ],
)
def test_what_cannot_be_read(tmp_path: Path, content: bytes, told: str) -> None:
    path = tmp_path / "model.json"
    path.write_bytes(content)
    assert told_by(read_json, path, "a model") == f"{path}{told}"


def test_it_is_read_up_to_a_depth_and_a_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model.json"
    path.write_bytes(b"[" * 64 + b"]" * 64)
    read_json(path, "a model")
    module = importlib.import_module("numatwin.inputs.json_text")
    monkeypatch.setattr(module, "READ_MAX_BYTES", 100)
    assert "not a model: larger than 100 bytes" in told_by(read_json, path, "a model")
    assert "cannot be read: No such file" in told_by(read_json, tmp_path / "none.json", "a model")
