"""What is installed is what is here: no module and no data file is forgotten in setup.cfg."""

import configparser
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
# In the folders, but of no use once installed.
LEFT_OUT = {".md", ".cpp", ".hpp", ".so", ".pyc"}


def test_everything_is_packaged(tmp_path: Path) -> None:
    """setuptools lays the package out as it would install it, all but the compiled kernel."""
    subprocess.run(
        [sys.executable, "setup.py", "-q", "build_py", "--build-lib", str(tmp_path)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    folders = dict(
        line.replace(" ", "").split("=")
        for line in setup["options"]["package_dir"].strip().splitlines()
    )
    forgotten = [
        str(path.relative_to(ROOT))
        for package, folder in folders.items()
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and path.suffix not in LEFT_OUT
        if not (tmp_path / package.replace(".", "/") / path.relative_to(ROOT / folder)).exists()
    ]
    assert forgotten == []
    assert (tmp_path / "numatwin" / "sim" / "_kernel.pyi").exists()
