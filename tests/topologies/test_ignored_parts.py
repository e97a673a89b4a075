"""Machine files of earlier versions, with parts that nothing reads any more."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from numatwin import InputError, load_scenario, run_scenario
from numatwin.topologies import load_machine
from numatwin.topologies.catalogue import CATALOGUE
from numatwin.topologies.export import machine_yaml

FACT, FACTORS = {"value": 0.9}, [1.0] * 9
SHORT, LONG = {"length": "20 us", "every": "5 ms"}, {"length": "0.1 ms", "every": "50 ms"}


def host() -> Any:
    return yaml.safe_load(CATALOGUE.path("zen5-2c").read_text(encoding="utf-8"))


def with_all() -> Any:
    found = host()
    found["paces"] = {"lasts": "1 ms", "cached": [FACT] * 8, "memory": [FACT] * 8}
    found["apart"] = {"near": 0.5, "lasts": "1 ms", "line": "50 ns", "line_apart": "200 ns"}
    found["interruptions"] = [SHORT, LONG]
    found["node_types"]["node"]["caches"][2]["others"] = "4 GB/s"
    found["host"] = {"date": "2026-01-01", "version": "0.1.0", "restless": 0.5}
    commits = found["engines"]["commits"] if "engines" in found else found["processes"]
    commits["begin_spread"] = FACTORS
    commits["block_spreads"] = [
        {"region": "1 MiB", "get": FACTORS, "write": FACTORS, "insert": FACTORS}
    ]
    commits["blocks"][0] |= {"get_apart": "9 ns", "update_apart": "9 ns", "insert_apart": "9 ns"}
    commits["transports"]["tcp"] |= {
        "sleeper_among": "9 us",
        "end_spread": FACTORS,
        "sleeper_spread": FACTORS,
    }
    return found


def written(folder: Path, machine: Any, name: str) -> Path:
    path = folder / name
    path.write_text(yaml.safe_dump(machine, sort_keys=False))
    return path


def test_such_parts_change_nothing_but_a_warning(tmp_path: Path) -> None:
    plain = host() | {"interruptions": [SHORT]}
    names = [written(tmp_path, one, f"{k}.yaml") for k, one in enumerate((plain, with_all()))]
    for scenario, plane in (("host-lookup", "flow"), ("host-commit", "event")):
        settings = ["horizon=1 ms", "statistics.replications=1", "statistics.warm_up=0 s"]
        one, other = (
            run_scenario(load_scenario(scenario, machine=str(name), plane=plane, settings=settings))
            for name in names
        )
        assert one.throughput == other.throughput
        (told,) = set(other.warnings) - set(one.warnings)
        assert told == (
            "machine 'zen5-2c': parts of an earlier version are ignored: no plane models such "
            "disturbances: paces, apart, others of caches, begin_spread, block_spreads, "
            "blocks …_apart, sleeper_among, end_spread, sleeper_spread, "
            "interruptions of 0.1 ms and longer"
        )


def test_what_was_ignored_is_still_told_when_the_file_is_written_again(tmp_path: Path) -> None:
    description = load_machine(written(tmp_path, with_all(), "old.yaml")).description
    path = tmp_path / "again.yaml"
    path.write_text(machine_yaml(description))
    again = load_machine(path).description
    assert again.ignored == description.ignored
    assert len(again.ignored) == 10
    assert again.interruptions == description.interruptions


@pytest.mark.parametrize("text", ["20", "20 MB", "fast"])
def test_lengths_that_are_no_times_are_refused_as_ever(tmp_path: Path, text: str) -> None:
    machine = host() | {"interruptions": [{"length": text, "every": "5 ms"}]}
    with pytest.raises(InputError, match="length"):
        load_machine(written(tmp_path, machine, "wrong.yaml"))
