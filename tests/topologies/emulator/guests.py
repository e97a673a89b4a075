"""What tests of guests share: who needs one, and a guest's own view of its machine."""

from pathlib import Path

import numpy as np

from numatwin.topologies import Machine, build_machine
from numatwin.topologies.emulator import GuestMachine, run_in_guest
from numatwin.topologies.importers import import_machine
from numatwin.topologies.machine import Floats

# tar takes a long file of /sys, which it reads page by page, for one that shrinks.
SAVE = """
tables=sys/firmware/acpi/tables; copies=$(mktemp -d); mkdir -p "$copies/$tables"
for table in HMAT SRAT; do cat "/$tables/$table" > "$copies/$tables/$table"; done
tar -C / -cf - sys/devices/system/cpu sys/devices/system/node proc/cpuinfo proc/meminfo \\
    -C "$copies" "$tables" 2>/dev/null; true"""


def import_of_guest(guest: GuestMachine, folder: Path) -> Machine:
    """The machine that the guest's own system files describe."""
    done = run_in_guest(guest, ["sh", "-c", SAVE], time_limit_s=600)
    archive = folder / "guest.tar"
    archive.write_bytes(done.output)
    return build_machine(import_machine(archive))


def pairs_of(guest: GuestMachine, matrix: Floats) -> Floats:
    """The machine's values in the order of the guest's nodes."""
    return np.asarray(matrix[np.ix_(guest.nodes, guest.nodes)])
