"""What training says about its time, by a clock that the test sets."""

import time
from types import SimpleNamespace

import pytest

from synmt_cli import console
from synmt_cli.commands.train_estimate import forecast, timed
from synmt_cli.commands.train_progress import Watch
from synmt_cli.core.training.events import Pulse
from synmt_cli.core.training.length import Length


@pytest.fixture
def clock(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def wait(seconds):
        now[0] += seconds

    return wait


@pytest.fixture
def watch(clock, monkeypatch):
    monkeypatch.setattr(console, "_level", console.NORMAL)  # whatever an earlier test left
    with console.progress("training", 1000, "steps") as bar:
        yield Watch(bar, Length(updates=1000, tokens=500.0, passes=1.0), validate_every=250)


def validate(watch, clock, step, seconds):
    for doing in ("validating", "translating dev"):
        watch(Pulse(step, 0, 2.0, 500.0, doing))
        clock(seconds / 2)
    watch.validated()


@pytest.mark.parametrize(("seconds", "is_told"), [(4.9, False), (5.1, True)])
def test_validations_that_take_a_third_of_the_time_are_noted_once(
    watch, clock, capfd, seconds, is_told
):
    for number in range(1, 6):
        clock(10)
        watch(Pulse(2 * number, 0, 2.0, 500.0))
        validate(watch, clock, 2 * number, seconds)
        said = "training.validate_every above 250" in capfd.readouterr().err
        assert said == (is_told and number == 3)


def test_the_time_that_all_updates_take_is_told_once_when_the_speed_is_known(watch, clock, capfd):
    told = []
    for step in range(1, 41):
        clock(1)
        watch(Pulse(step, 0, 2.0, 500.0))
        if "all updates take about 16 min" in capfd.readouterr().err:
            told.append(step)
    assert told == [20]


def test_a_forecast_is_silent_about_other_work_where_threads_wait_for_each_other(monkeypatch):
    monkeypatch.setattr("torch.get_num_threads", lambda: 1000)
    trainer = SimpleNamespace(
        device=SimpleNamespace(type="cpu"), seconds_of_update=lambda *_: time.sleep(0.1)
    )
    assert timed(trainer)[1] == 1.0
    assert forecast(0.01, 0.3) == "0 s"


@pytest.mark.parametrize(("device", "least", "most"), [("cpu", 0.0, 0.1), ("cuda", 1.0, 1.0)])
def test_a_forecast_knows_how_much_of_the_processor_was_left_to_it(device, least, most):
    """An update that waits most of its time is as slow as one that shares the processor."""

    def wait(budget, most):
        time.sleep(0.3)
        return 0.3

    trainer = SimpleNamespace(device=SimpleNamespace(type=device), seconds_of_update=wait)
    seconds, share = timed(trainer)
    assert seconds == 0.3
    assert least <= share <= most
