"""What a plan says: steps in order, waits, and when it could start."""

import pytest

from penstock.domain.jobs.admission import describe_wait
from penstock.domain.jobs.plans import Acquire, plan
from penstock.domain.pools.forecast import Action, Forecast, Unblock
from penstock.domain.pools.pools import Need
from tests.domain.helpers import job

BENCH, TARGET = "resource/bench", "target/u"
FREE = Forecast(TARGET, 1, 0.0, None, ())
BACK = Unblock(Action.GIVE_BACK, BENCH, "bench-1", "X")
HELD = Forecast(BENCH, 2, 240.0, "the last holder of resource/bench kept it 10 min", (BACK,))
NEEDS = (
    Need(1, 1, "x", "licence", "resource/licence", "locks"),
    Need(2, 1, "y", "licence", "resource/licence", "locks"),
    Need(0, 0, "worker", "u", TARGET, "here", uses={"quota/vcpus": 2}),
)


def test_steps_come_in_order_and_the_worker_last() -> None:
    found = plan(job(needs=NEEDS), ["target.lab"], [FREE])
    assert found.steps == (
        (Acquire("resource/licence", "licence", 2),),
        (Acquire(TARGET, "u", 1), Acquire("quota/vcpus", "vcpus", 2)),
    )
    assert (found.privileges, found.waits, found.seconds) == (("target.lab",), (), 0.0)
    assert found.sentences == (
        "the job would acquire first licence, licence, then a worker of ubuntu (asked for as default)",
        "everything that it needs is free at present: it would start at once",
    )


def test_a_job_without_resources_acquires_a_worker() -> None:
    found = plan(job(needs=NEEDS[2:], target="ubuntu"), [], [FREE])
    assert found.sentences[0] == "the job would acquire a worker of ubuntu"


@pytest.mark.parametrize(
    ("wait", "last"),
    [
        (HELD, "it could start in about 4 min: the last holder of resource/bench kept it 10 min"),
        (Forecast(BENCH, 2, 240.0, None, (BACK,)), "it could start in about 4 min"),
        (Forecast(BENCH, 2, None, None, (BACK,)), "when it could start cannot be said"),
    ],
)
def test_what_would_be_waited_for_is_told(wait: Forecast, last: str) -> None:
    found = plan(job(), [], [wait, FREE])
    assert found.waits == (wait,)
    assert found.sentences[1:] == (
        "nothing of resource/bench is free for it: the job would wait at position 2 in its queue, "
        "until bench-1 is given back by X",
        last,
    )


def test_a_wait_that_nothing_ends_is_told_too() -> None:
    stuck = Forecast(BENCH, 2, None, None, ())
    assert plan(job(), [], [stuck]).sentences[1].endswith("position 2 in its queue")


@pytest.mark.parametrize(
    ("acts", "said"),
    [
        ((), None),
        ((Unblock(Action.RESUME, BENCH), BACK), "resource/bench is paused by an operator"),
        ((Unblock(Action.RAISE, BENCH, limit=1),), "resource/bench has too low a limit at present"),
        ((Unblock(Action.RESUME, TARGET), BACK), "nothing of resource/bench is free for it"),
    ],
)
def test_could_it_now(acts: tuple[Unblock, ...], said: str | None) -> None:
    found = describe_wait(Forecast(BENCH, 1, None if acts else 0.0, None, acts))
    assert found == (f"{said}: the job would wait at position 1 in its queue" if said else None)
