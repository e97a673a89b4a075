"""The identity of a processor: the name and numbers by which it is found in the catalogue."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ..inputs.yaml_file import Strict

Number = Annotated[int, Field(strict=True, ge=0, le=0xFFFFFFFF)]
Text = Annotated[str, Field(max_length=200)]


class ProcessorIdentity(Strict):
    """A processor's own words; no plane reads them.

    ``vendor``, ``family``, ``model``, ``stepping``: of CPUID (Itanium's likewise); ``implementer``,
    ``part``: of Arm's MIDR_EL1; ``pvr``: the upper half of POWER's version register. ``board``: who
    made the board or the virtual machine. ``packages``: in how many sockets a node's cores are.
    ``virtual``: a hypervisor is beneath.
    """

    model_name: Text | None = None
    vendor: Text | None = None
    family: Number | None = None
    model: Number | None = None
    stepping: Number | None = None
    implementer: Number | None = None
    part: Number | None = None
    pvr: Number | None = None
    board: Text | None = None
    packages: Annotated[int, Field(strict=True, ge=1, le=4_096)] = 1
    virtual: bool = False
