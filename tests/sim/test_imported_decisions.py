"""A machine made from a tree alone gives the decisions of the bundled machine of its kind.

And says how far its answers may be off, as most of its facts come from a catalogue.
"""

from functools import cache
from pathlib import Path

import pytest

from numatwin.inputs import Quantity, parse_yaml
from numatwin.reports.decisions import decisions
from numatwin.sim.run.doubts import doubts_of
from numatwin.sim.run.record import Record
from numatwin.sim.run.runner import run_scenario
from numatwin.sim.run.scenario import load_scenario
from numatwin.sim.run.uncertainty import with_uncertainty
from numatwin.sim.studies.sensitivity import machine_facts
from numatwin.topologies import MachineDescription
from numatwin.topologies.export import machine_yaml
from numatwin.topologies.facts import complete
from numatwin.topologies.facts.clusters import Cluster, build_cluster
from numatwin.topologies.importers import import_machine

# The SLIT of a 4 × Opteron 6276 (hwloc's test data): 16 is one hop.
G34 = """\
  - [10, 16, 16, 22, 16, 22, 16, 22]
  - [16, 10, 22, 16, 16, 22, 22, 16]
  - [16, 22, 10, 16, 16, 16, 16, 16]
  - [22, 16, 16, 10, 16, 16, 22, 22]
  - [16, 16, 16, 16, 10, 16, 16, 22]
  - [22, 22, 16, 16, 16, 10, 22, 16]
  - [16, 22, 16, 22, 16, 22, 10, 16]
  - [22, 16, 16, 22, 22, 16, 16, 10]
"""
INTEL = """\
name: four-sockets
node_types:
  node:
    processor: {model_name: "Intel(R) Xeon(R) CPU E7- 4870  @ 2.40GHz"}
    cores: 10
    caches: [{level: 1, size: 32 KiB}, {level: 2, size: 256 KiB},
             {level: 3, size: 30 MiB, shared_by_cores: 10}]
    memory: {size: 64 GiB}
nodes: [{ids: 0-3, type: node, group: package, group_size: 1}]
slit: [[10, 20, 20, 20], [20, 10, 20, 20], [20, 20, 10, 20], [20, 20, 20, 10]]
"""
AMD = f"""\
name: eight-nodes
node_types:
  node:
    processor: {{model_name: "AMD Opteron(TM) Processor 6276"}}
    cores: 8
    caches: [{{level: 1, size: 16 KiB}}, {{level: 2, size: 2 MiB, shared_by_cores: 2}},
             {{level: 3, size: 6 MiB, shared_by_cores: 8}}]
    memory: {{size: 16 GiB}}
nodes: [{{ids: 0-7, type: node, group: package, group_size: 2}}]
slit:
{G34}"""


