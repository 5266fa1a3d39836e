"""Who may ask, what a user's jobs are, and what is said twice. [SEC-2] [JOB-1]"""

from __future__ import annotations

import pytest

from penstock.domain.jobs.jobs import State
from penstock.domain.users.users import User
from penstock.kernel.errors import Refused
from penstock.ports import NotYet
from penstock.testing.twin import Twin
from penstock.usecases.jobs import cancel, jobs
from penstock.usecases.site import apply
from penstock.usecases.users import users
from tests.usecases.conftest import SITE
from tests.usecases.races import before_the_next_commit
from tests.usecases.steps import finish, hello, job_of, submit, told


def status(ask: object, *given: object, **named: object) -> int:
    with pytest.raises(Refused) as refused:
        ask(*given, **named)  # type: ignore[operator]
    return refused.value.status


def test_a_user_is_created_once(twin: Twin) -> None:
    assert status(users.create, twin.on, "Ada!", []) == 400
    users.create(twin.on, "ada", ["target.lab"])
    assert status(users.create, twin.on, "ada", []) == 409
    assert users.find(twin.on, "ada").privileges == ("target.lab",)
    for name in ("bob", "Ada!"):
        assert status(users.find, twin.on, name) == 404


def test_privileges_are_granted_and_revoked_once(twin: Twin) -> None:
    users.create(twin.on, "ada", [])
    for grant, privileges in ((True, ("target.lab",)), (False, ())):
        for _ in range(2):
            assert users.change_privilege(twin.on, "ada", "target.lab", grant=grant).privileges == privileges
            assert users.find(twin.on, "ada").privileges == privileges
    assert users.find(twin.on, "ada").version == 3
    assert status(users.change_privilege, twin.on, "ada", "Not One!", grant=True) == 400


def test_two_operators_who_grant_at_once_are_both_heard(twin: Twin) -> None:
    users.create(twin.on, "ada", [])
    before_the_next_commit(twin, lambda: users.change_privilege(twin.on, "ada", "target.lab", grant=True))
    users.change_privilege(twin.on, "ada", "target.gpu", grant=True)
    assert users.find(twin.on, "ada").privileges == ("target.gpu", "target.lab")


def test_how_many_privileges_a_user_may_have(twin: Twin) -> None:
    names = [f"target.t{number}" for number in range(users.PRIVILEGES + 1)]
    assert len(users.create(twin.on, "ada", names[:-1]).privileges) == users.PRIVILEGES
    assert status(users.create, twin.on, "bob", names) == 400


def test_only_operators_do_what_operators_do(ada: User, root: User) -> None:
    assert status(users.require_admin, ada) == 403
    users.require_admin(root)


def test_a_job_is_cancelled_once_and_that_is_said_once(twin: Twin, ada: User) -> None:
    job = submit(twin, ada)
    twin.run()
    hello(twin, job)
    for _ in range(2):
        assert cancel.cancel(twin.on, ada, job).cancellation.cancelled_by == "ada"
    assert [line for line in told(twin, job) if "cancelled by" in line] == ["cancelled by ada"]
    assert job_of(twin, job).state is State.RUNNING, "its script runs until its agent hears of it"


def test_what_is_cancelled_twice_is_written_once(twin: Twin, ada: User) -> None:
    job = submit(twin, ada)
    twin.run()
    hello(twin, job)
    cancel.cancel(twin.on, ada, job)
    version = job_of(twin, job).version
    cancel.cancel(twin.on, ada, job)
    assert job_of(twin, job).version == version


@pytest.mark.usefixtures("by_flow")
def test_the_flow_of_a_job_whose_script_runs_is_left_alone(twin: Twin, ada: User) -> None:
    """What it waited with before was answered; only what waits is told."""
    running, waiting = (submit(twin, ada) for _ in range(2))
    twin.run()
    hello(twin, running)
    ended: list[str] = []
    twin.flows.fail = lambda token, error, cause: ended.append(cause)  # type: ignore[method-assign]
    cancel.cancel(twin.on, ada, running)
    assert ended == []
    cancel.cancel(twin.on, ada, waiting)
    assert ended == ["cancelled by ada"]


@pytest.mark.usefixtures("by_flow")
def test_who_cancelled_first_is_who_cancelled(twin: Twin, ada: User, root: User) -> None:
    job = submit(twin, ada)
    before_the_next_commit(twin, lambda: cancel.cancel(twin.on, root, job))
    assert cancel.cancel(twin.on, ada, job).cancellation.cancelled_by == "root"


def test_a_settled_job_is_not_cancelled(twin: Twin, ada: User) -> None:
    """JOB-1: its end stands."""
    job = submit(twin, ada)
    twin.run()
    hello(twin, job)
    finish(twin, job)
    assert status(cancel.cancel, twin.on, ada, job) == 409


def test_what_keeps_the_unit_of_a_job_is_explained(twin: Twin, ada: User) -> None:
    """That of the unit that is being made, and of none that is ready."""
    more = '[wells.spring]\ndriver = "hand"\n[resources.pond]\nwell = "spring"\nlimit = 1\n'
    apply.apply(twin.on, "root", SITE + more, "site.toml")
    twin.run()
    twin.drivers.basin.says += [NotYet(5, "the image is fetched")]
    job = submit(twin, ada, resources=["bench", "pond"])
    twin.run()
    assert "(the image is fetched)" in jobs.explain(twin.on, job_of(twin, job)).summary


def test_a_job_whose_pool_is_no_more_is_explained_without_a_forecast(twin: Twin, ada: User) -> None:
    first, second = (submit(twin, ada, resources=["bench"]) for _ in range(2))
    twin.run()
    found = jobs.explain(twin.on, job_of(twin, second))
    assert found.blocked_on
    assert [holder.job for holder in found.blocked_on.held_by] == [first]
    del twin.store.rows[apply.find(twin.on, "target/linux").key]
    assert jobs.explain(twin.on, job_of(twin, second)).blocked_on == found.blocked_on
    del twin.store.rows[apply.find(twin.on, "resource/bench").key]
    assert jobs.explain(twin.on, job_of(twin, second)).blocked_on is None


def test_who_waits_and_who_runs_is_explained(twin: Twin, ada: User) -> None:
    jobs_ = [submit(twin, ada) for _ in range(3)]
    twin.run()
    found = jobs.explain(twin.on, job_of(twin, jobs_[2]))
    assert "position 1 in the queue" in found.summary
    hello(twin, jobs_[0])
    assert "runs on" in jobs.explain(twin.on, job_of(twin, jobs_[0])).summary
