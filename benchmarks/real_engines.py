"""Real engines, profiled by ``numatwin profile`` alone, predicted and measured on this host.

python benchmarks/real_engines.py [--rows 120_000 1_200_000] [--queries q6 …] [--machine host.yaml]

Six queries in DuckDB on tables in memory run on one and two threads in turns. One thread's time is
processor time, two threads' is wall time. Rounds during which other programs, or the hypervisor,
took more than a tenth of the processors' time are run again; where no round is better, rows of two
threads, whose time others lengthen, are kept as such and left out of the page. Each query is
counted by callgrind on one thread, which writes the workload; no number is set by hand. It is
predicted on ``--machine``, by default this host as ``machine measure --quick`` finds it: from
counts alone, and with the processor time of one thread on the smallest tables, which is then given.
``--write``: the figures, and the table of docs/real-engines.md; ``--predict``: what was measured
stays, and is predicted again.

``--monetdb``: MonetDB instead, in a Python that has monetdbe (of PyPI: up to Python 3.9), likewise.

``--servers``: PostgreSQL and Redis instead (``real_engines/servers.py``), each operation counted by
callgrind in the server's process. What is compared is the server's own processor time in user code,
which callgrind counts; its time in the kernel stands beside it. Each is predicted from counts
alone, and given the times of the engine's other operations (``given_operations.py``). ``--counts``:
a folder of counts, which are made where they are not there yet.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from given_operations import DRAWS, Operation, class_of_scenario, drawn_s, given_others

from numatwin import load_scenario, run_scenario
from numatwin.inputs import InputError
from numatwin.sim.run.model_error import class_of, known_error
from numatwin.sim.run.scenario import Scenario
from numatwin.sim.run.uncertainty import bounds, interval_of, shift_of, with_uncertainty
from numatwin.validate.measure.noise import OTHERS_MAX, taken, ticks
from numatwin.validate.profile import Timed, read_profiles, workload_text
from numatwin.validate.profile.callgrind import RUNS as SETS
from numatwin.validate.profile.callgrind import run_counted
from numatwin.validate.profile.importers import Found
from numatwin.validate.profile.native_run import run_native

HERE = Path(__file__).parent
SERVERS = HERE / "real_engines" / "servers.py"
SERVER_FIGURES = HERE / "real_engines" / "servers.json"
ENGINES = ("postgresql", "redis")
PAGE = HERE.parent / "docs" / "real-engines.md"
ROUNDS, RUNS = 3, 5
AIM = 0.25
SCENARIO = """\
name: engine
machine: {machine}
workload: {workload}
system: {{kind: tasks, threads: {threads}, placement: interleaved, task: 0 s}}
policies: {{stealing: none}}
horizon: 10 s
"""


def run(*words: str, script: Path, python: str = sys.executable) -> list[dict[str, Any]]:
    """The times that a script prints."""
    done = subprocess.run([python, str(script), *words], check=True, capture_output=True, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


@dataclass(frozen=True)
class Embedded:
    """An engine in a program of ours: ``{name}_query.py``, in ``python``; its ``queries``.

    ``figures``: where they are kept; ``mark``: around its table on the page. ``stored``: whether
    its tables are read from a file, which is made first.
    """

    name: str
    title: str
    python: str
    queries: tuple[str, ...]
    figures: str
    mark: str
    package: str
    stored: bool = True

    @property
    def script(self) -> Path:
        return HERE / "real_engines" / f"{self.name}_query.py"

    @property
    def kept(self) -> Path:
        return HERE / "real_engines" / self.figures

    def data(self, folder: Path, rows: int) -> str:
        """Tables of so many rows, as the script names them."""
        if not self.stored:
            return str(rows)
        data = folder / f"{rows}.{self.name}"
        if not data.exists():
            run(str(data), "--make", str(rows), script=self.script, python=self.python)
        return str(data)

    def times(self, data: str, query: str, threads: int) -> list[dict[str, Any]]:
        words = (data, query, "--threads", str(threads), "--runs", str(RUNS))
        return run(*words, script=self.script, python=self.python)

    def profiled(self, folder: Path, data: str, query: str, threads: int = 1) -> Found:
        """The query's plan, as two threads have it, and the counts of so many."""
        plan = folder / f"{query}.json"
        words = (data, query, "--threads", "2", "--plan", str(plan))
        run(*words, script=self.script, python=self.python)
        command = [self.python, str(self.script), data, query, "--region"]
        command += ["--threads", str(threads)]
        graphs, totals = run_counted(command, region=True), run_native(command, region=True)
        return Found(read_profiles([plan]).plan, graphs, totals)

    def installed(self) -> str:
        ask = f"from importlib.metadata import version; print(version('{self.package}'))"
        command = [self.python, "-c", ask]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def duckdb(python: str) -> Embedded:
    queries = ("q6", "q1", "g6", "join", "sort", "topk")
    return Embedded("duckdb", "DuckDB", python, queries, "figures.json", "figures", "duckdb")


