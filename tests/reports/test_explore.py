"""What the page to explore with predicts and serves, without a browser."""

import gc
import http.client
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from numatwin.inputs import InputError
from numatwin.reports.explore import ExploreServer, layout
from numatwin.reports.explore.explorer import Choice, Explorer
from numatwin.sim.run.scenario import load_scenario
from numatwin.sim.studies.base import Base
from numatwin.sim.studies.influences import Field

BANDWIDTH = "machine.node_types.opteron-6274-die.memory.bandwidth"
FASTER = Choice((f"{BANDWIDTH}=32.8 GB/s",))


@pytest.fixture(scope="module")
def explorer() -> Explorer:
    return Explorer(Base("eris-fig12-scan"))


@pytest.fixture(scope="module")
def server(explorer: Explorer) -> Iterator[ExploreServer]:
    found = ExploreServer(explorer)
    thread = threading.Thread(target=found.serve, daemon=True)
    thread.start()
    yield found
    found.close()
    thread.join()


def asked(server: ExploreServer, path: str, **headers: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    connection.request("GET", path, headers=headers)
    return connection.getresponse()


def test_a_variant_is_what_a_run_of_its_command_says(explorer: Explorer) -> None:
    before, after = explorer.moment(Choice()), explorer.moment(FASTER)
    assert after.total == pytest.approx(2 * before.total, rel=0.05)
    assert "memory bandwidth" in explorer.why(Choice())["scan"].resource
    assert explorer.command(FASTER).endswith(f"--on flow --set '{FASTER.settings[0]}'")
    assert before.picture is not None
    assert before.picture.startswith("<svg")


def test_the_scenario_file_is_the_variant(explorer: Explorer, tmp_path: Path) -> None:
    text = explorer.scenario_file(FASTER)
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    assert isinstance(yaml.safe_load(text), dict)
    assert load_scenario(path).hash == explorer._load(FASTER).hash


def test_menus_and_report(explorer: Explorer) -> None:
    menus = explorer.menus()
    assert "intel-4s-qpi" in menus["machine"]
    assert {"none", "one-shot"} <= set(menus["balancing"])
    elsewhere = Choice(machine="intel-4s-qpi")
    assert explorer.moment(elsewhere).total != explorer.moment(Choice()).total
    assert "intel-4s-qpi" in explorer.report([Choice(), elsewhere])


def test_a_broken_value_is_one_line_and_costs_nothing(explorer: Explorer) -> None:
    with pytest.raises(InputError, match="GB/s") as failure:
        explorer.moment(Choice((f"{BANDWIDTH}=fast",)))
    assert "\n" not in str(failure.value)
    assert explorer.moment(Choice()).total > 0


def test_the_page_is_for_who_knows_its_address(server: ExploreServer) -> None:
    path = "/" + server.address.split("/", 3)[3]
    assert asked(server, path).status == 200
    assert asked(server, "/").status == 404
    assert asked(server, "/wrong/").status == 404
    assert asked(server, path, Host="example.org").status == 403
    policy = asked(server, path).headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe-inline" not in policy.split("style-src")[0]
    assert "http" not in policy


def test_a_move_waits_for_no_search_of_garbage(server: ExploreServer) -> None:
    path = "/" + server.address.split("/", 3)[3]
    assert asked(server, path).status == 200  # it serves
    assert gc.get_freeze_count() > 100_000


def test_whole_numbers_end_at_one_and_effects_are_factors() -> None:
    field = Field("system.clients", 1.0, whole=True, effect=31.9)
    text = str(layout.controls([field], [field.path], {}, quick=True))
    assert "'-2': {'label': '1'}" in text.replace("-2:", "'-2':")
    assert "×32.9" in text


def test_a_port_in_use_is_told(
    explorer: Explorer, server: ExploreServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the error alone: werkzeug has lines of its own for it."""
    with pytest.raises(InputError, match=f"cannot listen: found 'port {server.port}'"):
        ExploreServer(explorer, server.port)
    assert capsys.readouterr() == ("", "")
