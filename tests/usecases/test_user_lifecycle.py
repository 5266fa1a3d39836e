"""Users are disabled, enabled, renamed and removed, in steps that go on after a crash. [SEC-2]"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest

from penstock.bootstrap_admin import make_operator
from penstock.domain.jobs.jobs import Job, Outcome, Result, State
from penstock.domain.pools.pools import Claim, LeaseState
from penstock.domain.users import lifecycle as rules
from penstock.domain.users.audit import Entry
from penstock.domain.users.users import Standing, Token, User, user_key
from penstock.kernel.errors import Refused
from penstock.kernel.rows import Change, Delete, Replace
from penstock.testing.twin import Twin
from penstock.usecases.artifacts import explain
from penstock.usecases.jobs import flow, jobs, listing
from penstock.usecases.jobs.listing import Wanted
from penstock.usecases.site import apply
from penstock.usecases.users import lifecycle, privileges, tokens, users
from penstock.usecases.users.tokens import Wish
from penstock.usecases.workers import agents
from tests.usecases.races import before_the_next_commit
from tests.usecases.steps import finish, hello, job_of, sweep
from tests.usecases.steps import submit as submitted


def refused(ask: object, *given: object, **named: object) -> tuple[int, str]:
    with pytest.raises(Refused) as found:
        ask(*given, **named)  # type: ignore[operator]
    return found.value.status, found.value.code


@pytest.fixture
def root(twin: Twin) -> User:
    return users.create(twin.on, "root", ["admin"])


@pytest.fixture
def eve(twin: Twin) -> User:
    return users.create(twin.on, "eve", ["target.lab"])


def secret(twin: Twin, name: str = "eve") -> str:
    twin.pass_time(1)
    return tokens.mint_first(twin.on, name, "never", "")[0]


def shown(twin: Twin, text: str) -> str:
    return users.authenticate(twin.on, f"Bearer {text}").name


def row(twin: Twin, name: str = "eve") -> User:
    found = twin.store.get(user_key(name), User)
    assert found
    return found


def disable(twin: Twin, root: User, *, ends_live: bool = False) -> User:
    found = lifecycle.disable(twin.on, root, "eve", ends_live=ends_live)
    twin.run()
    return found


def gone(twin: Twin, root: User) -> None:
    """Eve is disabled, and nothing of hers runs any more."""
    disable(twin, root, ends_live=True)
    for _ in range(4):
        sweep(twin)


def test_a_disabled_users_tokens_are_refused_at_once_and_again_good_when_enabled(
    twin: Twin, root: User, eve: User
) -> None:
    text = secret(twin)
    assert shown(twin, text) == "eve"
    disable(twin, root)
    assert refused(shown, twin, text) == (401, "user-disabled")
    assert lifecycle.enable(twin.on, "root", "eve").status is None
    assert shown(twin, text) == "eve"
    assert lifecycle.enable(twin.on, "root", "eve") == row(twin)


def test_who_waits_ends_and_who_runs_goes_on(twin: Twin, root: User, eve: User, ada: User) -> None:
    runs, waits = (submitted(twin, eve, resources=["bench"]) for _ in range(2))
    depends = submitted(twin, eve, inputs=["data"])
    other = submitted(twin, ada, resources=["licence"])
    twin.run()
    hello(twin, runs)
    found = disable(twin, root)
    assert found.withdrawal
    assert runs in found.withdrawal.live
    assert depends not in found.withdrawal.live
    for job in (waits, depends):
        assert job_of(twin, job).end.outcome is Outcome.CANCELLED
        assert job_of(twin, job).end.reason == "cancelled by root"
    assert not [claim for claim in twin.store.rows.values() if isinstance(claim, Claim) and claim.job == waits]
    assert not job_of(twin, other).is_settled
    finish(twin, runs)
    assert job_of(twin, runs).end.outcome is Outcome.SUCCEEDED


def test_who_runs_ends_too_if_asked(twin: Twin, root: User, eve: User) -> None:
    runs = submitted(twin, eve)
    twin.run()
    hello(twin, runs)
    disable(twin, root, ends_live=True)
    assert job_of(twin, runs).cancellation.cancelled_by == "root"


def test_a_job_whose_worker_boots_goes_on(twin: Twin, root: User, eve: User) -> None:
    boots = submitted(twin, eve)
    twin.run()
    assert job_of(twin, boots).state is State.ACQUIRING
    disable(twin, root)
    assert not job_of(twin, boots).cancellation.cancelled_by


def test_a_job_that_was_left_running_does_not_begin_anew(twin: Twin, root: User, eve: User) -> None:
    """SEC-2: if its worker is lost, the next attempt is cancelled within minutes."""
    runs = submitted(twin, eve, retries=5)
    twin.run()
    hello(twin, runs)
    disable(twin, root)
    for seconds in (600, 301, 301, 301, 301):
        sweep(twin, seconds)
    job = job_of(twin, runs)
    assert (job.is_settled, job.end.outcome, job.attempt) == (True, Outcome.CANCELLED, 2)


def test_a_job_that_was_being_submitted_is_found_later(twin: Twin, root: User, eve: User) -> None:
    """SEC-2: its request was let in before, and its rows are written after all jobs were looked at."""
    disable(twin, root)
    submitted(twin, eve, resources=["bench"])
    blocked = submitted(twin, eve, resources=["bench"])
    twin.run()
    assert not job_of(twin, blocked).is_settled
    sweep(twin, 121)
    assert job_of(twin, blocked).end.outcome is Outcome.CANCELLED


def test_submissions_for_a_disabled_owner_are_refused(twin: Twin, root: User, eve: User) -> None:
    """SEC-2: also by those who submit for a repository."""
    gate = users.create(twin.on, "gate", ["as"])
    users.create(twin.on, "oxide:hubris", [])
    disable(twin, root)
    lifecycle.disable(twin.on, root, "oxide:hubris", ends_live=False)
    assert refused(submitted, twin, row(twin)) == (403, "user-disabled")
    assert refused(submitted, twin, gate, owner="oxide:hubris") == (422, "owner-disabled")


def test_what_needs_a_privilege_is_not_granted_to_a_disabled_user(twin: Twin, root: User, eve: User) -> None:
    """SEC-2: the grant itself looks, whatever was submitted meanwhile."""
    disable(twin, root)
    late = submitted(twin, eve, target="lab")
    twin.run()
    assert job_of(twin, late).end.outcome is Outcome.FAILED
    assert "eve was disabled by root" in str(job_of(twin, late).end.reason)


@pytest.mark.parametrize("crash_at", range(9))
def test_a_crash_costs_a_sweep(
    twin: Twin, root: User, eve: User, monkeypatch: pytest.MonkeyPatch, crash_at: int
) -> None:
    """SEC-2: wherever it stops, the sweep goes on, until nothing of the user waits."""
    waiting = [submitted(twin, eve, resources=["bench"]) for _ in range(3)]
    twin.run()
    commit, left = twin.store.commit, iter(range(crash_at))

    def crash(changes: list[Change]) -> bool:
        if next(left, None) is None:
            raise ConnectionError("the function dies here")
        return commit(changes)

    monkeypatch.setattr(twin.store, "commit", crash)
    with suppress(ConnectionError):
        lifecycle.disable(twin.on, root, "eve", ends_live=True)
    monkeypatch.setattr(twin.store, "commit", commit)
    if row(twin).status is None:
        assert crash_at == 0
        return
    for seconds in (61, 61, 61, 301):
        sweep(twin, seconds)
    assert all(job_of(twin, job).is_settled for job in waiting)
    assert rules.why_not_removed(row(twin)) is None


def test_many_jobs_are_ended_in_steps(twin: Twin, root: User, eve: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """One step ends a bounded number of jobs, and the sweep takes the next."""
    monkeypatch.setattr(lifecycle, "ENDED", 2)
    monkeypatch.setattr(lifecycle, "PAGE", 3)
    waiting = [submitted(twin, eve, resources=["bench"]) for _ in range(7)]
    twin.run()
    ended = []
    lifecycle.disable(twin.on, root, "eve", ends_live=True)
    for _ in range(8):
        twin.run()
        ended.append(sum(job_of(twin, job).cancellation.cancelled_by is not None for job in waiting))
        sweep(twin)
    assert ended[0] == 2
    assert all(after - before <= 2 for before, after in pairwise(ended))
    assert all(job_of(twin, job).is_settled for job in waiting)


def test_settled_jobs_are_looked_through_in_pages(
    twin: Twin, root: User, eve: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that succeeded: the others are listed apart."""
    monkeypatch.setattr(lifecycle, "PAGE", 2)
    monkeypatch.setattr(lifecycle, "PAGES", 2)
    old = submitted(twin, eve, resources=["bench"])
    behind = submitted(twin, eve, resources=["bench"])
    for _ in range(5):
        done = submitted(twin, eve)
        hello(twin, done)
        finish(twin, done)
        twin.run()
    disable(twin, root)
    assert not job_of(twin, behind).is_settled
    sweep(twin)
    assert job_of(twin, behind).is_settled
    assert old