@pytest.fixture(scope="module")
def imported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The file of a machine that an importer would make of such a tree."""
    before = parse_yaml(request.param, "tree.yaml").read_as(MachineDescription)
    path = tmp_path_factory.mktemp("machine") / "imported.yaml"
    path.write_text(machine_yaml(complete(before).description))
    return str(path)


@cache
def ran(scenario: str, machine: str) -> Record:
    return run_scenario(load_scenario(scenario, machine=machine))


@cache
def played(scenario: str, machine: str) -> Record:
    return with_uncertainty(ran(scenario, machine), load_scenario(scenario, machine=machine))


def open_between(records: list[Record]) -> bool:
    """Whether facts leave open which of two is faster."""
    (row,) = decisions(records)
    low, high = row["interval"]
    return bool(low < 1.0 < high)


@pytest.mark.parametrize(
    ("imported", "bundled", "scenario"),
    [(INTEL, "intel-4s-qpi", "eris-fig8-intel"), (AMD, "amd-8n-ht", "eris-fig8-amd")],
    indirect=["imported"],
)
def test_partitioned_or_interleaved(imported: str, bundled: str, scenario: str) -> None:
    """Trees tell neither bandwidths nor links; taken as unlimited, interleaved seemed 1.8 times
    faster. Where a machine's kinds are nearly equally fast, so may they be on one that is alike;
    then its records say that facts leave the decision open.
    """
    records = {
        (machine, kind): run(scenario + kind, machine)
        for machine, run in ((imported, played), (bundled, ran))
        for kind in ("", "-shared")
    }
    speeds = {key: record.throughput["lookup"] for key, record in records.items()}
    assert speeds[bundled, ""] > speeds[bundled, "-shared"]
    if speeds[imported, ""] <= speeds[imported, "-shared"]:
        assert speeds[bundled, ""] < 1.1 * speeds[bundled, "-shared"]
        assert speeds[imported, ""] > 0.98 * speeds[imported, "-shared"]
        assert open_between([records[imported, kind] for kind in ("", "-shared")])
    for kind in ("", "-shared"):
        low, high = records[imported, kind].uncertainty["throughput"]["lookup"]
        assert low < speeds[bundled, kind] < high
        # How many lines its initiators have under way, no tree says of the AMD machine.
        if (bundled, kind) != ("amd-8n-ht", "-shared"):
            assert speeds[imported, kind] == pytest.approx(speeds[bundled, kind], rel=0.25)


@pytest.mark.parametrize("imported", [INTEL], indirect=True)
def test_the_range_holds_the_answer(imported: str) -> None:
    record = played("eris-fig8-intel", imported)
    low, high = record.uncertainty["throughput"]["lookup"]
    assert low < 0.9 * record.throughput["lookup"]
    assert high > 1.05 * record.throughput["lookup"]
    # The bundled machine of the kind was measured: it lies within.
    assert low < ran("eris-fig8-intel", "intel-4s-qpi").throughput["lookup"] < high
    assert not any("not limited" in warning for warning in record.warnings)


HASWELL = INTEL.replace("CPU E7- 4870  @ 2.40GHz", "CPU E5-4650 v3 @ 2.10GHz")


@pytest.mark.parametrize("imported", [HASWELL], indirect=True)
def test_the_snoop_mode_that_firmware_chooses_is_doubtful(imported: str) -> None:
    """A directory brings more than snooping, which is assumed; the range holds both."""
    scenario = load_scenario("eris-fig8-intel", machine=imported)
    assert "coherence" in scenario.machine.doubtful
    record = run_scenario(scenario, effects=True)
    (row,) = (one for one in record.assumptions if one["name"] == "coherence")
    assert row["value"] == "every miss probes all nodes"
    assert "cluster-on-die" in row["source"]
    assert row["low"]["throughput"] > 0.0
    assert "machine.coherence.protocol" in [one.path for one in machine_facts(scenario)]
    sure = load_scenario(
        "eris-fig8-intel", machine=imported, settings=["machine.coherence.doubtful=false"]
    )
    drawn, without = (
        {doubt["name"] for doubt in with_uncertainty(record, one).uncertainty["doubts"]}
        for one in (scenario, sure)
    )
    assert drawn - without == {"coherence"}


def test_clusters_on_the_die_keep_a_directory() -> None:
    """Several nodes per socket: firmware has made its choice."""
    tree = HASWELL.replace("group_size: 1", "group_size: 2")
    coherence = complete(parse_yaml(tree, "tree.yaml").read_as(MachineDescription))
    known = coherence.description.coherence
    assert known is not None
    assert (known.protocol, known.doubtful) == ("directory", None)


@pytest.mark.parametrize("imported", [INTEL], indirect=True)
def test_it_is_kept_with_the_record(imported: str, tmp_path: Path) -> None:
    from numatwin.sim.run.record import load_record

    record = played("eris-fig8-intel", imported)
    again = load_record(record.save(tmp_path / "record"))
    assert again.uncertainty == record.uncertainty


DATA = Path(__file__).parents[3] / "shared" / "data" / "hwloc"


@pytest.mark.parametrize(
    ("tree", "sister"),
    [
        ("64amd64-4s2n4ca2co.tar.bz2", "amd-8n-ht"),
        ("40intel64-2g2n4c+pcilocality.tar.bz2", "intel-4s-qpi"),
        ("192em64t-24n8c2t.xml", "sgi-uv2000-64n"),
    ],
)
def test_real_trees_decide_as_their_sisters(tree: str, sister: str, tmp_path: Path) -> None:
    """As a tree alone tells them, without the catalogue, nothing limits an interleaved index. With
    it, they agree with the bundled machines of their kind, or their records say that facts leave
    open which is faster.
    """
    if not (DATA / tree).exists():
        pytest.skip("needs ../shared/data/hwloc")
    alone = import_machine(DATA / tree)
    files = {}
    for name, description in (("alone", alone), ("completed", complete(alone).description)):
        files[name] = str(tmp_path / f"{name}.yaml")
        Path(files[name]).write_text(machine_yaml(description))
    files["sister"] = sister
    records = {
        machine: [ran(f"eris-fig8-amd{kind}", file) for kind in ("", "-shared")]
        for machine, file in files.items()
    }
    gain = {
        machine: shared.throughput["lookup"] / own.throughput["lookup"]
        for machine, (own, shared) in records.items()
    }
    assert gain["alone"] > gain["sister"]
    assert gain["sister"] < 1.0
    if gain["completed"] >= 1.0:
        assert gain["sister"] > 0.9
        assert gain["completed"] < 1.02
        completed = files["completed"]
        assert open_between([played(f"eris-fig8-amd{kind}", completed) for kind in ("", "-shared")])


SHORT = ("horizon=300 us", "statistics.replications=1", "statistics.warm_up=0 s")


@pytest.mark.parametrize("imported", [INTEL], indirect=True)
def test_events_too_have_a_range(imported: str) -> None:
    """What the flow plane predicts of the facts' draws, as a part of what events made."""
    scenario = load_scenario(
        "eris-fig8-intel",
        machine=imported,
        plane="event",
        settings=[*SHORT, "system.threads=2", "system.buffer_commands=16"],
    )
    record = with_uncertainty(run_scenario(scenario), scenario)
    low, high = record.uncertainty["throughput"]["lookup"]
    assert low < 0.9 * record.throughput["lookup"]
    assert high > 1.1 * record.throughput["lookup"]


