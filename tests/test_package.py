"""What is installed is what is here, and it runs without the repository."""

import configparser
from importlib.util import find_spec
from pathlib import Path
from shutil import copy

import pytest
from fresh_processes import python
from known import known

ROOT = Path(__file__).parents[1]
# In the folders, but of no use once installed.
LEFT_OUT = {".md", ".cpp", ".hpp", ".so", ".pyc", ".txt"}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as setuptools would install it, with the kernel that is compiled already."""
    folder = tmp_path_factory.mktemp("installed")
    built = python("setup.py", "-q", "build_py", "--build-lib", str(folder), cwd=ROOT)
    assert built.returncode == 0, built.stderr
    kernel = known(find_spec("numatwin.sim._kernel"))
    copy(known(kernel.origin), folder / "numatwin" / "sim")
    return folder


def test_everything_is_packaged(installed: Path) -> None:
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
        if not (installed / package.replace(".", "/") / path.relative_to(ROOT / folder)).exists()
    ]
    assert forgotten == []
    assert (installed / "numatwin" / "sim" / "_kernel.pyi").exists()


def test_what_is_installed_runs(installed: Path, tmp_path: Path) -> None:
    """In another folder, the installed package before the one in the repository."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]);"
        "import numatwin.sim._kernel, numatwin.cli;"
        "print(numatwin.__file__, numatwin.sim.__file__, sep='\\n');"
        "sys.exit(numatwin.cli.main(['run', 'eris-fig12-scan', '--json', '--out', 'record']))"
    )
    done = python("-P", "-c", code, str(installed), cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    for line in done.stdout.splitlines()[:2]:
        assert Path(line).is_relative_to(installed)
    assert (tmp_path / "record" / "report.html").exists()