def test_more_jobs_than_are_remembered_are_found_again(
    twin: Twin, root: User, eve: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules, "LIVE", 1)
    jobs = [submitted(twin, eve) for _ in range(2)]
    twin.run()
    running = [hello(twin, job) for job in jobs]
    disable(twin, root)
    for job, agent in zip(jobs, running, strict=True):
        for _ in range(12):
            for each in running:
                with suppress(Refused):
                    agents.heartbeat(twin.on, each)
            sweep(twin)
        assert refused(lifecycle.remove, twin.on, "root", "eve") == (409, "user-in-use")
        agents.report_finished(twin.on, agent, Result.SUCCEEDED, "the script ended", 0)
        twin.run()
        assert job_of(twin, job).is_settled
    for _ in range(16):
        sweep(twin)
    assert lifecycle.remove(twin.on, "root", "eve").is_a(Standing.REMOVED)


def test_nobody_disables_themselves(twin: Twin, root: User) -> None:
    assert refused(lifecycle.disable, twin.on, root, "root", ends_live=True) == (409, "own-user")
    assert refused(lifecycle.disable, twin.on, root, "nobody", ends_live=True) == (404, "user-not-found")


def test_a_renamed_user_keeps_tokens_jobs_and_files(twin: Twin, root: User, eve: User) -> None:
    text, job = secret(twin), submitted(twin, eve)
    twin.run()
    renamed = lifecycle.rename(twin.on, "root", "eve", "eva")
    assert (renamed.name, renamed.former, renamed.privileges) == ("eva", ("eve",), ("target.lab",))
    assert shown(twin, text) == "eva"
    bearer = users.authenticate(twin.on, f"Bearer {text}")
    assert [each.user for each in tokens.list_tokens(twin.on, bearer, "eva", 10, "")] == ["eva"]
    assert tokens.list_tokens(twin.on, bearer, "eve", 10, "")
    assert jobs.find(twin.on, bearer, job).owner == "eve"
    twin.pass_time(1)
    new = submitted(twin, bearer)
    listed = listing.list_jobs(twin.on, bearer, None, Wanted(), 10, "")[0]
    assert [(each.id, each.owner) for each in listed] == [(new, "eva"), (job, "eve")]
    assert job_of(twin, submitted(twin, bearer, owner="eve")).owner == "eva"
    assert explain.list_artifacts(twin.on, bearer, "eve", 10, "") == ([], None)
    assert users.find(twin.on, "eve") == row(twin, "eva")
    users.change_privilege(twin.on, "eve", "x", grant=True)
    assert "x" in row(twin, "eva").privileges


