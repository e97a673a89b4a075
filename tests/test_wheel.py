"""``make wheel``: the wheel in an empty environment outside the checkout does the main job."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
POLICIES = ("none", "ma-8")

pytestmark = pytest.mark.sweep


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source archive."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(["make", "-s", "wheel", f"DIST={folder}"], cwd=ROOT, check=True)
    return folder


def test_the_wheel_says_what_it_needs(made: Path) -> None:
    (wheel,) = made.glob("*.whl")
    assert "-manylinux" in wheel.name or "-linux_" in wheel.name
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert any(name.startswith("numatwin/sim/_kernel.") for name in names)
    assert "numatwin/topologies/amd-8n-ht.yaml" in names
    assert not any("libuc" in name or "libnuma" in name for name in names)
    assert not any(name.startswith("tests/") for name in names)


def test_the_source_archive_is_whole(made: Path) -> None:
    """Every file that the wheel has, or that it is made of, is in it."""
    (source,) = made.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    listed = subprocess.run(
        ["git", "ls-files", "numatwin", "topologies", "workloads", "sim", "engine_native",
         "validate", "reports", "setup.py", "setup.cfg", "pyproject.toml", "README.md", "LICENSE"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout.split("\n")  # fmt: skip
    of_use = {name for name in listed if name and not name.endswith(("README.md", ".txt"))}
    assert of_use - names == set()


def test_the_main_job_in_an_empty_environment(made: Path, tmp_path: Path) -> None:
    (wheel,) = made.glob("*.whl")
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")} | {
        "PATH": f"{environment / 'bin'}:/usr/bin:/bin"
    }

    def run(*words: str) -> str:
        done = subprocess.run(words, cwd=tmp_path, env=clean, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("pip", "install", "-q", "--disable-pip-version-check", str(wheel))
    where = run("python", "-c", "import numatwin; print(numatwin.__file__)")
    assert Path(where.strip()).is_relative_to(environment)
    for policy in POLICIES:
        run("numatwin", "run", "eris-fig13", "--policy", policy, "--out", policy)
    assert "throughput lookup" in run("numatwin", "compare", *POLICIES)
    run("numatwin", "report", *POLICIES, "--out", "report.html")
    assert (tmp_path / "report.html").stat().st_size > 100_000
    assert "available" in run("numatwin", "doctor").splitlines()[1]
