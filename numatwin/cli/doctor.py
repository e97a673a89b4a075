"""``numatwin doctor``: what this host lacks for which feature, and how to install it."""

import shutil
import sys
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec

import typer

from ..inputs import InputError
from .options import Json
from .output import present, whole_table


@dataclass(frozen=True)
class Finding:
    """One thing that a feature needs. ``problem``: empty where it is there; ``install``: the
    command that brings it; ``needed``: whether nothing works without it.
    """

    feature: str
    needs: str
    problem: str
    install: str
    needed: bool = False


def doctor(json: Json = False) -> None:
    """Show what this host lacks, and which features need it.

    Each line names a feature, what it needs, and the command that installs what is missing.
    """
    found = findings()
    fatal = [one for one in found if one.needed and one.problem]
    rows = (
        (one.feature, one.needs, one.problem or "available", one.install if one.problem else "")
        for one in found
    )
    plain = [
        {
            "feature": one.feature,
            "needs": one.needs,
            "available": not one.problem,
            "problem": one.problem or None,
            "install": one.install if one.problem else None,
        }
        for one in found
    ]
    shown = whole_table(("feature", "needs", "state", "to install"), rows, left=4)
    present(json, lambda: {"findings": plain}, [shown])
    if fatal:
        raise typer.Exit(1)


def findings() -> list[Finding]:
    """All that features need, in the order of the documentation."""
    kernel, engine = (
        _module(f"numatwin.{name}") for name in ("sim._kernel", "engine_native._engine")
    )
    ucx = engine
    if not engine and not import_module("numatwin.engine_native._engine").HAS_UCX:
        ucx = "the engine was built without UCX"
    measures, networks = "run --on native, machine measure", "native transactions over TCP and RDMA"
    return [
        Finding("all planes", "the compiled kernel", kernel, _BUILD, needed=True),
        Finding(measures, "the native engine", engine, _to_build("libnuma-dev", engine)),
        Finding(networks, "UCX", ucx, _to_build("libucx-dev", ucx)),
        _program("emulate", "qemu-system-x86_64", "qemu-system-x86"),
        _program("emulate", "busybox", "busybox-static"),
        _program("emulate --count", "g++", "g++"),
        _guest_kernel(),
        _library("study sensitivity", "SALib"),
        _library("study search", "optuna"),
        _library("study run --scheduler", "distributed"),
        _library("explore", "dash"),
        _library("Record.to_frame in Python", "pandas"),
    ]


_BUILD = f"{sys.executable} -m pip install --force-reinstall --no-deps numatwin, or 'make setup'"


def _module(name: str) -> str:
    try:
        import_module(name)
    except ImportError as failure:
        return str(failure)
    return ""


def _guest_kernel() -> Finding:
    from ..topologies.emulator.image import find_kernel

    problem = ""
    try:
        find_kernel()
    except InputError:
        problem = "none with its modules here"
    install = f"{sys.executable} -m numatwin.topologies.emulator, or {_apt('linux-image-amd64')}"
    return Finding("emulate", "a guest's Linux kernel", problem, install)


def _to_build(package: str, problem: str) -> str:
    """A build that is there, as of a wheel, lacks what it was linked with."""
    if "shared object" in problem:
        return _apt("libnuma1 libucx0")
    return f"{_apt(package)}, then build again: 'make setup'"


def _program(feature: str, program: str, package: str) -> Finding:
    problem = "" if shutil.which(program) else "not found on PATH"
    return Finding(feature, program, problem, _apt(package))


def _library(feature: str, name: str) -> Finding:
    problem = "" if find_spec(name) is not None else "not installed"
    return Finding(feature, name, problem, f"{sys.executable} -m pip install {name}")


def _apt(package: str) -> str:
    return f"sudo apt-get install {package}"