def test_tokens_that_were_never_used_are_moved_at_once(twin: Twin, root: User, eve: User) -> None:
    secret(twin)
    lifecycle.rename(twin.on, "root", "eve", "eva")
    assert [token.user for token in twin.store.rows.values() if isinstance(token, Token)] == ["eva"]


def test_a_token_that_is_used_moves_itself(twin: Twin, root: User, eve: User) -> None:
    bearer = users.authenticate(twin.on, f"Bearer {secret(twin)}")
    lifecycle.rename(twin.on, "root", "eve", "eva")
    late, made = tokens.mint(twin.on, bearer, "eve", Wish())
    assert made.user == "eve"
    shown(twin, late)
    found = twin.store.get(made.key, Token)
    assert found
    assert found.user == "eva"


def test_a_job_of_a_former_name_is_granted_by_the_privileges_of_the_user(twin: Twin, root: User, eve: User) -> None:
    """SEC-2: those that the user has now."""
    job = submitted(twin, eve, target="lab")
    lifecycle.rename(twin.on, "root", "eve", "eva")
    twin.run()
    hello(twin, job)
    later = submitted(twin, row(twin, "eva"), target="lab")
    assert privileges.revoke(twin.on, root, "eva", "target.lab", at_once=True)[1].holding
    assert job_of(twin, job).cancellation.cancelled_by
    assert later