def monetdb(python: str) -> Embedded:
    queries = ("filter", "g6", "join", "sort", "topk")
    return Embedded(
        "monetdb",
        "MonetDB in monetdbe",
        python,
        queries,
        figures="monetdb.json",
        mark="monetdb",
        package="monetdbe",
        stored=False,
    )


def scenario_of(
    folder: Path, machine: str, workload: str, threads: int, clients: int = 1
) -> Scenario:
    path = folder / "engine.yaml"
    fields = {"machine": machine, "workload": folder / workload, "threads": threads}
    path.write_text(SCENARIO.format(**fields))
    return load_scenario(path, plane="flow", settings=[f"workload.clients.count={clients}"])


def predicted(scenario: Scenario, engine: str) -> list[float]:
    """Seconds between two queries, the ends of their 90% interval, and of that of facts alone; what
    predictions of this engine were off by is no evidence for it.
    """
    record = with_uncertainty(run_scenario(scenario), scenario)
    ((name, rate),) = record.throughput.items()
    path = ("throughput", name)
    shift = shift_of(record, path)
    known = known_error(class_of(record, name), engine)
    ends = (*interval_of(record, path, shift, known.factors), *bounds(rate * shift))
    low, high, slowest, fastest = ends
    return [1 / value for value in (rate, high, low, fastest, slowest)]


class Measured:
    """Rounds of a query on so many threads, and what part of all processors' time others took."""

    def __init__(self, threads: int, most: int) -> None:
        self.threads, self.most = threads, most
        self.rounds = list[tuple[float, list[dict[str, float]]]]()

    def run(self, engine: Embedded, data: str, query: str) -> None:
        before = ticks()
        times = engine.times(data, query, self.threads)
        after = ticks()
        all_s = (after.wall - before.wall) * (os.cpu_count() or 1)
        self.rounds.append((sum(taken(before, after)) / all_s, times))

    @property
    def done(self) -> bool:
        return len(self.quiet) >= ROUNDS or len(self.rounds) >= self.most

    @property
    def quiet(self) -> list[tuple[float, list[dict[str, float]]]]:
        return [one for one in self.rounds if one[0] <= OTHERS_MAX]

    def row(self) -> dict[str, Any]:
        """Medians of the quiet rounds, of all where none was."""
        rounds = self.quiet or self.rounds
        times = [each for _, round_ in rounds for each in round_]
        cpu_s, wall_s = (median(each[clock] for each in times) for clock in ("cpu_s", "wall_s"))
        return {
            "threads": self.threads,
            "measured_s": cpu_s if self.threads == 1 else wall_s,
            "cpu_s": cpu_s,
            "taken": sum(part for part, _ in rounds) / len(rounds),
        }


def measured(engine: Embedded, data: str, query: str, most: int) -> list[dict[str, Any]]:
    """On one and two threads, in turns, in so many rounds at most."""
    found = [Measured(1, most), Measured(2, most)]
    while not all(one.done for one in found):
        for one in found:
            one.run(engine, data, query)
    return [one.row() for one in found]


def quiet(row: dict[str, Any]) -> bool:
    """Whether a row judges the model, rather than what others did on the host meanwhile."""
    return bool(row["threads"] == 1 or row["taken"] <= OTHERS_MAX)


def measurements(
    engine: Embedded, folder: Path, sizes: Sequence[int], queries: Sequence[str], most: int
) -> Iterator[dict[str, Any]]:
    """A row for each query, size and number of threads."""
    for rows in sizes:
        data = engine.data(folder, rows)
        for query in queries:
            for row in measured(engine, data, query, most):
                yield {"query": query, "rows": rows, **row}


