"""Whatever goes wrong once, every job settles exactly once and everything is put back. [JOB-1] [UNIT-1] [QUEUE-1]"""

from __future__ import annotations

import pytest
from _pytest.mark import ParameterSet

from penstock.domain.jobs.jobs import Outcome
from tests.usecases.trouble import Life, Trouble


def whole_life(trouble: Trouble, *, redelivers: bool = True) -> Life:
    """Three jobs that want the same bench, from submit until nothing is left: the first gets all at once."""
    life = Life(trouble, redelivers=redelivers)
    life.submit(resources=["bench", "licence"])
    life.submit(resources=["bench"])
    life.submit(resources=["bench", "licence"])
    assert life.live()
    return life


CALM = whole_life(Trouble())


def effects(sampled: int) -> list[ParameterSet]:
    """All effects of a life, by number: the even or the odd ones for `make test`, the others for `make prove`."""
    marks = {sampled: (), 1 - sampled: pytest.mark.long}
    return [pytest.param(number, marks=marks[number % 2]) for number in range(CALM.trouble.effects)]


def test_a_life_without_trouble() -> None:
    life = whole_life(Trouble())
    assert life.live()
    assert life.outcomes() == {Outcome.SUCCEEDED}
    assert life.trouble.hints > 20
    assert life.trouble.effects > 80


@pytest.mark.parametrize("number", range(CALM.trouble.hints))
def test_a_hint_is_doubled(number: int) -> None:
    life = whole_life(Trouble(doubles=number))
    assert life.trouble.happened
    assert life.outcomes() == {Outcome.SUCCEEDED}
    assert all(job.attempt == 1 for job in life.jobs())


@pytest.mark.parametrize("number", range(CALM.trouble.hints))
def test_a_hint_comes_again_much_later(number: int) -> None:
    life = Life(Trouble(echoes=number))
    for _ in range(2):
        life.submit(resources=["bench"])
        life.live()
        life.twin.pass_time(400)
    assert life.outcomes() == {Outcome.SUCCEEDED}
    assert all(job.attempt == 1 for job in life.jobs())


@pytest.mark.parametrize("number", range(CALM.trouble.hints))
def test_a_hint_is_late(number: int) -> None:
    life = whole_life(Trouble(delays=number))
    assert life.trouble.happened
    assert life.outcomes() == {Outcome.SUCCEEDED}


@pytest.mark.parametrize("number", range(CALM.trouble.hints))
def test_a_hint_is_lost(number: int) -> None:
    life = whole_life(Trouble(loses=number))
    assert life.trouble.happened
    assert life.outcomes() == {Outcome.SUCCEEDED}


@pytest.mark.parametrize("number", effects(0))
def test_a_function_dies_after_an_effect_and_is_called_again(number: int) -> None:
    life = whole_life(Trouble(dies_after=number))
    assert life.trouble.happened
    assert life.outcomes() == {Outcome.SUCCEEDED}


@pytest.mark.parametrize("number", effects(1))
def test_a_function_dies_after_an_effect_and_is_never_called_again(number: int) -> None:
    life = whole_life(Trouble(dies_after=number), redelivers=False)
    assert life.trouble.happened
    assert life.outcomes() == {Outcome.SUCCEEDED}