def test_a_former_name_is_given_to_nobody(twin: Twin, root: User, eve: User) -> None:
    """SEC-2: neither created, nor taken by renaming; and it leads to the newest name."""
    text = secret(twin)
    lifecycle.rename(twin.on, "root", "eve", "eva")
    lifecycle.rename(twin.on, "root", "eva", "evi")
    assert refused(users.create, twin.on, "eve", []) == (409, "user-exists")
    users.create(twin.on, "bob", [])
    assert refused(lifecycle.rename, twin.on, "root", "bob", "eva") == (409, "user-exists")
    assert {users.find(twin.on, name).name for name in ("eve", "eva", "evi")} == {"evi"}
    assert shown(twin, text) == "evi"
    assert lifecycle.rename(twin.on, "root", "eva", "evi") == row(twin, "evi")


def test_a_token_made_while_its_user_is_renamed_is_moved_later(twin: Twin, root: User, eve: User) -> None:
    text = secret(twin)
    bearer = users.authenticate(twin.on, f"Bearer {text}")
    before_the_next_commit(twin, lambda: lifecycle.rename(twin.on, "root", "eve", "eva"))
    late, _ = tokens.mint(twin.on, bearer, "eve", Wish())
    assert shown(twin, late) == "eva"
    for _ in range(3):
        sweep(twin)
    assert {each.user for each in twin.store.rows.values() if isinstance(each, Token)} == {"eva"}
    assert row(twin).due is None


def test_who_may_not_be_renamed(twin: Twin, root: User, eve: User, monkeypatch: pytest.MonkeyPatch) -> None:
    users.create(twin.on, "oxide:hubris", [])
    assert refused(lifecycle.rename, twin.on, "root", "oxide:hubris", "hubris") == (422, "repository")
    assert refused(lifecycle.rename, twin.on, "root", "eve", "oxide:eve") == (422, "repository")
    assert refused(lifecycle.rename, twin.on, "root", "eve", "Eve!") == (400, "bad-request")
    monkeypatch.setattr(rules, "FORMER_NAMES", 1)
    lifecycle.rename(twin.on, "root", "eve", "eva")
    assert refused(lifecycle.rename, twin.on, "root", "eva", "evi") == (409, "too-many-names")
    disable(twin, root)
    assert refused(lifecycle.rename, twin.on, "root", "eva", "evi") == (409, "user-disabled")


def test_a_user_is_removed_when_nothing_of_theirs_runs(twin: Twin, root: User, eve: User) -> None:
    text, job = secret(twin), submitted(twin, eve)
    twin.run()
    agent = hello(twin, job)
    assert refused(lifecycle.remove, twin.on, "root", "eve") == (409, "user-in-use")
    disable(twin, root)
    assert refused(lifecycle.remove, twin.on, "root", "eve") == (409, "user-in-use")
    for _ in range(3):
        agents.heartbeat(twin.on, agent)
        sweep(twin)
    with pytest.raises(Refused, match=f"jobs of eve still run: {job}"):
        lifecycle.remove(twin.on, "root", "eve")
    finish(twin, job)
    removed = lifecycle.remove(twin.on, "root", "eve")
    assert removed.is_a(Standing.REMOVED)
    assert any("published" in line for line in lifecycle.what_is_left(twin.on, removed))
    assert not [each for each in twin.store.rows.values() if isinstance(each, Token)]
    assert refused(shown, twin, text)[0] == 401
    assert twin.store.get(job_of(twin, job).key, Job)


def test_a_removed_name_is_given_to_nobody(twin: Twin, root: User, eve: User) -> None:
    """SEC-2: nobody comes into what it owned, or was granted."""
    text = secret(twin)
    lifecycle.rename(twin.on, "root", "eve", "eva")
    lifecycle.disable(twin.on, root, "eva", ends_live=True)
    for _ in range(4):
        sweep(twin)
    lifecycle.remove(twin.on, "root", "eva")
    for name in ("eve", "eva"):
        assert refused(users.create, twin.on, name, []) == (409, "user-exists")
        assert refused(users.find, twin.on, name) == (404, "user-not-found")
    assert refused(shown, twin, text)[0] == 401
    assert refused(lifecycle.enable, twin.on, "root", "eva") == (404, "user-not-found")
    assert "eva" not in [each.name for each in twin.store.listed("users", User)]


def test_the_tokens_of_a_removed_user_are_deleted_by_the_sweep(
    twin: Twin, root: User, eve: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifecycle, "PAGE", 1)
    for _ in range(3):
        secret(twin)
    gone(twin, root)
    lifecycle.remove(twin.on, "root", "eve")
    assert len([each for each in twin.store.rows.values() if isinstance(each, Token)]) == 2
    for _ in range(5):
        sweep(twin)
    assert not [each for each in twin.store.rows.values() if isinstance(each, Token)]
    assert row(twin).due is None