def cluster(path: Path) -> MachineDescription:
    made = build_cluster(
        Cluster("four", 8, "Xeon Gold 6148", "roce-100", Quantity(2.0**37, 2.0**37, 2.0**37))
    )
    path.write_text(machine_yaml(made))
    return made


def test_only_facts_that_the_system_reads_count(tmp_path: Path) -> None:
    """ERIS knows links, but no adapters; transactions know both."""
    path = tmp_path / "cluster.yaml"
    cluster(path)
    eris = load_scenario("eris-fig8-intel", machine=str(path), settings=["horizon=1 ms"])
    adapters = [path for path in eris.machine.doubtful if path.startswith("nics.")]
    assert adapters
    settings = [*SHORT, "system.clients=16", "system.client_nodes=4", "system.storage_nodes=3"]
    settings += ["system.timestamp_bits=64"]
    commits = load_scenario("nam-fig6-rsi", machine=str(path), settings=settings)
    for scenario in (eris, commits):
        assumed = {doubt.name for doubt in doubts_of(scenario)}
        assert assumed.issuperset(adapters) == (scenario is commits)
        assert assumed.isdisjoint(adapters) == (scenario is eris)


def test_doubtful_adapters_have_a_range(tmp_path: Path) -> None:
    """Transactions run on event planes alone, and hardly meet anything but their adapters."""
    path = tmp_path / "cluster.yaml"
    made = cluster(path)
    nic = made.nics[0]
    latency = nic.transports["RDMA"].points[0].latency
    assert latency is not None
    assert latency.doubtful
    settings = [*SHORT, "system.clients=16", "system.client_nodes=4", "system.storage_nodes=3"]
    settings += ["system.timestamp_bits=64"]
    scenario = load_scenario("nam-fig6-rsi", machine=str(path), settings=settings)
    record = with_uncertainty(run_scenario(scenario), scenario)
    (bounds,) = record.uncertainty["throughput"].values()
    (rate,) = record.throughput.values()
    assert bounds[0] < 0.9 * rate
    assert bounds[1] > 1.1 * rate


@pytest.mark.parametrize("imported", [INTEL], indirect=True)
def test_the_report_shows_the_range(imported: str) -> None:
    from numatwin.reports.answer import answer

    text = str(answer(played("eris-fig8-intel", imported))).replace("\u202f", " ")
    assert text.count("90%: ") == 1
    assert "facts and assumptions may be off, most of all" in text


@pytest.mark.parametrize("plane", ["flow", "event"])
@pytest.mark.parametrize(
    ("scenario", "horizon", "machine"),
    [
        ("eris-fig8-amd", "200 us", AMD),
        ("eris-fig8-amd", "200 us", INTEL),  # which writes back what is handed over
        ("elastic-modes", "20 ms", AMD),
    ],
)
def test_nodes_with_cores_and_without_memory_hold_no_data(
    tmp_path: Path, scenario: str, horizon: str, machine: str, plane: str
) -> None:
    """Every second node: all traffic goes to the memory of the others, and a note says so."""
    count, group = (8, 2) if machine is AMD else (4, 1)
    nodes = "".join(
        f"  - {{id: {k}, type: node, group: package{k // group}, "
        f"memory_size: {'64 GiB' if k % 2 else '0 B'}}}\n"
        for k in range(count)
    )
    listed = f"nodes: [{{ids: 0-{count - 1}, type: node, group: package, group_size: {group}}}]\n"
    bare = machine.replace(listed, f"nodes:\n{nodes}")
    described = complete(parse_yaml(bare, "bare.yaml").read_as(MachineDescription)).description
    path = tmp_path / "bare.yaml"
    path.write_text(machine_yaml(described))
    settings = [f"horizon={horizon}", "statistics={replications: 1, warm_up: 0 s}"]
    record = run_scenario(
        load_scenario(scenario, machine=str(path), plane=plane, settings=settings)
    )
    memory = [use for use in record.resources if use.kind == "memory"]
    assert [use.node for use in memory] == [*range(1, count, 2)]
    total = record.as_json()["bandwidth_Bps"]["memory"]
    assert total > 0
    assert sum(use.Bps or 0.0 for use in memory) == pytest.approx(total)
    assert any(f"no memory on {count // 2} nodes" in line for line in record.warnings)
