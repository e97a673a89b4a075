"""Commands that a suite runs in the emulator, for bounds on what they do to memory.

Paths in a suite's file, relative to that file.
"""

import hashlib
import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, StrictStr

from ..inputs import DescriptionError, InputError, Strict
from ..inputs.quantities import Duration, Size
from ..sim.run.counted import counted_record
from ..sim.run.record import Record
from ..topologies import Machine, load_machine

# Of ``Record.traffic``: the figure's name, its dimension in a suite, its unit.
FIGURES: Mapping[str, tuple[str | None, str]] = {
    "remote_share": (None, "1"),
    "user_remote_share": (None, "1"),
    "remote_bytes": ("size", "B"),
    "memory_bytes": ("size", "B"),
    "link_bytes": ("size", "B"),
}
LAST_WORDS_MAX = 200


class EmulatedCommand(Strict):
    """A command in a guest of a machine; see ``numatwin emulate --help``.

    ``machine``: a name, or a path relative to the suite's file, in whose folder ``command`` runs:
    a program and its arguments. ``scale``: the part of memory, processors and caches, such as
    ``1/16``; ``memory``: in all; ``nodes``: the first ones alone. ``time_limit``: of the command,
    without the boot.
    """

    machine: str
    command: Annotated[tuple[StrictStr, ...], Field(min_length=1, max_length=1_000)]
    nodes: Annotated[int, Field(strict=True, ge=1)] | None = None
    memory: Size | None = None
    scale: StrictStr | Annotated[float, Field(strict=True)] | None = None
    time_limit: Duration | None = None

    def part(self) -> float | None:
        """``scale`` as a number; raises DescriptionError."""
        if self.scale is None:
            return None
        try:
            found = float(Fraction(self.scale))
        except (ValueError, ZeroDivisionError, OverflowError):
            found = 0.0
        if not 0 < found <= 1:
            raise DescriptionError(
                ("scale",), f"{self.scale}: expected more than 0, at most 1, such as 1/16"
            )
        return found


@dataclass(frozen=True, eq=False)
class EmulatedRun:
    """What is run: in place of a scenario, with what a check tells of one."""

    described: EmulatedCommand
    machine: Machine
    part: float | None
    folder: Path

    plane = "emulator"
    policy_name = "none"
    seed = 0
    horizon_s = 0.0

    @property
    def name(self) -> str:
        """As results tell it: the program."""
        return Path(self.described.command[0]).name

    @property
    def hash(self) -> str:
        """The same for what is run in the same way."""
        parts = [self.described.model_dump(mode="json"), str(self.folder.absolute())]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]

    def record(self) -> Record:
        """Runs it once. Raises InputError where it cannot be run, or ends with another status
        than 0.
        """
        from ..topologies.emulator import guest_machine
        from ..topologies.emulator.counting import run_counted

        described, began = self.described, time.perf_counter()
        guest = guest_machine(
            self.machine,
            nodes=described.nodes,
            memory_bytes=None if described.memory is None else described.memory.value,
            scale=self.part,
        )
        limit_s = None if described.time_limit is None else described.time_limit.value
        done = run_counted(guest, described.command, folder=self.folder, time_limit_s=limit_s)
        if done.run.out_of_memory is not None:
            raise InputError(f"{self.name}: the guest ran out of memory: {done.run.out_of_memory}")
        if done.run.status:
            lines = done.run.errors.decode(errors="replace").strip().splitlines()
            last = f", after '{lines[-1][:LAST_WORDS_MAX]}'" if lines else ""
            raise InputError(
                f"{self.name} ended with status {done.run.status} in a guest of "
                f"{self.machine.name}{last}",
                expected="status 0",
            )
        return counted_record(done.traffic, described.command, time.perf_counter() - began)


def emulated_run(described: EmulatedCommand, folder: Path) -> EmulatedRun:
    """The run of a suite in ``folder``; raises InputError, and DescriptionError for a field."""
    machine = seen_from(folder, described.machine)
    return EmulatedRun(described, load_machine(machine), described.part(), folder)


def traffic_figure(traffic: Mapping[str, Any], name: str) -> float:
    """One of ``FIGURES``.

    Of misses the part of other nodes' memory, also without the kernel's, and the bytes of these
    misses; bytes read and written by all memory controllers; bytes over all links, once for each
    that they cross.
    """
    if name in ("remote_share", "user_remote_share"):
        return float(traffic[name])
    if name == "memory_bytes":
        return float(sum(node["read_bytes"] + node["written_bytes"] for node in traffic["memory"]))
    if name == "link_bytes":
        return float(sum(link["data_bytes"] + link["message_bytes"] for link in traffic["links"]))
    kinds = [f"{kind}_misses_{who}" for kind in ("read", "write") for who in ("user", "kernel")]
    misses = sum(
        count
        for kind in kinds
        for node, row in enumerate(traffic["pairs"][kind])
        for home, count in enumerate(row)
        if node != home
    )
    return float(misses * traffic["line_bytes"])


_BY_FAMILY = re.compile(r"[A-Za-z][\w-]*=", re.ASCII)


def seen_from(folder: Path, text: str) -> str:
    """``text`` where it is a name; where it is a path, or a policy ``FILE.py:CLASS`` (after
    ``FAMILY=`` or alone), the same path as seen from here.
    """
    if not ("/" in text or text.endswith((".yaml", ".yml")) or ".py:" in text):
        return text
    family = _BY_FAMILY.match(text) if ".py:" in text else None
    before = family[0] if family else ""
    return f"{before}{folder / text.removeprefix(before)}"
