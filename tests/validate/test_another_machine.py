"""A machine is not bent to what was measured on another one, unless that is wanted."""

from pathlib import Path

import pytest

from numatwin.cli import main
from numatwin.inputs import InputError
from numatwin.topologies import Machine, build_machine, load_machine
from numatwin.topologies.export import machine_yaml
from numatwin.topologies.facts import complete
from numatwin.topologies.importers import import_machine
from numatwin.validate.calibrate import calibrate

DATA = Path(__file__).parents[3] / "shared" / "data" / "mlc"
IVY_BRIDGE, SKYLAKE, ICE_LAKE = "ivybridge-2s", "skylake-2s", "icelake-2s"
# Of each generation, one with all its channels.
PROCESSORS = {
    IVY_BRIDGE: "Xeon E5-2680 v2",
    SKYLAKE: "Xeon Gold 6140",
    ICE_LAKE: "Xeon Platinum 8360Y",
}


def text(name: str) -> Path:
    """MLC's real output."""
    path = DATA / f"{name}.txt"
    if not path.exists():
        pytest.skip("needs ../shared/data/mlc")
    return path


def machine_of(name: str) -> Machine:
    """What the data sheet tells of that server: no bandwidth is measured."""
    described = import_machine(text(name))
    bare = described.model_copy(
        update={"pair_bandwidth": None, "pair_latency": None, "loaded_latency": ()}
    )
    return build_machine(complete(bare, PROCESSORS[name]).description)


@pytest.mark.parametrize(
    ("of", "measured"), [(IVY_BRIDGE, SKYLAKE), (IVY_BRIDGE, ICE_LAKE), (ICE_LAKE, IVY_BRIDGE)]
)
def test_another_generation_is_refused(of: str, measured: str) -> None:
    """Nodes and sockets are the same; channels and their speed are not."""
    machine = machine_of(of)
    with pytest.raises(InputError, match="measured on another machine than") as failure:
        calibrate(machine, [text(measured)])
    assert "of its data sheet" in failure.value.message
    assert "--force" in str(failure.value)


@pytest.mark.parametrize("name", list(PROCESSORS))
def test_its_own_measurement_is_taken(name: str) -> None:
    found = calibrate(machine_of(name), [text(name)])
    assert found.fit.estimates
    assert not found.warnings


def test_the_generation_before_may_be_a_server_with_empty_channels() -> None:
    """Skylake's 106 GB/s a node are six channels; so many of Ice Lake's eight read as much."""
    (warning,) = calibrate(machine_of(ICE_LAKE), [text(SKYLAKE)]).warnings
    assert "106 GB/s a node, where all 8 channels of Xeon Scalable of the third" in warning
    assert "read 128 to 184 GB/s: are some of them empty, or was another machine" in warning


@pytest.mark.parametrize("measured", list(PROCESSORS))
@pytest.mark.parametrize("bundled", ["amd-8n-ht", "intel-4s-qpi"])
def test_bundled_machines_are_not_bent(bundled: str, measured: str) -> None:
    with pytest.raises(InputError, match=r"another machine: 2 nodes with memory.*--force"):
        calibrate(load_machine(bundled), [text(measured)])


def test_what_the_file_says_counts(tmp_path: Path) -> None:
    """Where no processor is named: the bandwidth in the file, out by a factor of two."""
    one = load_machine("intel-4s-qpi").description
    two = one.model_copy(update={"nodes": (one.nodes[0].model_copy(update={"ids": "0-1"}),)})
    with pytest.raises(InputError, match=r"over the 26\.7 GB/s in its file"):
        calibrate(build_machine(two), [text(IVY_BRIDGE)])


def test_no_more_than_the_file_says(tmp_path: Path) -> None:
    """Twice 175.9 GB/s were measured; memory that is said to have 128 GB/s has other modules."""
    server = Path(__file__).parents[2] / "docs" / "examples" / "server-2s.yaml"
    with pytest.raises(InputError, match=r"175\.9 GB/s a node, over the 128 GB/s in its file"):
        calibrate(load_machine(server), [text(ICE_LAKE)])


def test_other_processors_are_named(tmp_path: Path) -> None:
    """What 'numatwin machine measure' wrote says whose it is."""
    machine = machine_of(IVY_BRIDGE)
    host = "host: {date: d, version: v, cpu_model: Intel(R) Xeon(R) Gold 6140 CPU @ 2.30GHz}\n"
    measurement = (
        "measurements:\n- {name: memory.latency, value: 90 ns, repetitions: 9, method: m,"
        " parameters: {node: 0, home: 0}}\n"
    )
    path = tmp_path / "measured.yaml"
    path.write_text(machine_yaml(machine.description) + host + measurement)
    with pytest.raises(InputError, match=r"Skylake.*, not .*Ivy Bridge.*; 6 channels .* not 4"):
        calibrate(machine, [path])


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Refused in one line with status 2; with --force it is fitted."""
    path = tmp_path / "ivb.yaml"
    path.write_text(machine_yaml(machine_of(IVY_BRIDGE).description))
    wanted = ["calibrate", str(path), "--from", str(text(SKYLAKE))]
    assert main(wanted) == 2
    refused = capsys.readouterr().err
    assert refused.count("\n") == 1
    assert "measured on another machine" in refused
    assert main([*wanted, "--force"]) == 0


def test_forced_onto_more_nodes() -> None:
    found = calibrate(load_machine("intel-4s-qpi"), [text(IVY_BRIDGE)], force=True)
    assert found.fit.estimates
