"""Off a terminal, long work says once how much of it is left."""

import pytest

from numatwin.cli.long_work import forecast, long_time


@pytest.fixture(autouse=True)
def no_forecasts() -> None:
    """They are what is tested here."""


def test_off_a_terminal_long_work_is_forecast(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = iter([0.0, 5.0, 20.0, 25.0])
    monkeypatch.setattr("time.monotonic", lambda: next(now))
    tell = forecast("simulating")
    for fraction in (0.01, 0.02, 0.03):
        tell(fraction)
    assert capsys.readouterr().err == "numatwin: simulating: 2.0% done, about 16 min to go\n"


@pytest.mark.parametrize(
    ("time_s", "text"), [(0.25, "0.25 s"), (90.0, "90 s"), (7_200.0, "2 h"), (3e5, "3 days")]
)
def test_times_in_words(time_s: float, text: str) -> None:
    assert long_time(time_s) == text
