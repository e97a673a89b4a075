"""Calibration of what cores and processes of a host cost each other."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from calibrations import EXAMPLES, ORIGIN

from numatwin.inputs import Quantity
from numatwin.sim.systems.commits.facts import ENGINE, CommitFacts, host_facts
from numatwin.topologies import Machine, load_machine
from numatwin.topologies.export import machine_yaml
from numatwin.topologies.measurements import HostState, Measurement, Parameters, Reading
from numatwin.topologies.processes import ProcessFacts
from numatwin.validate.calibrate import Calibration
from numatwin.validate.calibrate.calibration import calibrated, read_source
from numatwin.validate.calibrate.observation import ATOMIC, LINE, Kind, Measured, Observation
from numatwin.validate.calibrate.parameters import Key, pair_classes
from numatwin.validate.calibrate.predictions import Candidate, contended_s, predict
from numatwin.validate.systems.commits.process_costs import BLOCK, MESSAGE

SIZES, COUNTS = (64, 1032), (1, 12)
ENDS = [
    {"operation": operation, "size": f"{size} B", "count": count, "post": f"{post} ns",
     "serve": "300 ns", "complete": "0 ns"}
    for operation in ("put", "message")
    for size, post in zip(SIZES, (100, 150), strict=True)
    for count in COUNTS
]  # fmt: skip
PROCESSES: dict[str, Any] = {
    **dict.fromkeys(("slice", "turn", "give_way", "clock", "word_get", "words_get"), "10 ns"),
    "word_add": "6 ns",
    "line": "50 ns",
}
COSTS: dict[str, Any] = {
    "key_draw": "10 ns",
    "timestamp": "10 ns",
    "blocks": [
        {"size": "64 B", "region": region, "get": "5 ns", "update": "9 ns", "insert": "7 ns"}
        for region in ("1 MiB", "16 MiB")
    ],
    "transports": {
        "tcp": {
            "look": "10 ns", "arm": "10 ns", "sleeper_size": "64 B", "sleeper_same": "1000 ns",
            "ends": ENDS,
        }
    },
}  # fmt: skip
TRUTH: dict[Key, float] = {
    ("line",): 44e-9,
    ("atomic",): 5e-9,
    ("blocks", "get"): 1.2,
    ("blocks", "update"): 0.9,
    ("blocks", "insert"): 1.1,
    ("messages", "tcp", "put"): 0.8,
    ("messages", "tcp", "message"): 1.3,
}


def host() -> Machine:
    machine = load_machine(EXAMPLES / "server-2s.yaml")
    processes = ProcessFacts.model_validate(PROCESSES)
    described = machine.description.model_copy(update={"processes": processes})
    described = described.with_facts(ENGINE, CommitFacts.model_validate(COSTS))
    return replace(machine, description=described)


def asked() -> list[Observation]:
    def one(kind: Kind, **at: object) -> Observation:
        return Observation(kind, f"{kind} {at}", 1.0, "s", ORIGIN, at=at)

    found = [one(LINE, operation=name, threads=2) for name in ("message", "cas-increment")]
    found += [one(LINE, operation="fetch-add", threads=n) for n in (2, 4)]
    found += [one(ATOMIC, nth=nth) for nth in range(2)]
    found += [
        one(BLOCK, step=step, size=64.0, region=float(region))
        for step in ("get", "update", "insert")
        for region in (1 << 20, 1 << 24)
    ]
    found += [
        one(MESSAGE, transport="tcp", operation=name, part=part, size=float(size), count=count)
        for name in ("put", "message")
        for part in ("post", "serve")
        for size in SIZES
        for count in COUNTS
    ]
    return found


def fitted(spread: float = 0.01) -> Calibration:
    machine, rng = host(), np.random.default_rng(1)
    real = Candidate(machine, pair_classes(machine), TRUTH)
    ones = [
        replace(one, value=predict(real, one) * float(np.exp(spread * rng.normal())), spread=0.01)
        for one in asked()
    ]
    return calibrated(machine, [Measured(ORIGIN, tuple(ones))], share=0.0)


def test_what_was_measured_gives_the_costs_back() -> None:
    found = fitted()
    assert set(found.fit.estimates) == set(TRUTH)
    held = 0
    for key, estimate in found.fit.estimates.items():
        assert estimate.value == pytest.approx(TRUTH[key], rel=0.05)
        held += estimate.low <= TRUTH[key] <= estimate.high
    assert held >= len(TRUTH) - 1


def test_the_machine_file_has_them_with_source_and_range() -> None:
    costs = host_facts(fitted(0.0).description)
    assert costs is not None
    assert costs.processes.line is not None
    put, message = (costs.engine.transports["tcp"].ends[at] for at in (0, 4))
    expected: list[tuple[Quantity, float]] = [
        (costs.processes.line, 44e-9),
        (costs.processes.word_add, 5e-9),
        (costs.engine.blocks[0].get, 6e-9),
        (put.post, 80e-9),
        (put.serve, 240e-9),
        (message.serve, 390e-9),
    ]
    for found, value in expected:
        assert found.value == pytest.approx(value, rel=1e-3)
        assert found.low <= found.value <= found.high
        assert "fitted" in str(found.source)
    assert put.complete.value == 0.0
    assert costs.processes.turn == host().description.processes.turn  # type: ignore[union-attr]


def test_a_machine_without_such_a_part_has_nothing_to_fit() -> None:
    machine = load_machine(EXAMPLES / "server-2s.yaml")
    candidate = Candidate(machine, pair_classes(machine), {})
    assert all(np.isnan(predict(candidate, one)) for one in asked())


def test_atomic_operations_on_one_line_by_hand() -> None:
    """A message of 40 ns is two hand-overs of 20 ns; an operation alone takes 5 ns.

    Increments by CAS: one of each thread a round. Additions of two threads: a thread has the line
    for 20 ns after 20 ns on its way, and does 1 + 20/5 then: 8 ns each, 16 ns as each thread sees
    it. With four threads, one addition for each hand-over.
    """
    assert contended_s("cas-increment", 2, 40e-9, 5e-9) == pytest.approx(40e-9)
    assert contended_s("cas-increment", 4, 40e-9, 5e-9) == pytest.approx(80e-9)
    assert contended_s("fetch-add", 2, 40e-9, 5e-9) == pytest.approx(16e-9)
    assert contended_s("fetch-add", 4, 40e-9, 5e-9) == pytest.approx(80e-9)


def figure(name: str, ns: float, **parameters: object) -> Measurement:
    low, high = (Reading(ns * factor * 1e-9, "time") for factor in (0.99, 1.01))
    return Measurement(
        name=name,
        value=Reading(ns * 1e-9, "time"),
        quartiles=(low, high),
        repetitions=9,
        method="made up",
        parameters=Parameters.model_validate(parameters),
    )


def process_cost(machine: Machine, operation: str, part: str) -> float:
    """The first such step over TCP in the machine's table."""
    costs = machine.description.facts_of(ENGINE, CommitFacts)
    assert costs is not None
    ends = costs.transports["tcp"].ends
    value: Quantity = getattr(next(end for end in ends if end.operation == operation), part)
    return value.value


