"""What becomes of jobs when a privilege is taken from their owner. [SEC-2]"""

from __future__ import annotations

import pytest

from penstock import listings
from penstock.domain.jobs.jobs import Outcome, State
from penstock.domain.pools.pools import Claim, SlotState
from penstock.domain.units.units import UnitKind
from penstock.domain.users.users import ADMIN, User, user_key
from penstock.kernel.errors import Refused
from penstock.kernel.rows import Create
from penstock.testing.twin import Twin
from penstock.usecases.jobs import cancel, flow
from penstock.usecases.pools import serving
from penstock.usecases.site import apply
from penstock.usecases.units import maintenance
from penstock.usecases.users import privileges, users
from tests.rows import changed
from tests.usecases.exact import all_units, commits, unit_of
from tests.usecases.locked import LOCKED
from tests.usecases.races import before_the_next_commit
from tests.usecases.steps import finish, hello, job_of, slots, submit, sweep, told


@pytest.fixture
def eve(twin: Twin, root: User) -> User:
    """A user with privileges, at a site that wants them."""
    apply.apply(twin.on, "root", LOCKED, "site.toml")
    twin.run()
    return users.create(twin.on, "eve", ["resource.bench", "target.alias", "target.lab"], "root")


def revoke(
    twin: Twin, root: User, privilege: str = "resource.bench", *, at_once: bool = False
) -> privileges.Revocation:
    found = privileges.revoke(twin.on, root, "eve", privilege, at_once=at_once)[1]
    twin.run()
    return found


def waiting(twin: Twin) -> list[Claim]:
    return [row for row in twin.store.rows.values() if isinstance(row, Claim)]


def test_who_waits_fails_at_once_and_who_holds_keeps_it(twin: Twin, eve: User, root: User) -> None:
    holds, waits, other = (submit(twin, eve, resources=[kind]) for kind in ("bench", "bench", "licence"))
    twin.run()
    found = revoke(twin, root)
    assert (found.stopped, found.holding) == ([waits], [holds])
    refused = job_of(twin, waits)
    assert (refused.state, refused.end.outcome) == (State.SETTLED, Outcome.FAILED)
    said = f"eve may not have this any more: root revoked 'resource.bench' at {refused.times.settled:%Y-%m-%d %H:%M}"
    assert str(refused.end.reason).startswith(said)
    assert any(line.startswith(said) for line in told(twin, waits))
    assert not [claim for claim in waiting(twin) if claim.job == waits]
    for job in (holds, other):
        hello(twin, job)
        finish(twin, job)
        assert job_of(twin, job).end.outcome is Outcome.SUCCEEDED
    assert slots(twin, "resource/bench", SlotState.FREE) == ["bench-1"]


def test_who_holds_is_cancelled_with_now(twin: Twin, eve: User, root: User) -> None:
    holds = submit(twin, eve, resources=["bench"])
    twin.run()
    hello(twin, holds)
    assert revoke(twin, root, at_once=True).holding == [holds]
    assert job_of(twin, holds).cancellation.cancelled_by == "root"


def test_who_holds_what_is_taken_still_gets_what_it_may_have(twin: Twin, eve: User, root: User) -> None:
    """It has its bench, and waits for a worker, which anybody may have."""
    apply.pause(twin.on, "target/linux", paused=True)
    job = submit(twin, eve, resources=["bench"])
    twin.run()
    assert revoke(twin, root).holding == [job]
    apply.pause(twin.on, "target/linux", paused=False)
    twin.run()
    hello(twin, job)
    finish(twin, job)
    assert job_of(twin, job).end.outcome is Outcome.SUCCEEDED


def test_who_has_settled_or_is_cancelled_already_holds_nothing(twin: Twin, eve: User, root: User) -> None:
    """An operator still looks at the bench of the first; the second waits for it, and is about to hear of its end."""
    settled, waits = (submit(twin, eve, resources=["bench"]) for _ in range(2))
    twin.run()
    hello(twin, settled)
    bench = unit_of(twin, settled, 1)
    maintenance.hold(twin.on, root, bench.is_a, bench.id, "looking", 3600)
    finish(twin, settled)
    cancel.cancel(twin.on, eve, waits)
    assert (job_of(twin, settled).state, job_of(twin, waits).state) == (State.SETTLED, State.ACQUIRING)
    assert revoke(twin, root) == privileges.Revocation([], [])


