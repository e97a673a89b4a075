"""PostgreSQL and Redis as servers: counted by callgrind, or measured. Prints a JSON object a line.

python benchmarks/real_engines/servers.py postgresql|redis --count FOLDER | --seconds S

``--count``: each operation's output files of callgrind, one for each set of simulated caches that
``numatwin profile`` uses, in FOLDER. ``--seconds``: the servers' own processor time, in user code
and in the kernel, of each operation, while clients ask for so long.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from numatwin.validate.profile.callgrind import RUNS

TICK_S = 1 / os.sysconf("SC_CLK_TCK")
SIZES = (64, 1024, 16384)  # bytes of a value
PIPELINES = (1, 16)
CLIENTS = (1, 2, 8)
CONNECTIONS, KEYS, PORT = 50, 10_000, 16379
# What redis-benchmark calls it, bytes of a value, requests in a pipeline, to warm up, and counted.
# ``lrange_100`` is a push and a range of 100 entries. The last three were held back: the model was
# made without them.
ASKED = {
    **{
        f"get-{size}-{pipeline}": ("get", size, pipeline, 4 * KEYS, 4_000)
        for size in SIZES
        for pipeline in PIPELINES
    },
    "incr": ("incr", 64, 1, 2 * KEYS, 2_000),
    "mset": ("mset", 64, 1, 2 * KEYS, 2_000),
    "lrange": ("lrange_100", 64, 1, 4_000, 2_000),
}
SCALE, ROWS = 5, 500_000  # of pgbench
SCAN = "SELECT count(*), sum(abalance) FROM pgbench_accounts WHERE bid <> 3;"
# Asked with a row's number, how often to warm up, and counted. The last two came later, so that a
# prediction given an engine's other operations has more than one of them.
STATEMENTS = {
    "select": ("SELECT abalance FROM pgbench_accounts WHERE aid = {};", 6_000, 300),
    "range": (
        "SELECT sum(abalance) FROM pgbench_accounts WHERE aid BETWEEN {0} AND {0} + 999;",
        400,
        100,
    ),
    "nothing": ("SELECT 1;", 600, 300),
}


def said(*words: str | Path) -> str:
    """What a command prints; raises where it fails."""
    return subprocess.run(words, check=True, capture_output=True, text=True, cwd="/").stdout


def until(ready: Sequence[str]) -> None:
    """Waits until a command succeeds."""
    for _ in range(600):
        if subprocess.run(ready, check=False, capture_output=True, cwd="/").returncode == 0:
            return
        time.sleep(0.1)
    sys.exit(f"no server: {' '.join(ready)}")


def used_s(pid: int, *, children: bool) -> tuple[float, float]:
    """Processor time of a process in user code and in the kernel, or of its ended children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    first = 13 if children else 11
    return int(fields[first]) * TICK_S, int(fields[first + 1]) * TICK_S


def callgrind(out: Path, options: Sequence[str]) -> list[str]:
    """The words before a command that is counted."""
    words = ["valgrind", "--quiet", "--tool=callgrind", "--cache-sim=yes"]
    words += ["--branch-sim=yes", "--collect-systime=nsec", f"--callgrind-out-file={out}.%p"]
    return [*words, f"--log-file={out}.log", *options]


class Redis:
    """A server with values of one size, in a process of its own."""

    def __init__(self, size: int, before: Sequence[str] = ()) -> None:
        command = [*before, "redis-server", "--port", str(PORT), "--save", "", "--dir", "/tmp"]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        self.pid = self.process.pid
        until(["redis-cli", "-p", str(PORT), "ping"])
        self.ask("set", size, 16, 5 * KEYS)

    def ask(self, what: str, size: int, pipeline: int, count: int) -> None:
        """So many requests, of connections that are all open at once."""
        words = ["redis-benchmark", "-p", str(PORT), "-q", "-t", what, "-r", str(KEYS)]
        words += ["-c", str(CONNECTIONS), "-P", str(pipeline), "-d", str(size)]
        said(*words, "-n", str(count))

    def stop(self) -> None:
        """Without saving anything."""
        said("redis-cli", "-p", str(PORT), "shutdown", "nosave")
        self.process.wait()


