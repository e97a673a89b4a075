"""Runs of the scripts of ``benchmarks/``, which print a JSON object a line."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

FOLDER = Path(__file__).parents[1] / "benchmarks"


def imported(script: str) -> ModuleType:
    """The script as a module."""
    spec = importlib.util.spec_from_file_location(f"{script}_benchmark", FOLDER / f"{script}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def printed_by(script: str, *options: str) -> tuple[list[dict[str, Any]], str]:
    """The lines that the script prints, and what it says of them (stderr)."""
    command = [sys.executable, str(FOLDER / f"{script}.py"), *options]
    quick = {**os.environ, "CXXFLAGS": "-O0"}
    done = subprocess.run(command, capture_output=True, text=True, env=quick)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr
