"""Backlogs over the real use cases: of one owner's jobs no more are under way than the site allows, and all get on."""

from __future__ import annotations

import pytest

from penstock.domain.commands import NewInput, SubmitJob
from penstock.domain.jobs.backlogs import Backlogged
from penstock.domain.jobs.jobs import Job, Outcome, State
from penstock.domain.pools.forecast import Action
from penstock.domain.users.users import Tally, User, tally_key
from penstock.testing.site import site_toml
from penstock.testing.twin import START, Twin
from penstock.usecases.artifacts import inputs
from penstock.usecases.jobs import backlogs, cancel, jobs, prerequisites, settle
from penstock.usecases.jobs import submit as jobs_submit
from penstock.usecases.site import apply
from tests.usecases.dependencies import depends
from tests.usecases.races import before_the_next_write_of
from tests.usecases.steps import SCRIPT, hello, job_of, run_to_end, submit, sweep

BEA = User(name="bea", created=START, version=1)


@pytest.fixture
def small(twin: Twin) -> Twin:
    """A site with room for nine jobs, two of each owner."""
    set_limit(twin, 2)
    return twin


def set_limit(twin: Twin, most: int) -> None:
    limits = {"at_once": most} if most else {}
    apply.apply(twin.on, "root", site_toml(targets={"default": {"limit": 9}}, limits=limits), "site.toml")
    twin.run()


def begun(twin: Twin, owner: str = "ada") -> int:
    row = twin.store.get(tally_key(owner), Tally)
    return row.begun if row else 0


def backlog(twin: Twin) -> list[str]:
    rows = [row for row in twin.store.rows.values() if isinstance(row, Backlogged)]
    return [row.job for row in sorted(rows, key=lambda row: row.key.sk)]


def states(twin: Twin, made: list[str]) -> list[State]:
    return [job_of(twin, each).state for each in made]


def test_an_owners_further_jobs_wait_and_others_are_not_in_their_way(small: Twin, ada: User) -> None:
    made = [submit(small, ada) for _ in range(4)]
    small.run()
    assert states(small, made) == [State.ACQUIRING, State.ACQUIRING, State.WAITING, State.WAITING]
    assert (begun(small), backlog(small)) == (2, made[2:])
    other = submit(small, BEA)
    small.run()
    assert states(small, [other]) == [State.ACQUIRING]


def test_every_end_lets_the_next_go_on(small: Twin, ada: User) -> None:
    """SLOT-1, QUEUE-1: whether it succeeded, was cancelled, or was lost for good, and with no help of the sweep."""
    made = [submit(small, ada) for _ in range(5)]
    small.run()
    run_to_end(small, made[0])
    small.run()
    assert states(small, made[1:4]) == [State.ACQUIRING, State.ACQUIRING, State.WAITING]
    cancel.cancel(small.on, ada, made[1])
    small.run()
    assert job_of(small, made[3]).state is State.ACQUIRING
    for attempt in (1, 2):
        assert job_of(small, made[4]).state is State.WAITING, "an attempt that is followed by another ends no job"
        settle.settle(small.on, made[2], attempt, "Lost", "it is gone")
        settle.settle(small.on, made[2], attempt, "Lost", "and again")
        small.run()
    assert job_of(small, made[4]).state is State.ACQUIRING
    assert (begun(small), backlog(small)) == (2, [])
    for each in made[3:]:
        run_to_end(small, each)
        small.run()
    assert begun(small) == 0
    assert {job_of(small, each).end.outcome for each in made[3:]} == {Outcome.SUCCEEDED}


def test_who_waits_is_told_for_what_and_who_stands_before(small: Twin, ada: User) -> None:
    made = [submit(small, ada) for _ in range(5)]
    small.run()
    why = [jobs.explain(small.on, job_of(small, each)) for each in made[2:]]
    assert why[0].summary == (
        "the job waits until fewer jobs of ada are under way: 2 are, and 2 may be (limits.at_once); none of its other "
        "jobs stands before it"
    )
    assert "1 of its jobs stands before it" in why[1].summary
    assert "2 of its jobs stand before it" in why[2].summary
    assert [(each.way, str(each)) for each in why[0].unblocks] == [
        (Action.FEWER, "one of the jobs of ada that are under way ends")
    ]


