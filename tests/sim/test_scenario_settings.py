"""``--set path=value`` and the other options: any field can be set, every slip is told."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import told_by
from small_scenarios import eris_of

from numatwin.inputs import InputError
from numatwin.sim.run.scenario import load_scenario


def _refused(*settings: str, scenario: str = "eris-fig13") -> str:
    return told_by(load_scenario, scenario, settings=settings)


def test_any_field_can_be_set() -> None:
    scenario = load_scenario(
        "eris-fig8-intel",
        settings=[
            "seed=3",
            "title=A title: of mine",
            "horizon=250 ms",
            "system.placement=interleaved",
            "workload.objects.index.keys=16000000",
            "workload.operations.lookup.keys={distribution: zipf, exponent: 1.2}",
            "machine.link_types.qpi.bandwidth=20 GB/s",
            "machine.nodes.0.ids=0-3",
            "policies.balancing.policy=ma-2",
            "policies.balancing.threshold=0.5",
        ],
    )
    assert scenario.seed == 3
    assert scenario.title == "A title: of mine"
    assert scenario.horizon_s == 0.25
    assert eris_of(scenario).placement == "interleaved"
    assert scenario.workload.objects["index"].keys == 16_000_000
    keys = scenario.workload.phases[0].operations["lookup"].keys
    assert type(keys).__name__ == "Zipf"
    assert {link.bandwidth_Bps for link in scenario.machine.links} == {20e9}
    assert scenario.policy_name == "ma-2"
    # What is set does not stay behind.
    assert load_scenario("eris-fig8-intel").workload.objects["index"].keys == 10**9


def test_a_path_may_go_on_inside_a_value() -> None:
    """The clock has a source, which stays; a name may have dots."""
    scenario = load_scenario(
        "eris-fig13", settings=["machine.node_types.opteron-6274-die.clock.value=3 GHz"]
    )
    clock = scenario.settings["machine"]["node_types"]["opteron-6274-die"]["clock"]
    assert clock["value"] == "3 GHz"
    assert "base frequency" in clock["source"]
    assert {node.clock_Hz for node in scenario.machine.nodes} == {3e9}


def test_the_later_setting_wins() -> None:
    scenario = load_scenario("eris-fig13", seed=1, settings=["seed=2", "seed=3"])
    assert scenario.seed == 3


def test_settings_are_of_the_machine_and_workload_that_were_chosen() -> None:
    scenario = load_scenario(
        "eris-fig13",
        machine="intel-4s-qpi",
        workload="lookup-zipf",
        settings=["machine.link_types.qpi.bandwidth=20 GB/s", "workload.title=mine"],
    )
    assert scenario.machine.name == "intel-4s-qpi"
    assert scenario.workload.description.title == "mine"
    assert scenario.workload.name == "lookup-zipf"


@pytest.mark.parametrize(
    ("setting", "message"),
    {
        "sytem.nodes=1": "unknown field 'sytem': expected 'system'",
        "system.node=1": "unknown field 'node' in system: expected 'nodes'",
        "system.foo=1": "unknown field 'foo' in system",
        "system.nodes=0": "system.nodes: found '0', expected at least 1",
        "system.nodes=9": "system.nodes: machine 'amd-8n-ht' has 8 nodes with cores: expected at",
        "system.nodes=[0, 8]": "system.nodes.1: node 8 of machine 'amd-8n-ht' does not exist",
        "system.nodes.0=1": "system: system.nodes: expected how many nodes",
        "system.command_size=16": "system.command_size: a bare number has no unit",
        "seed=-1": "seed: ",
        "horizon=5": "horizon: a bare number has no unit",
        "horizon.value=5 s": "no field 'value' in horizon: it has no parts",
        "machine=amd-8n": "unknown machine: found 'amd-8n', expected 'amd-8n-ht'",
        "machine.nods.0=1": "unknown field 'nods': expected 'nodes'",
        "machine.link_types.ht-ful.bandwidth=1 GB/s": "'ht-ful' in link_types: expected 'ht-full'",
        "machine.link_types.ht-full.bandwith=1 GB/s": "'bandwith' in link_types.ht-full: expecte",
        "machine.link_types.ht-full.bandwidth=1": "bandwidth: a bare number has no unit",
        "machine.link_types.ht-full.bandwidth=1 ns": "'ns' is not a unit of bandwidth",
        "machine.links.99.type=x": "no position '99' in links: expected 0 to 17",
        "machine.links.-1.type=x": "no position '-1' in links: expected 0 to 17",
        "machine.links.0.type=x": "unknown link type 'x': expected ht-full, ht-half",
        "workload.objects.idx.keys=1": "unknown field 'idx' in objects: expected 'index'",
        "workload.objects.index.kyes=1": "unknown field 'kyes' in objects.index: expected 'keys'",
        "workload.objects.index.keys=1.5e0": "objects.index.keys: found '1.5', "
        "expected a whole number",
        "workload.phases.1.start=5 s": "no position '1' in phases: expected 0 to 0",
        "policies.balancing.policy=ma8": "unknown policy: found 'ma8', expected 'ma-8'",
        "policies.balancing.threshold=x": "policies.balancing.threshold: ",
        "policies.balancin.period=1 s": "'balancin' in policies: expected 'balanc",
        "plane=nativ": "unknown plane: found 'nativ', expected flow",
        "scale=2.0": "scale: ",
        "scale=0.0": "scale: ",
        "extends=eris-fig9": "unknown field 'extends'",
        "value_size=8 B": "'value_size' (did you mean workload.objects.index.value_size?)",
        "page_size=4 KiB": "unknown field 'page_size' (did you mean system.page_size?)",
        "bandwidth=9 GB/s": "(did you mean machine.node_types.opteron-6274-die.memory.bandwidth?)",
        "seed": "not a setting: expected path=value, such as system.nodes=4 or seed=1",
        "seed=": "not a setting",
        "=1": "not a setting",
        "system..nodes=1": "not a setting",
        "": "not a setting",
        "seed=[1": "not YAML: ",
        "seed=!!python/object:os.system 1": "tag tag:yaml.org,2002:python/object:os.system is no",
        "seed=&a [*a]": "an alias inside its own anchor",
    }.items(),
)
def test_a_slip_is_told_with_the_setting(setting: str, message: str) -> None:
    error = _refused(setting)
    if setting != "system.nodes.0=1":
        assert error.startswith(f"--set {setting}: ")
    assert message.removeprefix("system: ") in error
    assert "\n" not in error


def test_the_setting_at_fault_is_named_among_others() -> None:
    error = _refused("seed=1", "horizon=5 GB", "system.nodes=2")
    assert error.startswith("--set horizon=5 GB: horizon: ")


def test_what_a_setting_breaks_elsewhere_is_told_there() -> None:
    """Fewer keys than the hot range has: the range is at fault, in its file."""
    error = _refused("workload.objects.index.keys=1000")
    assert "eris-moving-range.yaml:" in error
    assert "beyond the domain: expected at most 1000, its keys" in error


def test_a_long_setting_is_cut() -> None:
    error = _refused("title" + "x" * 5_000 + "=1")
    assert error.startswith("--set titlexxx")
    assert len(error) < 6_000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"machine": "amd"}, "--machine amd: unknown machine"),
        ({"machine": "no.yaml"}, "--machine no.yaml: no.yaml: cannot be read"),
        ({"workload": "eris"}, "--workload eris: unknown workload"),
        ({"scale": 2.0}, "--scale 2.0: scale: "),
        ({"plane": "x"}, "--on x: unknown plane: found 'x', expected flow or event or reference"),
        ({"seed": -1}, "--seed -1: seed: "),
    ],
)
def test_an_option_that_will_not_do(options: dict[str, str], message: str) -> None:
    with pytest.raises(InputError) as caught:
        load_scenario("eris-fig13", **options)  # type: ignore[arg-type]
    assert str(caught.value).startswith(message)


def test_unknown_scenario() -> None:
    with pytest.raises(InputError, match="unknown scenario: found 'eris-fig31', expected 'eris-f"):
        load_scenario("eris-fig31")


words = st.sampled_from(
    [
        *("seed", "system", "nodes", "0", "1", "machine", "links", "type", "workload", "objects"),
        *("index", "keys", "phases", "start", "policies", "balancing", "policy", "file", "class"),
        *("options", "threshold", "horizon", "name", "ids"),
    ]
)
values = st.one_of(
    st.integers(-2, 10).map(str),
    st.sampled_from(["[]", "{}", "null", "1 s", "ma-1", "x.py", "[0, 1]", "{a: 1}", "'", "~", "-"]),
    st.text(max_size=8),
)


@given(st.lists(words, min_size=1, max_size=5).map(".".join), values)
def test_whatever_is_set_loads_or_is_told_in_one_line(path: str, value: str) -> None:
    assert "\n" not in str(_loaded_or_told(f"{path}={value}"))


@pytest.mark.parametrize("value", ["{}", "null", "{balancing: {}}"])
def test_without_policies_there_is_none(value: str) -> None:
    assert load_scenario("eris-fig13", settings=[f"policies={value}"]).policy_name == "none"


def _loaded_or_told(setting: str) -> InputError | str:
    try:
        return load_scenario("eris-fig13", settings=[setting]).hash
    except InputError as failure:
        return failure


@pytest.mark.parametrize(
    ("settings", "told"),
    {
        ("incoming_size=15 B",): "a buffer smaller than a command: expected at least 16 B",
        ("incoming_size=2047 B",): "smaller than an outgoing buffer: expected at least 2048 B",
        ("incoming_size=4 GiB",): "expected less than 4 GiB",
        ("command_size=32 MiB",): "128 commands fill an outgoing buffer: expected less than 4 GiB",
        ("command_size=8 KiB", "buffer_commands=1000000"): "1000000 commands fill an outgoing "
        "buffer: expected less than 4 GiB together",
    }.items(),
)
def test_buffers_that_cannot_be(settings: tuple[str, ...], told: str) -> None:
    with pytest.raises(InputError, match=told):
        load_scenario("eris-fig8-amd", settings=[f"system.{setting}" for setting in settings])