def predict(engine: Embedded, folder: Path, rows: Sequence[dict[str, Any]], machine: str) -> None:
    """Adds what is predicted to what was measured: from counts, and with a time of the smallest."""
    smallest = min(row["rows"] for row in rows)
    times = {row["query"]: row["measured_s"] for row in rows if given(row, smallest)}
    for size in sorted({row["rows"] for row in rows}):
        data = engine.data(folder, size)
        for query in dict.fromkeys(row["query"] for row in rows):
            found = engine.profiled(folder, data, query)
            counted = folder / f"{query}-{size}.yaml"
            counted.write_text(workload_text(found, query))
            timed = Timed((times[query],), machine, folder / f"{query}-{smallest}.yaml")
            try:
                text = workload_text(found, query, timed=timed)
            except InputError as why:  # no rate explains it
                print(f"{query}, {size} rows: {why}", file=sys.stderr)
            else:
                counted.with_suffix(".timed.yaml").write_text(text)
    for row in rows:
        name = f"{row['query']}-{row['rows']}"
        row["given"], row["timed_s"] = given(row, smallest), None
        for key, file in (("counted_s", f"{name}.yaml"), ("timed_s", f"{name}.timed.yaml")):
            if (folder / file).exists():
                scenario = scenario_of(folder, machine, file, row["threads"])
                row[key] = predicted(scenario, engine.title)
        value = (row["timed_s"] or row["counted_s"])[0]
        what = f"{row['query']}/{row['rows']}_rows/{row['threads']}_threads"
        line = {
            "name": f"real_engines/{engine.name}/{what}",
            "value": value,
            "unit": "s",
            "versus": row["measured_s"],
            "ratio": value / row["measured_s"],
            "disturbed": not quiet(row),
        }
        print(json.dumps(line), flush=True)


def given(row: dict[str, Any], smallest: int) -> bool:
    """Whether its time tells the rates of all rows of its query."""
    return bool(row["threads"] == 1 and row["rows"] == smallest)


def within(row: dict[str, Any], key: str) -> bool:
    """Whether a prediction is as near as is aimed at."""
    value, low, high = row[key][:3]
    off = abs(value / row["measured_s"] - 1)
    return bool(off <= AIM or low <= row["measured_s"] <= high)


