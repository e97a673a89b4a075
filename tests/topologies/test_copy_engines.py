"""Copy engines of machine files: where they are, what they do, what is refused."""

import pytest

from numatwin.topologies import (
    DescriptionError,
    Machine,
    MachineDescription,
    build_machine,
    load_machine,
)

MACHINE = {
    "name": "two",
    "node_types": {"plain": {"cores": 2, "memory": {"size": "1 GiB"}}},
    "nodes": [{"ids": "0-1", "type": "plain"}],
    "hubs": [{"id": "hub-a"}, {"id": "hub-b"}],
    "link_types": {"link": {"bandwidth": "8 GB/s"}},
    "generate": [{"shape": "attach", "link": "link", "hubs": ["hub-a", "hub-b"]}],
    "links": [{"ends": ["hub-a", "hub-b"], "type": "link"}],
}
ENGINE = {
    "contexts": 4,
    "setup": "10 us",
    "request": "1 us",
    "bandwidth": "4 GB/s",
    "in_flight": "4 KiB",
}


def made(*at: list[int | str]) -> Machine:
    engines = [{**ENGINE, "at": list(ends)} for ends in at]
    return build_machine(MachineDescription.model_validate({**MACHINE, "copy_engines": engines}))


def test_engines_are_at_hubs_and_nodes() -> None:
    assert [engine.vertex for engine in made(["hub-*"]).copy_engines] == [2, 3]
    engine = made(["hub-b", 1]).copy_engines[0]
    assert (engine.vertex, engine.setup_s, engine.bandwidth_Bps) == (1, 1e-5, 4e9)
    assert engine.in_flight_bytes == 4096
    assert engine.non_coherent_Bps is None


@pytest.mark.parametrize(
    ("at", "message"),
    [
        ((["harp"],), "no hub is called 'harp': expected hub-a, hub-b"),
        (([2],), "there is no node 2"),
        ((["hub-a"], ["hub-*"]), "'hub-\\*' has a copy engine already"),
    ],
)
def test_engines_that_cannot_be_are_refused(at: tuple[list[int | str], ...], message: str) -> None:
    with pytest.raises(DescriptionError, match=message):
        made(*at)


@pytest.mark.parametrize(
    ("name", "kind", "count"), [("sgi-uv300h-8s", "GRU", 4), ("xeon-2s-spr-snc4", "DSA", 2)]
)
def test_bundled_machines_with_engines(name: str, kind: str, count: int) -> None:
    machine = load_machine(name)
    assert [engine.kind for engine in machine.copy_engines] == [kind] * count
    facts = machine.description.copy_engines[0]
    for field in ("setup", "request", "bandwidth", "in_flight"):
        quantity = getattr(facts, field)
        assert quantity.low < quantity.high, field
        assert quantity.source, field
