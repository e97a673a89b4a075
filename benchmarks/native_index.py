"""Look-ups, upserts and memory of the engine's prefix tree, one thread, batches of 1,024 keys.

Against ``absl::btree_map`` where its headers are (Debian's ``libabsl-dev``), unodb's adaptive radix
tree where ``NUMATWIN_UNODB`` names a folder with its source, and the engine's own shared tree: each
by turns with a prefix tree of its own, in one process (``native_index/``, compiled when this runs).
Then against independent random reads of as many bytes: a look-up has two cache misses one after the
other (a node's slot, a bucket's line; what stands above is in the caches), so half of that rate is
its limit. The trees' memory is what their memory manager has mapped. Rates are per second of CPU
time. Without unodb, and for 10^7 or 10^8 keys, look-ups and memory are held against what ART did on
the development host, which the line then says. One JSON object a line goes to standard output, the
hash of all answers to standard error.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).parent
ENGINE = HERE.parent / "engine_native"
SOURCES = HERE / "native_index"
# All of memory/ but register.cpp, which binds Python.
OWN = ["storage/*tree*.cpp", "storage/shared_change.cpp", "storage/epochs.cpp", "memory/[!r]*.cpp"]
FLAGS = [
    "-std=c++20",
    "-O3",
    "-DNDEBUG",
    f"-I{ENGINE}",
    f"-I{ENGINE.parent / 'sim'}",
    f"-I{SOURCES}",
]


def compiler() -> str:
    """The C++ compiler's name."""
    return os.environ.get("CXX", "g++")


def compile_file(source: Path, made: Path, *flags: str) -> Path:
    """Compiles one file, or ends with what the compiler says."""
    command = [compiler(), *FLAGS, *flags, "-c", str(source), "-o", str(made)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{source.name} does not compile:\n{done.stderr[:2000]}")
    return made


def has_absl() -> bool:
    """Whether Abseil's headers are installed."""
    code = "#include <absl/container/btree_map.h>\n"
    command = [compiler(), "-std=c++20", "-x", "c++", "-fsyntax-only", "-"]
    return subprocess.run(command, input=code, capture_output=True, text=True).returncode == 0


def build(folder: Path) -> Path:
    """The program, with the contenders that this host has."""
    absl, unodb = has_absl(), os.environ.get("NUMATWIN_UNODB", "")
    own = [path for part in OWN for path in sorted(ENGINE.glob(part))]
    sources: dict[Path, list[str]] = {path: [] for path in [*own, *sorted(SOURCES.glob("*.cpp"))]}
    if absl:
        sources[SOURCES / "btree.cpp"] = ["-DHAS_ABSL"]
    if unodb:
        # It chooses its instructions when it is compiled, the engine when it runs.
        native = ["-march=native"] if platform.machine() == "x86_64" else []
        for path in [SOURCES / "art.cpp", Path(unodb) / "art_internal.cpp"]:
            sources[path] = ["-DHAS_UNODB", f"-I{unodb}", *native]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [
            pool.submit(compile_file, path, folder / f"{i}.o", *flags)
            for i, (path, flags) in enumerate(sources.items())
        ]
        made = [job.result() for job in jobs]
    libraries = ["-lnuma", "-pthread", *(["-labsl_throw_delegate"] if absl else [])]
    program = folder / "native_index"
    command = [compiler(), *map(str, made), "-o", str(program), *libraries]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"native_index does not link:\n{done.stderr[:2000]}")
    return program


# What unodb's ART did on the development host, the better end of each range: look-ups per second
# and bytes per key at random 64-bit keys. For hosts without its source.
ART_LOOKUPS_PER_S = {10_000_000: 7.1e6, 100_000_000: 2.9e6}
ART_BYTES_PER_KEY = 54.0
READS = "independent random reads of as many bytes"
CONTENDERS = ("art", "btree", "shared", "reads")


def against_known_art(line: str, keys: int) -> None:
    """Where unodb is not there: the look-ups and the memory of a line against its known figures."""
    name, *figures = line.rstrip("\n").split("\t")
    known = {
        f"lookup/{keys}_random_keys": ART_LOOKUPS_PER_S.get(keys, 0.0),
        f"memory/{keys}_random_keys": ART_BYTES_PER_KEY if keys in ART_LOOKUPS_PER_S else 0.0,
    }
    alone = len(figures) == 4 and figures[3] in ("", READS)
    if alone and known.get(name):
        versus = "unodb ART: not here (NUMATWIN_UNODB), its figure on the development host"
        report("\t".join([name, figures[0], figures[1], str(known[name]), versus]))


def report(line: str) -> None:
    """Prints what a line of the program says."""
    name, *figures = line.rstrip("\n").split("\t")
    if name == "result":
        print(f"native_index: result {figures[0]}", file=sys.stderr)
        return
    ours, unit, theirs, versus = float(figures[0]), figures[1], float(figures[2]), figures[3]
    row = {
        "name": f"native_index/{name}",
        "value": round(ours, 2) if ours < 1000 else round(ours),
        "unit": unit,
        "versus": f"{versus}: {theirs:.6g}" if versus else None,
        "ratio": round(ours / theirs, 2) if theirs else None,
    }
    print(json.dumps(row), flush=True)


def main() -> None:
    """Builds the program and runs it for each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, nargs="+", default=[10_000_000])
    parser.add_argument("--repeat", type=int, default=5, help="turns of each contender")
    parser.add_argument("--lookups", type=int, default=2_000_000, help="in a turn")
    parser.add_argument("--against", nargs="+", choices=CONTENDERS, default=CONTENDERS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        program = build(Path(name))
        for keys in options.keys:
            amounts = map(str, (keys, options.repeat, options.lookups))
            command = [str(program), *amounts, *options.against]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
                assert running.stdout is not None
                for line in running.stdout:
                    report(line)
                    if not os.environ.get("NUMATWIN_UNODB"):
                        against_known_art(line, keys)
            if running.returncode != 0:
                raise SystemExit(f"native_index: status {running.returncode} at {keys} keys")


if __name__ == "__main__":
    if shutil.which(compiler()) is None:
        raise SystemExit("native_index: needs a C++20 compiler (CXX, or g++)")
    main()
