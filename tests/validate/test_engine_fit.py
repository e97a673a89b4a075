"""The fit of a user's own engine: known costs are found back, what rows cannot tell is said."""

from pathlib import Path

import pytest
import yaml
from engine_rows_made import MACHINE, ROWS, SHARED, machine_in, throughput, written
from refusals import told_by

from numatwin.inputs import InputError
from numatwin.sim.run.runner import run_scenario
from numatwin.sim.run.scenario import load_scenario
from numatwin.sim.run.uncertainty import with_uncertainty
from numatwin.validate.calibrate.calibration import HELD_OUT, error_summary
from numatwin.validate.calibrate.engine_fit import (
    ENGINE,
    EngineFit,
    calibrate_engine,
    divided,
    profile_yaml,
)
from numatwin.validate.calibrate.engine_rows import load_rows
from numatwin.validate.calibrate.observation import Observation, Origin

TRUTH = {"generate": 90.0, "tree_level": 60.0, "upsert_shared": 45.0, "level_lines": 2.0}
# What is known only together with them keeps its default, which is the truth here.
CORES = "cores: 8\n    threads_per_core: 2\n    clock"
TRUTH_TOGETHER = {**TRUTH, "tree_entry": 16.6}


def fitted(folder: Path, path: Path, share: float | None = None) -> EngineFit:
    return calibrate_engine(machine_in(folder), path, settings=[SHARED], share=share)


def intervals(found: EngineFit) -> dict[str, tuple[float, float]]:
    estimates = found.calibration.fit.estimates.values()
    return {one.parameter.name: (one.low, one.high) for one in estimates}


def test_known_costs_are_found_back(tmp_path: Path) -> None:
    found = fitted(tmp_path, written(tmp_path, TRUTH_TOGETHER))
    estimates = {key[1]: one.value for key, one in found.calibration.fit.estimates.items()}
    assert set(estimates) >= {"generate", "tree_level", "level_lines"}
    for name, value in estimates.items():
        assert value == pytest.approx(TRUTH_TOGETHER[name], rel=0.02), name
    held = found.calibration.of(HELD_OUT)
    assert [one.observation.line for one in held] == [5, 7, 9, 14]
    errors = error_summary(held)
    assert errors is not None
    assert abs(errors[1].error) < 0.01


@pytest.fixture(scope="module")
def noisy(tmp_path_factory: pytest.TempPathFactory) -> EngineFit:
    """Of figures that are off by 2%."""
    folder = tmp_path_factory.mktemp("noisy")
    return fitted(folder, written(folder, TRUTH_TOGETHER, noise=0.02, seed=1))


def test_intervals_hold_what_noise_hides(noisy: EngineFit) -> None:
    held = [low <= TRUTH_TOGETHER[name] <= high for name, (low, high) in intervals(noisy).items()]
    assert len(held) >= 3
    assert sum(held) >= len(held) - 1  # each is out in one fit of twenty
    errors = error_summary(noisy.calibration.of(HELD_OUT))
    assert errors is not None
    assert abs(errors[1].error) < 0.08


def test_a_run_with_the_profile_predicts_what_the_fit_does(
    noisy: EngineFit, tmp_path: Path
) -> None:
    profile = tmp_path / "mine.yaml"
    profile.write_text(profile_yaml(noisy, "mine"))
    text = yaml.safe_load(profile.read_text())
    assert (text["name"], text["system"]) == ("mine", "eris")
    assert "store.csv" in text["source"]
    one = noisy.calibration.of(HELD_OUT)[0]
    operation, threads, keys = ROWS[2]
    scenario = load_scenario(
        "eris-mixed-amd",
        machine=machine_in(tmp_path),
        settings=[
            f"engine={profile}",
            SHARED,
            f"system.threads={threads}",
            f"workload.objects.index.keys={keys}",
            "workload.operations.upsert.share=0",
        ],
    )
    record = with_uncertainty(run_scenario(scenario), scenario)
    assert record.throughput[operation] == pytest.approx(one.predicted, rel=1e-3)
    low, high = record.uncertainty["throughput"][operation]
    assert low < one.predicted < high
    assert low < throughput(machine_in(tmp_path), ROWS[2], TRUTH_TOGETHER) < high