def test_tokens_that_a_removed_user_gave_to_others_are_refused(twin: Twin, root: User) -> None:
    """SEC-2: they come from a token that is gone."""
    users.create(twin.on, "eve", ["admin"])
    users.create(twin.on, "bob", [])
    bearer = users.authenticate(twin.on, f"Bearer {secret(twin)}")
    given, _ = tokens.mint(twin.on, bearer, "bob", Wish())
    assert shown(twin, given) == "bob"
    gone(twin, root)
    lifecycle.remove(twin.on, "root", "eve")
    assert refused(shown, twin, given) == (401, "token-revoked")


def granted_meanwhile(twin: Twin) -> None:
    """Another operator writes the user's row in between."""
    before_the_next_commit(twin, lambda: users.change_privilege(twin.on, "eve", "meanwhile", grant=True))


def test_what_another_operator_grants_meanwhile_is_not_lost(twin: Twin, root: User, eve: User) -> None:
    granted_meanwhile(twin)
    disable(twin, root)
    assert "meanwhile" in row(twin).privileges
    users.change_privilege(twin.on, "eve", "meanwhile", grant=False)
    granted_meanwhile(twin)
    lifecycle.enable(twin.on, "root", "eve")
    assert "meanwhile" in row(twin).privileges
    users.change_privilege(twin.on, "eve", "meanwhile", grant=False)
    granted_meanwhile(twin)
    assert "meanwhile" in lifecycle.rename(twin.on, "root", "eve", "eva").privileges


def test_a_user_who_is_enabled_meanwhile_stays_enabled(twin: Twin, root: User, eve: User) -> None:
    disable(twin, root)
    twin.pass_time(301)
    before_the_next_commit(twin, lambda: lifecycle.enable(twin.on, "root", "eve"))
    lifecycle.advance(twin.on, user_key("eve"))
    assert row(twin).status is None


def test_a_user_who_is_enabled_while_they_are_removed_is_not(twin: Twin, root: User, eve: User) -> None:
    gone(twin, root)
    commit, count = twin.store.commit, iter(range(2))

    def racing(changes: list[Change]) -> bool:
        if next(count, None) == 1:  # the second commit: the first only looks again for jobs
            lifecycle.enable(twin.on, "root", "eve")
        return commit(changes)

    twin.store.commit = racing  # type: ignore[method-assign, assignment]
    assert refused(lifecycle.remove, twin.on, "root", "eve") == (409, "user-in-use")
    assert row(twin).status is None


def test_a_name_that_is_taken_meanwhile_is_not_given(twin: Twin, root: User, eve: User) -> None:
    """SEC-2."""
    before_the_next_commit(twin, lambda: users.create(twin.on, "eva", []))
    assert refused(lifecycle.rename, twin.on, "root", "eve", "eva") == (409, "user-exists")
    assert row(twin).status is None


def test_a_token_that_is_revoked_while_it_is_moved_stays_revoked(twin: Twin, root: User, eve: User) -> None:
    """SEC-2."""
    bearer = users.authenticate(twin.on, f"Bearer {secret(twin)}")
    lifecycle.rename(twin.on, "root", "eve", "eva")
    late, made = tokens.mint(twin.on, bearer, "eve", Wish())
    twin.pass_time(121)
    before_the_next_commit(twin, lambda: tokens.revoke(twin.on, bearer, made.id))
    lifecycle.advance(twin.on, user_key("eve"))
    lifecycle.advance(twin.on, user_key("eve"))
    assert refused(shown, twin, late) == (401, "token-revoked")


def test_a_former_name_keeps_what_was_written_of_it_meanwhile(twin: Twin, root: User, eve: User) -> None:
    lifecycle.rename(twin.on, "root", "eve", "eva")
    former = row(twin)
    before_the_next_commit(twin, lambda: twin.store.commit([Replace(former, replace(former, due=None))]))
    lifecycle.rename(twin.on, "root", "eva", "evi")
    assert row(twin).due is None
    assert row(twin).status == replace(former.status, to="evi")


def test_a_step_does_not_undo_that_a_user_was_renamed_again(twin: Twin, root: User, eve: User) -> None:
    lifecycle.rename(twin.on, "root", "eve", "eva")
    twin.pass_time(121)
    before_the_next_commit(twin, lambda: lifecycle.rename(twin.on, "root", "eva", "evi"))
    lifecycle.advance(twin.on, user_key("eve"))
    found = row(twin).status
    assert found
    assert found.to == "evi"


