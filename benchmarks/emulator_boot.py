"""How long a guest of the topology emulator takes to boot, by nodes: wall time and processor time.

The guest is the first nodes of a machine of 64, with one processor and 64 MiB each (128 MiB where
there is one node alone, the least that a guest needs). Time until a command runs and has ended; the
first is of an image that is not in the cache yet.
"""

import argparse
import json
import os
import sys
import tempfile
import time

from numatwin.inputs import InputError
from numatwin.topologies import load_machine
from numatwin.topologies.emulator import guest_machine, run_in_guest

NODES = (8, 1, 8, 16, 32, 64)
NODE_BYTES, LEAST_BYTES = 64 << 20, 128 << 20


def line(name: str, value: float) -> str:
    return json.dumps(
        {"name": name, "value": round(value, 2), "unit": "s", "versus": None, "ratio": None}
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("nodes", nargs="*", type=int, metavar="N", help="other numbers of nodes")
    wanted = parser.parse_args().nodes or NODES
    machine = load_machine("sgi-uv2000-64n")
    with tempfile.TemporaryDirectory() as folder:
        kernels = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"),
                               "numatwin", "emulator", "kernel")  # fmt: skip
        os.makedirs(os.path.join(folder, "numatwin", "emulator"))
        if os.path.isdir(kernels):
            os.symlink(kernels, os.path.join(folder, "numatwin", "emulator", "kernel"))
        os.environ["XDG_CACHE_HOME"] = folder
        for k, nodes in enumerate(wanted):
            memory_bytes = max(nodes * NODE_BYTES, LEAST_BYTES)
            guest = guest_machine(machine, nodes=nodes, scale=1 / 16, memory_bytes=memory_bytes)
            began = time.perf_counter()
            done = run_in_guest(guest, ["true"])
            name = f"emulator boot, {nodes} nodes" + (", first" if k == 0 else "")
            print(line(name, time.perf_counter() - began))
            print(line(f"{name}, processor time", done.qemu_cpu_s), flush=True)


if __name__ == "__main__":
    try:
        main()
    except InputError as failure:
        print(f"left out: {failure}", file=sys.stderr)