@pytest.mark.slow
def test_a_lock_is_found_back_where_there_is_one(tmp_path: Path) -> None:
    """Upserts hold a lock for 200 instructions (4.5 a ns): 22.5 million per second at most."""
    rows = [(op, n, keys) for op in ("lookup", "upsert") for n in (1, 8) for keys in (10**4, 10**8)]
    truth = {**TRUTH_TOGETHER, "upsert_serial": 200.0}
    found = fitted(tmp_path, written(tmp_path, truth, rows, noise=0.01), share=0.0)
    estimates = {key[1]: one.value for key, one in found.calibration.fit.estimates.items()}
    assert estimates["upsert_serial"] == pytest.approx(200.0, rel=0.03)
    assert "lookup_serial" not in estimates
    assert found.facts["upsert_serial"]["source"] == "fitted; range: 95%"


@pytest.mark.slow
def test_threads_lie_where_the_rows_fit(tmp_path: Path) -> None:
    """On two nodes of eight cores with two threads each, 16 threads ran on a core each; the rows do
    not say so."""
    machine = tmp_path / "two.yaml"
    link = "link_types: {a: {bandwidth: 30 GB/s}}\nlinks: [{type: a, ends: [0, 1]}]\n"
    nodes = MACHINE.replace("{id: 0,", "{ids: 0-1,").replace("cores: 8\n    clock", CORES)
    machine.write_text(nodes + link)
    lines = ["operation,threads,keys,throughput"]
    for on in (1, 2):
        for keys in (10**4, 10**8):
            each = 1 if on == 1 else 8
            value = throughput(str(machine), ("lookup", each, keys), TRUTH_TOGETHER, on)
            lines.append(f"lookup,{each * on},{keys},{value:.6g}")
    rows = tmp_path / "rows.csv"
    rows.write_text("\n".join(lines) + "\n")
    found = calibrate_engine(str(machine), rows, settings=[SHARED], share=0.0)
    assert found.layouts["16 threads"] == "system.threads=8 system.nodes=2"
    assert max(abs(one.error) for one in found.calibration.residuals) < 0.01


def test_a_profile_says_how_far_its_fit_is_off(noisy: EngineFit) -> None:
    """The standard deviation of four held-out rows, of 2% noise each."""
    assert noisy.misfit["rows"] == len(noisy.calibration.of(HELD_OUT)) == 4
    assert 0.002 < noisy.misfit["error"] < 0.06
    assert "warning" not in noisy.misfit
    assert yaml.safe_load(profile_yaml(noisy, "mine"))["misfit"] == noisy.misfit


def test_what_the_rows_cannot_tell_is_said_and_stays(tmp_path: Path) -> None:
    """Lookups of one small size: one number, whatever its parts."""
    rows = [("lookup", threads, 10_000) for threads in (1, 2, 4)]
    found = fitted(tmp_path, written(tmp_path, TRUTH_TOGETHER, rows))
    left = {one.parameter.name: one.reason for one in found.calibration.fit.left}
    assert set(left) | set(intervals(found)) == {
        "generate", "tree_level", "tree_entry", "level_lines"
    }  # fmt: skip
    assert len(left) == 3
    assert any("known only together with" in reason for reason in left.values())
    for name in left:
        fact = found.facts[name]
        assert fact["doubtful"] is True
        assert fact["range"] == pytest.approx([fact["value"] / 2, fact["value"] * 2], rel=1e-3)
        assert "do not determine it" in fact["source"]


def held_out_lines(path: Path, share: float | None = None) -> list[int | None]:
    rows = load_rows(path)
    origin = Origin(str(path), path.name, "")
    ones = [Observation(ENGINE, r.label, r.throughput, "/s", origin, line=r.line) for r in rows]
    fitted_to, held = divided(ones, rows, share)
    assert len(fitted_to) + len(held) == len(rows)
    return [one.line for one in held]


def test_repetitions_are_held_out_together(tmp_path: Path) -> None:
    path = tmp_path / "store.csv"
    rows = [f"lookup,{threads},5" for threads in (1, 2, 3, 4, 1, 3, 6)]
    path.write_text("\n".join(["operation,threads,throughput", *rows]) + "\n")
    assert held_out_lines(path) == [4, 7, 8]
    assert held_out_lines(path, 0.0) == []
    assert held_out_lines(path, 0.5) == [3, 4, 7]
    assert "--held-out: found '0.9', expected a share from 0" in told_by(held_out_lines, path, 0.9)


def test_a_system_without_profiles_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, TRUTH_TOGETHER, ROWS[:1])
    with pytest.raises(InputError, match="engines of this kind are not fitted to throughputs"):
        calibrate_engine("ib-fdr-8n", path, scenario="nam-fig6-rsi")