def count_redis(folder: Path) -> Iterator[dict[str, Any]]:
    for name, (what, size, pipeline, warm, counted) in ASKED.items():
        for k, options in enumerate(RUNS):
            out = folder / f"{name}.{k}"
            server = Redis(size, [*callgrind(out, options), "--instr-atstart=no"])
            control(server.pid, "-i", "on")
            server.ask(what, size, pipeline, warm)  # each key is in the caches that hold it
            control(server.pid, "-d")  # and counts from zero; "-z" keeps counts of system calls
            server.ask(what, size, pipeline, counted)
            control(server.pid, "-i", "off")
            server.stop()
            Path(f"{out}.{server.pid}").rename(f"{out}.callgrind.out")
        yield {"engine": "redis", "operation": name, "counted": counted}


def measure_redis(seconds: float) -> Iterator[dict[str, Any]]:
    for name, (what, size, pipeline, warm, _) in ASKED.items():
        server = Redis(size)
        server.ask(what, size, pipeline, warm)
        count, took_s = 2_000, 0.0
        while took_s < seconds:
            count *= 2 if took_s == 0.0 else max(int(1.2 * seconds / took_s + 1), 2)
            before, began = used_s(server.pid, children=False), time.monotonic()
            server.ask(what, size, pipeline, count)
            took_s, after = time.monotonic() - began, used_s(server.pid, children=False)
        yield row("redis", name, CONNECTIONS, count, before, after, took_s)
        server.stop()


def control(pid: int, *words: str) -> None:
    said("callgrind_control", *words, str(pid))


class Postgres:
    """A cluster of its own in a folder of its own, of another user where this one is root."""

    def __init__(self, folder: Path) -> None:
        found = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
        self.programs = found[-1] if found else Path(str(shutil.which("postgres"))).parent
        self.user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
        self.folder = folder
        folder.chmod(0o777)
        self.data = folder / "data"
        said(*self.user, self.programs / "initdb", "-D", self.data, "-A", "trust", "-U", "bench")
        with self.running():
            self.bench("-i", "-s", str(SCALE), "-q")

    @contextmanager
    def running(self, before: Sequence[str] = ()) -> Iterator[int]:
        """The server's process."""
        command = [*self.user, *before, str(self.programs / "postgres"), "-D", str(self.data)]
        command += ["-k", str(self.folder), "-c", "listen_addresses=", "-c", "fsync=off"]
        command += ["-c", "shared_buffers=512MB", "-c", "autovacuum=off", "-c", "jit=off"]
        log = (self.folder / "log").open("w")
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd="/")
        try:
            until([str(self.programs / "pg_isready"), "-h", str(self.folder)])
            pid = int((self.data / "postmaster.pid").read_text().split()[0])
            yield pid
        finally:
            said(*self.user, "kill", "-INT", str(pid))
            process.wait()

    def bench(self, *words: str) -> str:
        """pgbench's output."""
        return said(self.programs / "pgbench", "-h", self.folder, "-U", "bench", *words, "postgres")

    def psql(self) -> subprocess.Popen[str]:
        """A session that prints values only."""
        words = [str(self.programs / "psql"), "-h", str(self.folder), "-U", "bench", "-qAtX"]
        pipe = subprocess.PIPE
        return subprocess.Popen([*words, "postgres"], stdin=pipe, stdout=pipe, text=True)


def asked(session: subprocess.Popen[str], statements: Sequence[str]) -> list[str]:
    """What a session prints for these."""
    assert session.stdin is not None
    assert session.stdout is not None
    session.stdin.write("\n".join([*statements, "\\echo done", ""]))
    session.stdin.flush()
    found = []
    while (line := session.stdout.readline().strip()) != "done":
        found.append(line)
    return found


