"""The scenario of one query on a machine, on data that one thread has loaded."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ...sim.run.scenario import Scenario, load_scenario
from ...topologies.export import machine_yaml
from ...topologies.facts import complete
from ...topologies.importers import import_machine

SCENARIO = """\
name: one-query
machine: {machine}
workload: {workload}
system: {{kind: tasks, threads: {threads}, placement: first-touch, loaders: 1}}
policies: {{stealing: none}}
horizon: 10 s
"""


def described(machine: str | None, folder: Path) -> str:
    """The machine's name or file; None: a file in ``folder`` of this host."""
    if machine is not None:
        return str(Path(machine).absolute()) if Path(machine).exists() else machine
    made = folder / "this-host.yaml"
    made.write_text(machine_yaml(complete(import_machine(None), None, None).description))
    return str(made)


def one_query(
    folder: Path,
    machine: str,
    workload: Path,
    threads: int | None,
    settings: Iterable[str] = (),
) -> Scenario:
    """With so many ``threads`` on each node, by default one for each core; ``folder``: for its
    file. Raises InputError."""
    path = folder / "one-query.yaml"
    fields = {"machine": machine, "workload": workload, "threads": threads or "cores"}
    path.write_text(SCENARIO.format(**fields))
    return load_scenario(path, plane="flow", settings=tuple(settings))


def on_one_thread(folder: Path, machine: str, workload: Path) -> Scenario:
    """On a thread of the first node that has cores."""
    nodes = one_query(folder, machine, workload, 1).machine.nodes
    first = next(node.id for node in nodes if node.cores)
    return one_query(folder, machine, workload, 1, (f"system.nodes=[{first}]",))