def test_a_plan_says_that_it_would_wait(small: Twin, ada: User) -> None:
    submit(small, ada)
    assert not jobs_submit.plan(small.on, ada, SubmitJob(SCRIPT)).depends
    submit(small, ada)
    planned = jobs_submit.plan(small.on, ada, SubmitJob(SCRIPT))
    wait = "first it would wait until fewer jobs of ada are under way: 2 are, and 2 may be"
    assert (planned.seconds, planned.sentences[0]) == (None, wait)


def test_a_higher_priority_goes_first_and_nobody_passes_who_stands_before(
    small: Twin, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = [submit(small, ada) for _ in range(2)]
    later, urgent = submit(small, ada), submit(small, ada, priority=10)
    small.run()
    assert backlog(small) == [urgent, later]
    with monkeypatch.context() as lost:
        lost.setattr("penstock.usecases.jobs.backlogs.wake", lambda *_: None)
        run_to_end(small, held[0])
    assert begun(small) == 1
    newest = submit(small, ada)
    assert backlog(small) == [urgent, later, newest], "there is room for one, and others stand before it"
    for each in (newest, later, urgent):
        prerequisites.judge(small.on, each)
    small.run()
    assert states(small, [urgent, later, newest]) == [State.ACQUIRING, State.WAITING, State.WAITING]


def test_a_waiting_job_that_is_cancelled_leaves_the_backlog(small: Twin, ada: User) -> None:
    made = [submit(small, ada) for _ in range(4)]
    cancel.cancel(small.on, ada, made[2])
    small.run()
    assert job_of(small, made[2]).end.outcome is Outcome.CANCELLED
    assert (begun(small), backlog(small)) == (2, made[3:])


def test_who_is_cancelled_before_it_can_go_on_leaves_its_room_to_the_next(small: Twin, ada: User) -> None:
    """QUEUE-1: what wakes it comes when it is over already."""
    made = [submit(small, ada) for _ in range(4)]
    small.run()
    cancel.cancel(small.on, ada, made[0])
    assert (job_of(small, made[0]).is_settled, begun(small)) == (True, 1)
    cancel.cancel(small.on, ada, made[2])
    small.run()
    assert states(small, made[2:]) == [State.SETTLED, State.ACQUIRING]


def test_who_only_waited_wakes_nobody_where_no_number_is_limited(
    twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = submit(twin, ada)
    waits = submit(twin, ada, **depends(first))
    monkeypatch.setattr(backlogs, "wake", lambda *_: pytest.fail("there is no backlog"))
    cancel.cancel(twin.on, ada, waits)
    assert job_of(twin, waits).is_settled


def test_a_job_that_waits_for_others_counts_when_it_could_go_on(small: Twin, ada: User) -> None:
    made = [submit(small, ada) for _ in range(2)]
    after = submit(small, ada, **depends(made[0]))
    small.run()
    assert (begun(small), backlog(small)) == (2, [])
    third = submit(small, ada)
    small.run()
    run_to_end(small, made[0])
    small.run()
    assert begun(small) == 2
    assert states(small, [after, third]) == [State.ACQUIRING, State.WAITING], "it is older"
    assert backlog(small) == [third]


def test_a_job_whose_input_arrives_joins_the_backlog(small: Twin, ada: User) -> None:
    waits = jobs_submit.submit(small.on, ada, SubmitJob(SCRIPT, inputs=["a"]), None)
    made = [submit(small, ada) for _ in range(2)]
    small.run()
    sent = inputs.begin(small.on, job_of(small, waits), NewInput("a", size=1, sha256="0" * 64))
    assert not sent.there
    row = inputs.list_inputs(small.on, job_of(small, waits))[0]
    small.objects.store(f"artifacts/{row.artifact}", b"x")
    small.objects.content = lambda name: row.content  # type: ignore[method-assign]
    inputs.commit(small.on, job_of(small, waits), "a")
    assert backlog(small) == [waits]
    run_to_end(small, made[0])
    small.run()
    assert job_of(small, waits).state is State.ACQUIRING


def test_two_at_once_do_not_both_take_the_last_place(small: Twin, ada: User) -> None:
    submit(small, ada)
    before_the_next_write_of(small, Tally, lambda: submit(small, ada))
    last = submit(small, ada)
    small.run()
    assert (begun(small), job_of(small, last).state) == (2, State.WAITING)


def test_an_end_between_a_submits_look_and_its_write_is_not_missed(small: Twin, ada: User) -> None:
    """QUEUE-1: nobody was in the backlog when the other ended, and nobody ends after that."""
    made = [submit(small, ada) for _ in range(2)]
    small.run()
    for each in made:
        hello(small, each)

    def ends() -> None:
        run_to_end(small, made[0])
        small.run()

    before_the_next_write_of(small, Backlogged, ends)
    last = submit(small, ada)
    small.run()
    assert (begun(small), job_of(small, last).state) == (2, State.ACQUIRING)


def test_the_sweep_makes_up_for_a_lost_message(small: Twin, ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    made = [submit(small, ada) for _ in range(3)]
    small.run()
    with monkeypatch.context() as lost:
        lost.setattr("penstock.usecases.jobs.backlogs.wake", lambda *_: None)
        run_to_end(small, made[0])
        small.run()
    assert job_of(small, made[2]).state is State.WAITING
    sweep(small, 601)
    assert job_of(small, made[2]).state is State.ACQUIRING


@pytest.mark.parametrize("most", [0, 40])
def test_all_go_on_when_the_limit_is_raised_or_gone(small: Twin, ada: User, most: int) -> None:
    """Each that goes on wakes more: no more than some are woken by one call."""
    made = [submit(small, ada) for _ in range(35)]
    small.run()
    set_limit(small, most)
    run_to_end(small, made[0])
    small.run()
    assert backlog(small) == []
    assert begun(small) == (34 if most else 1)
    for each in made[1:]:
        cancel.cancel(small.on, ada, each)
    small.run()
    assert begun(small) == 0
    assert all(row.is_settled for row in small.store.rows.values() if isinstance(row, Job))


def test_a_lower_limit_ends_nothing_and_lets_nobody_on(small: Twin, ada: User) -> None:
    made = [submit(small, ada) for _ in range(3)]
    set_limit(small, 1)
    run_to_end(small, made[0])
    small.run()
    assert (begun(small), backlog(small)) == (1, made[2:])
    prerequisites.judge(small.on, made[2])
    assert job_of(small, made[2]).state is State.WAITING
    run_to_end(small, made[1])
    small.run()
    assert job_of(small, made[2]).state is State.ACQUIRING


def test_the_services_own_jobs_wait_for_nobody(small: Twin, ada: User) -> None:
    for _ in range(2):
        submit(small, ada)
    canary = jobs_submit.submit(small.on, ada, SubmitJob(SCRIPT), None, canary="target/default")
    assert (begun(small), backlog(small)) == (2, [])
    small.run()
    assert job_of(small, canary).state is State.ACQUIRING


def test_the_end_of_a_job_that_took_no_room_wakes_nobody(
    small: Twin, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    canary = jobs_submit.submit(small.on, ada, SubmitJob(SCRIPT), None, canary="target/default")
    monkeypatch.setattr(backlogs, "wake", lambda *_: pytest.fail("it makes way for nobody"))
    run_to_end(small, canary)
    assert job_of(small, canary).is_settled


def test_the_same_request_again_is_the_job_that_waits(small: Twin, ada: User) -> None:
    for _ in range(2):
        submit(small, ada)
    made = {jobs_submit.submit(small.on, ada, SubmitJob(SCRIPT), "k") for _ in range(3)}
    assert (len(made), backlog(small)) == (1, list(made))


def test_one_call_wakes_some_and_not_all(small: Twin, ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    made = [submit(small, ada) for _ in range(30)]
    small.run()
    set_limit(small, 40)
    asked: list[object] = []
    with monkeypatch.context() as lost:
        lost.setattr(type(small.on.queues), "schedule", lambda _, message: asked.append(message))
        backlogs.wake(small.on, "ada")
    assert asked == [{"do": "judge", "job": job} for job in made[2 : 2 + backlogs.AT_ONCE]]
    set_limit(small, 4)
    asked.clear()
    with monkeypatch.context() as lost:
        lost.setattr(type(small.on.queues), "schedule", lambda _, message: asked.append(message))
        backlogs.wake(small.on, "ada")
    assert len(asked) == 2, "there is room for two"


def test_the_next_is_woken_before_the_job_is_due_no_more(
    small: Twin, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """QUEUE-1: who dies in between is followed by another, as long as the job is due for its secrets."""
    order: list[str] = []
    monkeypatch.setattr(backlogs, "wake", lambda *_: order.append("woken"))
    monkeypatch.setattr(settle, "forget_secrets", lambda *_: order.append("secrets"))
    job = submit(small, ada)
    run_to_end(small, job)
    assert order[:2] == ["woken", "secrets"]


def test_a_job_that_waits_for_another_is_told_that_and_not_how_many_are_under_way(small: Twin, ada: User) -> None:
    made = [submit(small, ada) for _ in range(2)]
    after = submit(small, ada, **depends(made[0]))
    small.run()
    assert "the job waits for 1 of the 1 that it depends on" in jobs.explain(small.on, job_of(small, after)).summary


@pytest.mark.parametrize("most", [0, 3])
def test_a_job_that_is_about_to_go_on_is_not_told_to_wait(small: Twin, ada: User, most: int) -> None:
    made = [submit(small, ada) for _ in range(3)]
    small.run()
    set_limit(small, most)
    assert "is about to take its next step" in jobs.explain(small.on, job_of(small, made[2])).summary
    assert not jobs_submit.plan(small.on, ada, SubmitJob(SCRIPT)).depends


def test_a_job_that_joined_nothing_yet_is_told_who_stands_before_it(
    small: Twin, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = submit(small, ada)
    after = submit(small, ada, **depends(first))
    others = [submit(small, BEA) for _ in range(2)]
    small.run()
    with monkeypatch.context() as lost:
        lost.setattr(prerequisites, "judge", lambda *_: None)
        run_to_end(small, first)
        made = [submit(small, ada) for _ in range(3)]
        small.run()
    assert (begun(small), backlog(small)) == (2, made[2:])
    assert "none of its other jobs stands before it" in jobs.explain(small.on, job_of(small, after)).summary
    assert states(small, others) == [State.ACQUIRING] * 2


def test_where_nothing_is_limited_no_backlog_is_looked_at(
    twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job costs no more than before."""
    for name in ("wake", "forget", "first"):
        monkeypatch.setattr(backlogs, name, lambda *_: pytest.fail("it was looked at"))
    first = submit(twin, ada)
    monkeypatch.setattr(backlogs, "admit", lambda *_: pytest.fail("it was looked at"))
    second = submit(twin, ada)
    monkeypatch.undo()
    for name in ("wake", "forget", "first"):
        monkeypatch.setattr(backlogs, name, lambda *_: pytest.fail("it was looked at"))
    after = submit(twin, ada, **depends(first))
    twin.run()
    run_to_end(twin, first)
    twin.run()
    assert job_of(twin, after).state is State.ACQUIRING
    run_to_end(twin, second)


def test_where_there_is_no_room_nobody_is_looked_for(small: Twin, ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(3):
        submit(small, ada)
    monkeypatch.setattr(backlogs, "first", lambda *_: pytest.fail("nobody may go on"))
    backlogs.wake(small.on, "ada")