def table(rows: Sequence[dict[str, Any]]) -> str:
    """The rows in Markdown."""
    smallest = min(row["rows"] for row in rows)
    lines = [
        "| query | rows | threads | measured | from counts | 90% interval | ratio | with a time "
        "| 90% interval | ratio |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        cells = [row["query"], f"{row['rows']:,}", row["threads"], f"{1e3 * row['measured_s']:.3g}"]
        for key in filter(row.get, ("counted_s", "timed_s")):
            value, low, high = (1e3 * each for each in row[key][:3])
            ratio = value / 1e3 / row["measured_s"]
            cells += [f"{value:.3g}", f"{low:.3g} to {high:.3g}", f"{ratio:.2f}"]
        if row["timed_s"] is None:
            cells += ["", "", ""]
        elif given(row, smallest):
            cells[-1] = "given"
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def write(engine: Embedded, rows: Sequence[dict[str, Any]], machine: str) -> None:
    """The figures, and the page's table of them."""
    about = {"machine": machine, "version": engine.installed()}
    engine.kept.write_text(json.dumps({**about, "rows": list(rows)}, indent=1) + "\n")
    render(engine)


def render(engine: Embedded) -> None:
    """The page's table, of the figures as they were written."""
    found = json.loads(engine.kept.read_text())
    rows = list(filter(quiet, found["rows"]))
    smallest = min(row["rows"] for row in rows)
    judged = [row for row in rows if row["timed_s"] and not given(row, smallest)]
    sums = [
        f"- {words}, {threads} thread{'s' * (threads > 1)}: {summary(of, key)}"
        for words, key, of_all in (
            ("from counts alone", "counted_s", rows),
            ("with the time of one thread on the smallest tables", "timed_s", judged),
        )
        for threads in sorted({row["threads"] for row in of_all})
        if (of := [row for row in of_all if row["threads"] == threads])
    ]
    if disturbed := len(found["rows"]) - len(rows):
        sums.append(
            f"- left out: {disturbed} rows of two threads, as others took more than "
            f"{OTHERS_MAX:.0%} of the processors"
        )
    sums_ = "\n".join(sums)
    text = f"{engine.title} {found['version']}, times in ms:\n\n{sums_}\n\n{table(rows)}"
    onto_page(engine.mark, text)


def engine_rows() -> Iterator[tuple[str, dict[str, Any]]]:
    """What was measured and predicted of all engines, each row with its engine."""
    for engine in (duckdb(""), monetdb("")):
        for row in filter(quiet, json.loads(engine.kept.read_text())["rows"]):
            yield engine.title, row
    for row in json.loads(SERVER_FIGURES.read_text())["rows"]:
        yield row["engine"], row


def onto_page(mark: str, text: str) -> None:
    around = f"<!-- {mark} -->"
    before, _, after = PAGE.read_text().split(around)
    PAGE.write_text(f"{before}{around}\n{text}\n{around}{after}")


def summary(rows: Sequence[dict[str, Any]], key: str) -> str:
    """How many are as near as is aimed at."""
    ratios = [row[key][0] / row["measured_s"] for row in rows]
    near = sum(abs(ratio - 1) <= AIM for ratio in ratios)
    width = median(row[key][2] / row[key][1] for row in rows)
    return (
        f"{near} of {len(rows)} within {AIM:.0%},\n"
        f"  {sum(within(row, key) for row in rows)} within that or their 90% interval, whose ends "
        f"are a factor of {width:.1f} apart;\n"
        f"  median error {median(abs(ratio - 1) for ratio in ratios):.0%}"
    )


def describe(engine: str, folder: Path, counts: Path) -> None:
    """Workloads of an engine's operations in a folder; counted where ``counts`` has none."""
    made = counts / f"{engine}.json"
    if not made.exists():
        made.write_text(json.dumps(run(engine, "--count", str(counts), script=SERVERS)))
    for each in json.loads(made.read_text()):
        operation = each["operation"]
        files: tuple[list[Path], list[Path]] = [], []  # without and with a prefetcher
        for k, options in enumerate(SETS):
            at = "--simulate-hwpref=yes" in options
            files[at].append(counts / f"{operation}.{k}.callgrind.out")
        text = workload_text(read_profiles(*files), "operation", each["counted"])
        (folder / f"{operation}.yaml").write_text(text)


def measured_servers(engine: str, rounds: int) -> Iterator[dict[str, Any]]:
    """A row for each operation and number of clients: the server's median times."""
    before = ticks()
    all_rounds = [run(engine, script=SERVERS) for _ in range(rounds)]
    after = ticks()
    all_s = (after.wall - before.wall) * (os.cpu_count() or 1)
    for same in zip(*all_rounds, strict=True):
        row = {key: same[0][key] for key in ("engine", "operation", "clients")}
        for key in ("user_s", "system_s", "per_s"):
            row[key] = median(each[key] for each in same)
        yield row | {"measured_s": row["user_s"], "taken": sum(taken(before, after)) / all_s}


def predict_servers(folder: Path, machine: str, rows: list[dict[str, Any]]) -> None:
    """Adds what is predicted to what was measured."""
    operations = [predict_server(folder, machine, row) for row in rows]
    for engine in ENGINES:
        of = [k for k, row in enumerate(rows) if row["engine"] == engine]
        for k, found in zip(of, given_others([operations[k] for k in of]), strict=True):
            rows[k] |= {"given_s": found.predicted_s, "effective": found.effective}
    for row in rows:
        what = f"real_engines/{row['engine']}/{row['operation']}/{row['clients']}_clients"
        for name, key in ((what, "counted_s"), (f"{what}/given_others", "given_s")):
            value, versus = row[key][0], row["user_s"]
            line = {"name": name, "value": value, "unit": "s", "versus": versus}
            print(json.dumps(line | {"ratio": value / versus}), flush=True)


def predict_server(folder: Path, machine: str, row: dict[str, Any]) -> Operation:
    """Adds what is predicted from counts alone; what is drawn."""
    of = row["operation"].rpartition(" ")[2]  # a parallel one was counted on one process
    threads = min(row["clients"], 2) if row["engine"] == "postgresql" else 1
    scenario = scenario_of(folder, machine, f"{of}.yaml", threads, threads)
    row["counted_s"] = [threads * value for value in predicted(scenario, row["engine"])]
    return Operation(
        of.partition("-")[0],  # with values of whatever size
        of,
        row["clients"],
        class_of_scenario(scenario),
        row["user_s"],
        drawn_s(scenario, threads),
        row["engine"],
    )


def render_servers() -> None:
    """The page's table of servers, of the figures as they were written."""
    found = json.loads(SERVER_FIGURES.read_text())
    lines = [
        "| engine | operation | clients | user code, measured | from counts | 90% interval | ratio "
        "| given the others | 90% interval | ratio | in the kernel, measured |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in found["rows"]:
        cells = [row["engine"], row["operation"], row["clients"], f"{1e6 * row['user_s']:.3g}"]
        for key in ("counted_s", "given_s"):
            value, low, high = (1e6 * each for each in row[key][:3])
            ratio = value / 1e6 / row["user_s"]
            cells += [f"{value:.3g}", f"{low:.3g} to {high:.3g}", f"{ratio:.2f}"]
        lines.append("| " + " | ".join(map(str, [*cells, f"{1e6 * row['system_s']:.3g}"])) + " |")
    sums = []
    for engine in dict.fromkeys(row["engine"] for row in found["rows"]):
        of = [row for row in found["rows"] if row["engine"] == engine]
        others = max(row["taken"] for row in of)
        fewest = min(row["effective"] for row in of)
        sums += [
            f"- {engine} {found[engine]}, from counts alone: {summary(of, 'counted_s')};\n"
            f"  others took {others:.0%} of the processors meanwhile",
            f"- {engine}, given its other operations: {summary(of, 'given_s')};\n"
            f"  at least {fewest:.0f} of {DRAWS:,} draws count",
        ]
    text = "Processor time of the server for an operation, in µs:\n\n" + "\n".join(sums)
    table_ = "\n".join(lines)
    onto_page("servers", f"{text}\n\n{table_}")


def version(*words: str) -> str:
    """The first number with a point that a program says of itself."""
    said = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    return next(word for word in said.replace("=", " ").split() if word[0].isdigit())


def write_servers(rows: Sequence[dict[str, Any]], machine: str) -> None:
    """The figures, and the page's table of them."""
    about = {"machine": machine, "redis": version("redis-server", "--version")}
    about["postgresql"] = version("psql", "--version")
    SERVER_FIGURES.write_text(json.dumps({**about, "rows": list(rows)}, indent=1) + "\n")
    render_servers()


def name_or_file(machine: str) -> str:
    """The machine's name, or its file's path from anywhere."""
    return str(Path(machine).resolve()) if Path(machine).exists() else machine


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, nargs="+", default=[120_000, 1_200_000])
    parser.add_argument("--queries", nargs="+")
    parser.add_argument("--rounds", type=int, default=9, help="at most, until three are quiet")
    parser.add_argument("--machine", type=name_or_file)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--predict", action="store_true", help="what was measured, once more")
    parser.add_argument("--render", action="store_true", help="the page of what was written")
    parser.add_argument("--monetdb", metavar="PYTHON", help="MonetDB instead")
    parser.add_argument("--servers", action="store_true", help="PostgreSQL and Redis instead")
    parser.add_argument("--counts", type=Path, help="of servers; made where they are not there")
    words = parser.parse_args()
    engine = monetdb(words.monetdb) if words.monetdb else duckdb(sys.executable)
    if unknown := set(words.queries or ()) - set(engine.queries):
        parser.error(f"no query {', '.join(unknown)}: expected some of {', '.join(engine.queries)}")
    if words.render:
        return render_servers() if words.servers else render(engine)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        machine = words.machine
        if machine is None:
            machine = str(folder / "host.yaml")
            command = ["-m", "numatwin", "machine", "measure", "--quick", "--out", machine]
            subprocess.run([sys.executable, *command], check=True, stdout=subprocess.DEVNULL)
        name = Path(words.machine).name if words.machine else "measured at the same time"
        if words.servers:
            for server in ENGINES:
                describe(server, folder, words.counts or folder)
            rows = (
                json.loads(SERVER_FIGURES.read_text())["rows"]
                if words.predict
                else [row for one in ENGINES for row in measured_servers(one, words.rounds)]
            )
            predict_servers(folder, machine, rows)
            if words.write:
                write_servers(rows, name)
            return None
        if words.predict:
            rows = json.loads(engine.kept.read_text())["rows"]
        else:
            queries = words.queries or engine.queries
            rows = list(measurements(engine, folder, words.rows, queries, words.rounds))
        predict(engine, folder, rows, machine)
    if words.write:
        write(engine, rows, name)
    return None


if __name__ == "__main__":
    main()