def test_what_an_operator_holds_idle_is_of_no_job(twin: Twin, eve: User, root: User) -> None:
    eve = users.change_privilege(twin.on, "eve", "resource.db", grant=True)
    job = submit(twin, eve, resources=["db"])
    twin.run()
    hello(twin, job)
    finish(twin, job)
    (idle,) = (unit for unit in all_units(twin) if unit.type == "db")
    maintenance.hold(twin.on, root, UnitKind.RESOURCE, idle.id, "looking", 3600)
    waits = submit(twin, eve, resources=["db"])
    twin.run()
    assert revoke(twin, root, "resource.db") == privileges.Revocation([waits], [])


def test_revoking_twice_says_the_same_and_ends_nothing_twice(twin: Twin, eve: User, root: User) -> None:
    holds, waits = (submit(twin, eve, resources=["bench"]) for _ in range(2))
    twin.run()
    revoke(twin, root)
    before = job_of(twin, waits)
    again = revoke(twin, root)
    assert (again.stopped, again.holding) == ([], [holds])
    assert job_of(twin, waits) == before
    user = users.find(twin.on, "eve")
    assert [one.privilege for one in user.revoked] == ["resource.bench"]


def test_jobs_of_others_and_under_other_privileges_go_on(twin: Twin, eve: User, root: User) -> None:
    ben = users.create(twin.on, "ben", ["resource.bench"])
    mine = [submit(twin, ben, resources=["bench"]), submit(twin, ben, resources=["bench"])]
    lab = [submit(twin, eve, target="lab") for _ in range(2)]
    twin.run()
    assert revoke(twin, root) == privileges.Revocation([], [])
    assert all(not job_of(twin, job).cancellation.cancelled_by for job in [*mine, *lab])


@pytest.mark.parametrize(("target", "privilege"), [("lab", "target.lab"), ("alias", "target.alias")])
def test_a_target_is_under_its_own_and_its_aliass_privilege(
    twin: Twin, eve: User, root: User, target: str, privilege: str
) -> None:
    apply.pause(twin.on, "target/lab", paused=True)
    apply.pause(twin.on, "target/linux", paused=True)
    job = submit(twin, eve, target=target)
    plain = submit(twin, eve, target="linux")
    twin.run()
    assert revoke(twin, root, privilege).stopped == [job]
    assert not job_of(twin, plain).cancellation.cancelled_by


def test_an_operator_who_is_none_any_more_keeps_what_they_were_granted_besides(
    twin: Twin, eve: User, root: User
) -> None:
    users.change_privilege(twin.on, "eve", ADMIN, grant=True)
    users.change_privilege(twin.on, "eve", "target.lab", grant=False)
    apply.pause(twin.on, "target/lab", paused=True)
    holds, waits = (submit(twin, eve, resources=["bench"]) for _ in range(2))
    lab = submit(twin, users.find(twin.on, "eve"), target="lab")
    twin.run()
    assert revoke(twin, root, ADMIN) == privileges.Revocation([lab], [])
    assert "root revoked 'admin'" in str(job_of(twin, lab).end.reason)
    assert not job_of(twin, holds).cancellation.cancelled_by
    assert not job_of(twin, waits).cancellation.cancelled_by


def test_nothing_is_granted_to_who_may_not_have_it_whatever_happened_to_the_one_who_revoked_it(
    twin: Twin, eve: User, root: User
) -> None:
    """The privilege went, and nobody was told: the grant itself asks."""
    first, then, last = (submit(twin, eve, resources=["bench"]) for _ in range(3))
    twin.run()
    hello(twin, first)
    users.change_privilege(twin.on, "eve", "resource.bench", grant=False, by="root")
    finish(twin, first)
    sweep(twin)
    for job in (then, last):
        assert job_of(twin, job).end.outcome is Outcome.FAILED
        assert "root revoked 'resource.bench'" in str(job_of(twin, job).end.reason)
    assert slots(twin, "resource/bench", SlotState.FREE) == ["bench-1"]
    assert not waiting(twin)


def test_a_grant_and_a_revocation_at_once_do_not_both_win(twin: Twin, eve: User, root: User) -> None:
    """The owner's row is part of the grant: who read it before it changed is not granted by it."""
    apply.pause(twin.on, "resource/bench", paused=True)
    job = submit(twin, eve, resources=["bench"])
    twin.run()
    apply.pause(twin.on, "resource/bench", paused=False)
    commit, done = twin.store.commit, []

    def late(changes: object) -> bool:
        if not done:
            done.append(1)
            users.change_privilege(twin.on, "eve", "resource.bench", grant=False, by="root")
        return commit(changes)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(twin.store, "commit", late)
        serving.serve(twin.on, ["resource/bench"])
    twin.run()
    assert job_of(twin, job).end.outcome is Outcome.FAILED
    assert slots(twin, "resource/bench", SlotState.FREE) == ["bench-1"]