def test_tokens_are_looked_for_again_until_no_request_is_under_way(
    twin: Twin, root: User, eve: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    lifecycle.rename(twin.on, "root", "eve", "eva")
    found = row(twin).status
    assert found
    until = found.at + rules.IN_FLIGHT
    assert row(twin).due == until
    index = row(twin).indexed
    assert index
    assert index.at > found.at
    monkeypatch.setattr(twin.world, "now", lambda: until)
    lifecycle.advance(twin.on, user_key("eve"))
    assert row(twin).due is None


def test_a_job_between_two_steps_ends(twin: Twin, root: User, eve: User, by_flow: None) -> None:
    """It has its bench, and has not asked for its worker yet."""
    job = submitted(twin, eve, resources=["bench"])
    while not any(lease.state is LeaseState.READY for lease in flow.leases_of(twin.on, job_of(twin, job))):
        assert twin.deliver()
    assert [lease.order for lease in flow.leases_of(twin.on, job_of(twin, job))] == [1]
    disable(twin, root)
    assert job_of(twin, job).cancellation.cancelled_by == "root"


def test_what_happens_to_a_job_that_ran_long_before(twin: Twin, root: User, eve: User) -> None:
    """One that waits for hours ends; one that lost a machine before the user was disabled goes on."""
    runs = submitted(twin, eve, retries=5, resources=["bench"])
    twin.run()
    hello(twin, runs)
    waits = submitted(twin, eve, resources=["bench"])
    for _ in range(14):
        sweep(twin)
    assert job_of(twin, runs).attempt == 2
    hello(twin, runs)
    disable(twin, root)
    assert job_of(twin, waits).end.outcome is Outcome.CANCELLED
    job = job_of(twin, runs)
    assert not job.cancellation.cancelled_by
    ended = job.history.attempts[-1].ended
    assert ended
    assert lifecycle._may_go_on(twin.on, job, ended)
    assert not lifecycle._may_go_on(twin.on, job, ended - timedelta(seconds=1))


def test_a_job_that_has_a_part_of_what_it_needs_ends(twin: Twin, root: User, eve: User) -> None:
    """It has its bench, and waits for a worker: or for its bench, with no worker asked for yet."""
    apply.pause(twin.on, "target/linux", paused=True)
    half = submitted(twin, eve, resources=["bench"])
    twin.run()
    disable(twin, root)
    assert job_of(twin, half).cancellation.cancelled_by == "root"


def test_a_job_that_is_forgotten_is_no_longer_watched(twin: Twin, root: User, eve: User) -> None:
    job = submitted(twin, eve)
    twin.run()
    agent = hello(twin, job)
    disable(twin, root)
    for _ in range(3):
        agents.heartbeat(twin.on, agent)
        sweep(twin)
    twin.store.commit([Delete(job_of(twin, job))])
    twin.pass_time(301)
    lifecycle.advance(twin.on, user_key("eve"))
    assert rules.why_not_removed(row(twin)) is None
    before = row(twin)
    lifecycle.advance(twin.on, user_key("eve"))
    assert row(twin) == before


def test_disabling_says_what_becomes_of_jobs_that_run(twin: Twin, root: User, eve: User) -> None:
    for ends in (True, False):
        disable(twin, root, ends_live=ends)
        twin.pass_time(1)
    texts = [entry.detail for entry in twin.store.listed("audit", Entry) if entry.did == "disable user"]
    assert texts == ["running jobs end", "running jobs go on"]


def test_a_step_that_is_not_due_does_nothing(twin: Twin, root: User, eve: User) -> None:
    disable(twin, root)
    before = row(twin)
    lifecycle.advance(twin.on, user_key("eve"))
    lifecycle.advance(twin.on, user_key("root"))
    lifecycle.advance(twin.on, user_key("nobody"))
    assert row(twin) == before


def test_who_may_write_the_table_makes_an_operator_again(twin: Twin, root: User) -> None:
    """Whoever disabled the first operator, or took its privilege, cannot keep the site."""
    first = make_operator(twin.on, "admin", None)
    assert shown(twin, first) == "admin"
    lifecycle.disable(twin.on, root, "admin", ends_live=True)
    users.change_privilege(twin.on, "admin", "admin", grant=False)
    twin.pass_time(1)
    again = make_operator(twin.on, "admin", "never")
    assert users.authenticate(twin.on, f"Bearer {again}").is_admin
    assert refused(make_operator, twin.on, "Admin!", None) == (400, "bad-request")
