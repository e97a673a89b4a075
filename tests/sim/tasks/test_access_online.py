"""Access paths learned online: weights, what the regressions tend to, convergence, bad input."""

from pathlib import Path

import numpy as np
import pytest

from numatwin.inputs import InputError
from numatwin.sim.systems.tasks.access_path import ACCESS_PATH, AccessModel, load_access_model
from numatwin.sim.systems.tasks.access_training import (
    Observations,
    OnlineLine,
    explored,
    learn_online,
    observe,
    train,
    train_on,
)
from numatwin.topologies import load_machine

MACHINE = "sgi-uv300h-8s"


def test_a_weight_is_as_many_observations() -> None:
    once, often = OnlineLine(np.ones(5)), OnlineLine(np.ones(5))
    random = np.random.default_rng(1)
    for features in random.random((20, 5)):
        once.learn(features, features.sum() + 1.0, 3.0)
        for _ in range(3):
            often.learn(features, features.sum() + 1.0)
    assert once.weights == pytest.approx(often.weights, rel=1e-6)


def test_a_line_of_a_model_is_the_learned_one() -> None:
    learned = OnlineLine(np.array([10.0, 1.0, 1.0, 1.0, 1.0]))
    features = np.random.default_rng(2).random((200, 5))
    for row in features:
        learned.learn(row, 3.0 * row[0] - row[4] + 2.0)
    line = learned.line()
    assert line.seconds(features) == pytest.approx([learned.seconds(row) for row in features])
    assert line.weights[0] == pytest.approx(3.0, rel=0.01)


def test_regressions_tend_to_those_of_all_scans() -> None:
    """By CPU a scan of x takes x^4 s, by the engine half a second. The line of all x from 0 to 1 is
    0.8 x - 0.2; that of the scans below 0.84, where the CPU is chosen, has half of that slope. The
    bounds are four standard errors, told by 12 seeds.
    """
    slopes = []
    for seed in range(12):
        x = np.random.default_rng([seed, 7]).random(8_000)
        features = np.zeros((len(x), 5))
        features[:, 0] = x
        learned = learn_online(features, x**4, np.full(len(x), 0.5), 50, seed)
        slopes.append(learned.cpu.weights[0])
    error = float(np.std(slopes, ddof=1)) / len(slopes) ** 0.5
    assert np.mean(slopes) == pytest.approx(0.8, abs=4.0 * error)
    assert 4.0 * error < 0.1


def test_learning_online_converges() -> None:
    """Of a machine's scans, over eight orders: choices lose ever less, and exploring does too, from
    each three doublings to the next three. What single doublings lose differs by more."""
    observed = observe(load_machine(MACHINE), 20_000, 1)
    of = observed.features, observed.cpu_s, observed.engine_s
    curves = np.array([learn_online(*of, 50, seed).curve for seed in range(8)])
    assert curves[0, :, 0].tolist() == [100, 200, 400, 800, 1600, 3200, 6400, 12800, 20000]
    for lost in curves[:, :, 1:].mean(axis=0).T:
        early, later, last = lost.reshape(3, 3).mean(axis=1)
        assert last < later < early
        assert last < 0.5 * early
    assert curves[:, -1, 1].mean() < 0.04
    assert [explored(n) for n in (1, 8, 1000)] == pytest.approx([0.5, 0.5, 0.1])


@pytest.fixture(scope="module")
def model(observed: Observations) -> AccessModel:
    return train(load_machine(MACHINE), observed, 1, online=50)


def test_a_model_that_was_learned_online(model: AccessModel, tmp_path: Path) -> None:
    assert model.tree is None
    assert [until for until, _, _ in model.scores["online"]] == [100, 200, 400, 800, 1600, 3200]
    assert not [name for name in model.scores if name.startswith("tree")]
    file = tmp_path / "model.json"
    model.save(file)
    loaded = load_access_model(file)
    assert (loaded.cpu, loaded.engine) == (model.cpu, model.engine)
    assert ACCESS_PATH.bundled("regression", {"model": str(file)})
    with pytest.raises(ValueError, match="learned online has no tree"):
        ACCESS_PATH.bundled("tree", {"model": str(file)})


def test_scans_by_both_paths_that_leave_none_to_learn_from() -> None:
    with pytest.raises(InputError, match="expected fewer than 800, four fifths"):
        train_on(load_machine(MACHINE), 1_000, 1, "flow", online=800)