def test_a_grant_of_what_anybody_may_have_does_not_hang_on_its_owner(twin: Twin, eve: User) -> None:
    """Or whoever has many jobs would have each grant in the way of the others."""
    apply.pause(twin.on, "resource/licence", paused=True)
    submit(twin, eve, resources=["licence"])
    twin.run()
    apply.pause(twin.on, "resource/licence", paused=False)
    tried = commits(twin)
    before_the_next_commit(
        twin, lambda: users.change_privilege(twin.on, "eve", "resource.bench", grant=False, by="root")
    )
    serving.serve(twin.on, ["resource/licence"])
    makes = [changes for changes in tried if any(isinstance(one, Create) and one.row.kind == "unit" for one in changes)]
    assert len(makes) == 1


def test_the_next_attempt_is_not_granted_what_the_first_had(twin: Twin, eve: User, root: User) -> None:
    job = submit(twin, eve, resources=["bench"])
    twin.run()
    hello(twin, job)
    assert revoke(twin, root).holding == [job]
    sweep(twin, 121)
    sweep(twin, 31)
    assert job_of(twin, job).attempt == 2
    assert job_of(twin, job).end.outcome is Outcome.FAILED


def test_a_privilege_that_is_given_again_is_as_if_it_had_not_been_taken(twin: Twin, eve: User, root: User) -> None:
    revoke(twin, root)
    with pytest.raises(Refused):
        submit(twin, users.find(twin.on, "eve"), resources=["bench"])
    users.change_privilege(twin.on, "eve", "resource.bench", grant=True, by="root")
    assert users.find(twin.on, "eve").revoked == ()
    job = submit(twin, users.find(twin.on, "eve"), resources=["bench"])
    twin.run()
    assert {lease.name: lease.state for lease in flow.leases_of(twin.on, job_of(twin, job))}["bench"] == "ready"


@pytest.mark.usefixtures("by_flow")
def test_a_user_who_is_no_more_may_have_nothing(twin: Twin, eve: User, root: User) -> None:
    job = submit(twin, eve, resources=["bench"])
    user = twin.store.get(user_key("eve"), User)
    assert user
    del twin.store.rows[user.key]
    twin.run()
    assert "needs the privilege 'resource.bench'" in str(job_of(twin, job).end.reason)


def test_who_begins_to_run_meanwhile_is_not_refused(twin: Twin, eve: User) -> None:
    """JOB-1: its script runs by then, and whose it is may be asked at its next attempt."""
    job = submit(twin, eve)
    twin.run()
    before_the_next_commit(twin, lambda: hello(twin, job))
    assert privileges.end_waiting(twin.on, job, "no") is False
    assert (job_of(twin, job).state, job_of(twin, job).cancellation.cancelled_by) == (State.RUNNING, None)


@pytest.mark.parametrize("change", [{"state": State.RUNNING}, {"state": State.SETTLED}, {"cancelled_by": "x"}])
def test_only_what_waits_is_refused(twin: Twin, eve: User, change: dict[str, object]) -> None:
    job = submit(twin, eve, resources=["licence"])
    twin.run()
    row = job_of(twin, job)
    twin.store.rows[row.key] = changed(row, **change)  # type: ignore[arg-type]
    assert privileges.end_waiting(twin.on, job, "no") is False
    assert privileges.end_waiting(twin.on, "0" * 26, "no") is False


@pytest.mark.parametrize("page", [1, 2, 3])
def test_all_who_wait_are_told_however_many_these_are(
    twin: Twin, eve: User, root: User, monkeypatch: pytest.MonkeyPatch, page: int
) -> None:
    monkeypatch.setattr(listings, "PAGE", page)
    holds, *waits = (submit(twin, eve, resources=["bench"]) for _ in range(4))
    twin.run()
    found = revoke(twin, root)
    assert (sorted(found.stopped), found.holding) == (sorted(waits), [holds])


def test_what_is_no_privilege_cannot_be_taken_away_either(twin: Twin) -> None:
    users.create(twin.on, "eve", [])
    for grant in (True, False):
        with pytest.raises(Refused, match="cannot be a privilege"):
            users.change_privilege(twin.on, "eve", "no such thing", grant=grant)
    assert users.change_privilege(twin.on, "eve", "target.lab", grant=True).privileges == ("target.lab",)


def test_the_log_says_why_a_job_may_not_wait_before_how_it_ended(twin: Twin) -> None:
    users.create(twin.on, "eve", [])
    job = submit(twin, users.find(twin.on, "eve"))
    assert privileges.end_waiting(twin.on, job, "it may not")
    twin.run()
    lines = told(twin, job)
    assert lines.index("it may not") < next(at for at, line in enumerate(lines) if line.startswith("settled"))
