"""Fair share over the real use cases: who has used much waits behind who has used little. [QUEUE-2]"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from penstock.domain.commands import SubmitJob
from penstock.domain.jobs.jobs import Job
from penstock.domain.pools import grants
from penstock.domain.pools.pools import Claim
from penstock.domain.pools.shares import UNKNOWN_SECONDS, WEIGHS, Use, use_key
from penstock.domain.users.users import User
from penstock.kernel.errors import Refused, Unreached
from penstock.kernel.rows import Replace
from penstock.system import System
from penstock.testing.site import site_toml
from penstock.testing.twin import START, Twin
from penstock.usecases.jobs import cancel, jobs, settle
from penstock.usecases.jobs import submit as jobs_submit
from penstock.usecases.pools import forecast, shares
from penstock.usecases.site import apply
from tests.usecases.races import before_the_next_write_of
from tests.usecases.steps import SCRIPT, finish, hello, job_of, submit, told

BEA = User(name="bea", created=START, version=1)
POOL = "target/default"


def with_shares(twin: Twin, table: Mapping[str, Any] | None = None) -> Twin:
    """A site with one machine, which has shares, or no such table."""
    given = {} if table is None else {"shares": table}
    apply.apply(twin.on, "root", site_toml(targets={"default": {"limit": 1}}, **given), "site.toml")
    twin.run()
    return twin


@pytest.fixture
def shared(twin: Twin) -> Twin:
    return with_shares(twin, {"half_life": "1d"})


def queue(twin: Twin) -> list[str]:
    """The owners of the jobs that wait for the machine, in order."""
    return [job_of(twin, claim.job).owner for claim in forecast.first_waiting(twin.on, POOL)]


def use(twin: Twin, owner: str) -> Use | None:
    return twin.store.get(use_key(owner), Use)


def seconds(twin: Twin, owner: str) -> float:
    row = use(twin, owner)
    assert row
    return round(row.seconds)


def many(twin: Twin, user: User, count: int) -> list[str]:
    made = [submit(twin, user) for _ in range(count)]
    twin.run()
    return made


def test_who_submits_much_does_not_stand_before_who_submits_little(shared: Twin, ada: User) -> None:
    many(shared, ada, 4)  # the first has the machine
    many(shared, BEA, 2)
    assert queue(shared) == ["bea", "ada", "bea", "ada", "ada"]


def test_without_shares_the_oldest_is_first_and_nothing_is_written(twin: Twin, ada: User) -> None:
    with_shares(twin)
    mine = many(twin, ada, 3)
    many(twin, BEA, 2)
    assert queue(twin) == ["ada", "ada", "bea", "bea"]
    assert job_of(twin, mine[0]).times.turn is None
    assert not [row for row in twin.store.rows.values() if isinstance(row, Use)]


def test_a_weight_is_how_many_jobs_go_for_one_of_the_others(twin: Twin, ada: User) -> None:
    with_shares(twin, {"weights": {"ada": 3}})
    many(twin, ada, 6)
    many(twin, BEA, 2)
    assert queue(twin) == ["bea", "ada", "ada", "ada", "bea", "ada", "ada"]


def test_a_job_is_counted_as_expected_then_as_it_was(shared: Twin, ada: User) -> None:
    (first,) = many(shared, ada, 1)
    assert seconds(shared, "ada") == UNKNOWN_SECONDS
    hello(shared, first)
    shared.pass_time(3600)
    finish(shared, first)
    shared.run()
    assert seconds(shared, "ada") == 3600
    (second,) = many(shared, ada, 1)
    row = job_of(shared, second)
    assert row.usage.expected == 3600, "what holders of its target took lately"
    assert row.times.turn
    assert round((row.times.turn - row.times.submitted).total_seconds()) == pytest.approx(WEIGHS * 3600, abs=100)


def test_a_job_that_is_cancelled_in_its_queue_is_not_counted(shared: Twin, ada: User) -> None:
    _, waits = many(shared, ada, 2)
    assert seconds(shared, "ada") == 2 * UNKNOWN_SECONDS
    cancel.cancel(shared.on, ada, waits)
    shared.run()
    assert job_of(shared, waits).is_settled
    assert seconds(shared, "ada") == UNKNOWN_SECONDS


def test_every_attempt_of_a_job_stands_by_the_same_turn(shared: Twin, ada: User) -> None:
    many(shared, ada, 2)
    waits = [claim for claim in shared.store.rows.values() if isinstance(claim, Claim)]
    assert len(waits) == 1
    job = job_of(shared, waits[0].job)
    assert waits[0].turn
    later = replace(job, attempt=2)
    assert [claim.turn for claim in grants.claims(later, 0, shared.world.now())] == [waits[0].turn]


def test_a_repeated_submit_is_counted_once(shared: Twin, ada: User) -> None:
    ask = SubmitJob(SCRIPT)
    first = jobs_submit.submit(shared.on, ada, ask, "k")
    counted = use(shared, "ada")
    assert jobs_submit.submit(shared.on, ada, ask, "k") == first
    assert seconds(shared, "ada") == UNKNOWN_SECONDS
    assert use(shared, "ada") == counted, "its row is not written again"


def with_limit(twin: Twin, jobs: int) -> None:
    asked: dict[str, Any] = {"shares": {"half_life": "1d"}, "limits": {"jobs": jobs}}
    apply.apply(twin.on, "root", site_toml(targets={"default": {"limit": 1}}, **asked), "site.toml")


def test_a_submit_that_is_refused_costs_nothing_of_its_owners_share(shared: Twin, ada: User) -> None:
    with_limit(shared, jobs=1)
    many(shared, ada, 1)
    before = use(shared, "ada")
    for _ in range(20):
        with pytest.raises(Refused, match=r"limits\.jobs"):
            jobs_submit.submit(shared.on, ada, SubmitJob(SCRIPT), "k")
    assert use(shared, "ada") == before


def test_a_submit_that_is_refused_only_as_it_is_written_gives_its_turn_back(shared: Twin, ada: User) -> None:
    with_limit(shared, jobs=1)
    before_the_next_write_of(shared, Job, lambda: submit(shared, ada))
    with pytest.raises(Refused, match=r"limits\.jobs"):
        submit(shared, ada)
    assert seconds(shared, "ada") == UNKNOWN_SECONDS


def test_a_submit_that_another_with_its_key_was_before_gives_its_turn_back(shared: Twin, ada: User) -> None:
    ask, first = SubmitJob(SCRIPT), []
    before_the_next_write_of(shared, Job, lambda: first.append(jobs_submit.submit(shared.on, ada, ask, "k")))
    assert [jobs_submit.submit(shared.on, ada, ask, "k")] == first
    assert seconds(shared, "ada") == UNKNOWN_SECONDS


def test_a_canary_stands_by_its_age_however_often_it_comes(shared: Twin, ada: User) -> None:
    """What it finds out is to be found out at its time: behind all others it would seem to fail."""
    many(shared, ada, 3)
    canary = jobs_submit.submit(shared.on, BEA, SubmitJob(SCRIPT), None, canary=POOL)
    assert (job_of(shared, canary).times.turn, use(shared, "bea")) == (None, None)
    shared.run()
    assert queue(shared) == ["bea", "ada", "ada"]


def test_a_plan_says_where_the_job_would_stand_and_counts_nothing(shared: Twin, ada: User) -> None:
    many(shared, ada, 5)
    before = use(shared, "ada")
    ask = SubmitJob(SCRIPT)
    assert [wait.position for wait in jobs_submit.plan(shared.on, BEA, ask).waits] == [1]
    assert [wait.position for wait in jobs_submit.plan(shared.on, ada, ask).waits] == [5]
    assert (use(shared, "ada"), use(shared, "bea")) == (before, None)


def test_a_lost_race_is_run_again(shared: Twin, ada: User) -> None:
    before_the_next_write_of(shared, Use, lambda: submit(shared, ada))
    many(shared, ada, 1)
    assert seconds(shared, "ada") == 2 * UNKNOWN_SECONDS


def test_nobody_waits_for_a_row_that_others_write_all_the_time(
    shared: Twin, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    many(shared, ada, 1)
    commit, tried = shared.store.commit, []

    def busy(changes: Any) -> bool:
        if any(isinstance(change, Replace) and isinstance(change.row, Use) for change in changes):
            tried.append(changes)
            return False
        return commit(changes)

    monkeypatch.setattr(shared.store, "commit", busy)
    (second,) = many(shared, ada, 1)
    assert len(tried) == shares.TRIES
    turn = job_of(shared, second).times.turn
    assert turn
    assert turn > job_of(shared, second).times.submitted
    cancel.cancel(shared.on, ada, second)
    shared.run()
    assert job_of(shared, second).is_settled


def test_a_waiting_job_says_why_it_stands_where_it_does(shared: Twin, ada: User) -> None:
    _, waits = many(shared, ada, 2)
    said = "its turn is 17 h after it came, for what ada has used and asked for lately"
    summary = jobs.explain(shared.on, job_of(shared, waits)).summary
    assert summary.endswith(f"; position 1 in the queue; {said}")
    assert any(said in line for line in told(shared, waits))


def test_standings_are_shown_to_whom_they_concern(shared: Twin, ada: User, root: User) -> None:
    many(shared, ada, 3)
    many(shared, BEA, 1)
    _, every = shares.list_shares(shared.on, root)
    assert [(each.owner, each.entitled, round(each.used, 2)) for each in every] == [
        ("ada", 0.5, 0.75),
        ("bea", 0.5, 0.25),
    ]
    _, mine = shares.list_shares(shared.on, BEA)
    assert [each.owner for each in mine] == ["bea"]
    assert mine == every[1:]


def test_a_site_without_shares_has_no_standings(twin: Twin, ada: User, root: User) -> None:
    with_shares(twin, {})
    many(twin, ada, 1)
    with_shares(twin)
    assert shares.list_shares(twin.on, root) == (None, [])


def test_a_job_that_was_counted_ends_on_a_site_that_has_no_shares_any_more(shared: Twin, ada: User) -> None:
    (job,) = many(shared, ada, 1)
    before = use(shared, "ada")
    with_shares(shared)
    hello(shared, job)
    finish(shared, job)
    shared.run()
    assert job_of(shared, job).is_settled
    assert use(shared, "ada") == before


def test_a_job_from_before_the_site_had_shares_is_not_counted_when_it_ends(twin: Twin, ada: User) -> None:
    with_shares(twin)
    (job,) = many(twin, ada, 1)
    with_shares(twin, {})
    hello(twin, job)
    twin.pass_time(60)
    finish(twin, job)
    twin.run()
    assert use(twin, "ada") is None


def test_an_attempt_that_is_tried_again_is_not_counted_yet(shared: Twin, ada: User) -> None:
    (job,) = many(shared, ada, 1)
    hello(shared, job)
    shared.pass_time(3600)
    settle.settle(shared.on, job, 1, "Lost", "it is gone")
    shared.run()
    assert (job_of(shared, job).attempt, job_of(shared, job).is_settled) == (2, False)
    assert seconds(shared, "ada") == UNKNOWN_SECONDS


def test_a_use_that_cannot_be_written_holds_up_nothing_else(
    shared: Twin, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever else follows a job's end has happened before."""
    job, waits = many(shared, ada, 2)
    hello(shared, job)

    def correct_use(on: System, row: Job) -> None:
        raise Unreached(f"of {row.id}")

    monkeypatch.setattr(shares, "correct_use", correct_use)
    with pytest.raises(Unreached):
        finish(shared, job)
    assert any(line.startswith("settled: succeeded") for line in told(shared, job))
    shared.run()
    assert waits