def test_what_machine_measure_says_of_processes(tmp_path: Path) -> None:
    """Each of its figures finds its parameter, or is told not to be used."""
    machine = host()
    cpus = machine.nodes[0].cpus
    assert len(cpus) > 1
    end = {"size": "64 B", "batch": 1, "transport": "tcp"}
    block = {"size": "64 B", "region": "1 MiB"}
    figures = (
        figure("message.latency", 44.0, cpu=cpus[0], peer=cpus[1]),
        figure("message.latency", 144.0, cpu=cpus[0], peer=machine.nodes[1].cpus[0]),
        figure("cas-increment", 44.0, threads=2),
        figure("fetch-add", 5.0, threads=1),
        figure("step-word-add", 5.0),
        figure("step-block-update", 8.1, **block),
        figure("step-post-put", 80.0, **end),
        figure("step-serve-put", 240.0, **end),
        figure("step-complete-put", 0.0, **end),
        figure("step-complete-put", 3.0, **end),
        figure("step-post-put", 80.0, **{**end, "transport": "shm"}),
        figure("step-arm", 10.0, transport="tcp"),
    )
    state = HostState(date="2026-01-01", version="0")
    assert process_cost(machine, "put", "complete") == 0.0  # no factor makes more of it
    description = machine.description.model_copy(update={"measurements": figures, "host": state})
    path = tmp_path / "host.yaml"
    path.write_text(machine_yaml(description))
    read = read_source(path, machine)
    assert [one.kind for one in read.observations] == [
        LINE, LINE, ATOMIC, ATOMIC, BLOCK, MESSAGE, MESSAGE,
    ]  # fmt: skip
    assert sum(read.unused.values()) == 5
    found = calibrated(machine, [read], share=0.0).fit.values
    for key in (("line",), ("atomic",), ("blocks", "update"), ("messages", "tcp", "put")):
        assert found[key] == pytest.approx(TRUTH[key], rel=0.02)
