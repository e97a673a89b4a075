"""Which fields decide throughput: those that are known to, by a known factor."""

import pytest

from numatwin.inputs import InputError
from numatwin.inputs.shared_work import SharedWork, shared
from numatwin.sim.studies.base import Base
from numatwin.sim.studies.influences import Field, fields_of, influences


def found_of(base: Base) -> dict[str, Field]:
    with shared(SharedWork()):
        scenario = base.load()
        found = influences(base, scenario, fields_of(base, scenario))
    effects = [field.effect for field in found]
    assert None not in effects
    assert effects == sorted(effects, key=lambda effect: -(effect or 0.0))
    return {field.path: field for field in found}


def test_scans_that_memory_bounds_follow_its_bandwidth() -> None:
    found = found_of(Base("eris-fig12-scan", {"plane": "flow"}))
    bandwidth = found["machine.node_types.opteron-6274-die.memory.bandwidth"]
    assert bandwidth.effect == pytest.approx(1.0, rel=0.02)  # half as much halves the scans
    assert (bandwidth.value, bandwidth.unit) == (16.4, "GB/s")
    larger = [path for path, field in found.items() if (field.effect or 0.0) > 1.0 + 1e-9]
    assert larger == ["system.placement"]  # where the column lies


def test_choices_and_whole_numbers_are_fields_too() -> None:
    base = Base("eris-fig8-amd", {"plane": "flow"})
    scenario = base.load()
    fields = {field.path: field for field in fields_of(base, scenario)}
    assert fields["system.placement"].choices == ("partitioned", "interleaved", "single-ram")
    keys = fields["workload.objects.index.keys"]
    assert (keys.value, keys.whole) == (1e9, True)
    assert keys.setting(1234.6) == "workload.objects.index.keys=1235"
    assert not any(path.startswith("machine.links") for path in fields)


def test_each_field_can_be_set_to_what_it_is() -> None:
    for name in ("eris-fig8-amd", "nam-fig6-rsi", "gru-scan"):
        base = Base(name, {"plane": "flow"})
        with shared(SharedWork()):
            scenario = base.load()
            for field in fields_of(base, scenario):
                assert base.load([field.setting(field.value)]).plane == "flow", field


def test_what_there_is_no_time_for_is_not_tried() -> None:
    base = Base("eris-fig8-amd", {"plane": "flow"})
    scenario = base.load()
    fields = fields_of(base, scenario)
    found = influences(base, scenario, fields, budget_s=-1.0)
    assert {field.effect for field in found} == {None}
    assert {field.path for field in found} == {field.path for field in fields}


def test_a_setting_that_leads_nowhere_is_refused() -> None:
    with pytest.raises(InputError, match="unknown field"):
        Base("eris-fig8-amd", {"plane": "flow"}, ("system.nonsense=1",)).load()