def count_postgres(folder: Path, server: Postgres) -> Iterator[dict[str, Any]]:
    """One session a set of caches. Counts are written as each ``pg_sleep`` begins, and at its end:
    of a scan that reads all pages and statements to warm up, of those that count, and so on for
    each kind of statement; then of the scan."""
    rng, script = random.Random(1), [SCAN]
    for text, *counts in STATEMENTS.values():
        for count in counts:
            script += [text.format(rng.randrange(1, ROWS)) for _ in range(count)]
            script.append("SELECT pg_sleep(0);")
    script.append(SCAN)
    counted = {name: (f".{2 * k + 2}", of[-1]) for k, (name, of) in enumerate(STATEMENTS.items())}
    counted["scan"] = "", 1
    alone = "SET max_parallel_workers_per_gather = 0;"
    for k, options in enumerate(RUNS):
        out = server.folder / f"counted.{k}"
        with server.running([*callgrind(out, options), "--dump-before=pg_sleep"]):
            session = server.psql()
            pid = int(asked(session, [alone, "SELECT pg_backend_pid();"])[0])
            asked(session, script)
            session.communicate()
            while Path(f"/proc/{pid}").exists():  # until it has written
                time.sleep(0.1)
        for name, (part, _) in counted.items():
            shutil.copy(f"{out}.{pid}{part}", folder / f"{name}.{k}.callgrind.out")
    for name, (_, count) in counted.items():
        yield {"engine": "postgresql", "operation": name, "counted": count}


def measure_postgres(seconds: float, server: Postgres) -> Iterator[dict[str, Any]]:
    def script(name: str, text: str) -> list[str]:
        file = server.folder / f"{name}.sql"
        file.write_text(f"\\set row random(1, {ROWS})\n{text.format(':row')}\n")
        return ["-n", "-f", str(file)]

    plays = [("select", clients, ["-S"]) for clients in CLIENTS]
    plays += [(name, 1, script(name, STATEMENTS[name][0])) for name in ("range", "nothing")]
    plays += [("scan", clients, script("scan", SCAN)) for clients in CLIENTS[:2]]
    plays += [("parallel scan", 1, script("scan", SCAN))]
    with server.running() as pid:
        server.bench("-S", "-t", "5000")  # pages are in memory then
        time.sleep(0.5)
        for name, clients, words in plays:
            workers = int(name == "parallel scan")
            os.environ["PGOPTIONS"] = f"-c max_parallel_workers_per_gather={workers}"
            before = used_s(pid, children=True)
            said_of_it = server.bench(*words, "-c", str(clients), "-T", str(max(int(seconds), 1)))
            time.sleep(0.5)  # until the postmaster knows that its children have ended
            after = used_s(pid, children=True)
            count = int(re.findall(r"actually processed: (\d+)", said_of_it)[0])
            yield row("postgresql", name, clients, count, before, after, seconds)


def row(
    engine: str,
    operation: str,
    clients: int,
    count: int,
    before: tuple[float, float],
    after: tuple[float, float],
    wall_s: float,
) -> dict[str, Any]:
    user_s, system_s = ((b - a) / count for a, b in zip(before, after, strict=True))
    each = {"engine": engine, "operation": operation, "clients": clients, "count": count}
    return {**each, "user_s": user_s, "system_s": system_s, "per_s": count / wall_s}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("engine", choices=("postgresql", "redis"))
    parser.add_argument("--count", type=Path)
    parser.add_argument("--seconds", type=float, default=3.0)
    words = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="servers-") as name:
        if words.engine == "redis":
            rows = count_redis(words.count) if words.count else measure_redis(words.seconds)
        else:
            server = Postgres(Path(name))
            rows = (
                count_postgres(words.count, server)
                if words.count
                else measure_postgres(words.seconds, server)
            )
        for each in rows:
            print(json.dumps(each), flush=True)


if __name__ == "__main__":
    main()
