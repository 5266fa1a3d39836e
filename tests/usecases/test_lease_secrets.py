"""A resource's metadata is read by the worker of the lease that has it, while it has it, and by nobody else. [SEC-1]"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from penstock.domain.commands import Hello
from penstock.domain.jobs import jobs
from penstock.domain.units.units import Unit, UnitKind
from penstock.domain.users.users import User
from penstock.kernel.errors import Refused
from penstock.kernel.rows import Replace
from penstock.testing.twin import Twin
from penstock.usecases.jobs import cancel
from penstock.usecases.units import drivers
from penstock.usecases.workers import agents
from tests.usecases.steps import finish, submit, sweep, worker_of

TOKEN, OTHER = "t" * 43, "o" * 43


def greet(twin: Twin, worker: str, token: str, key: str | None = None) -> dict[str, Any]:
    """The resources that an agent is told of when it says hello with a worker's key."""
    ask = Hello(worker, key or drivers.bootstrap_key(twin.on.signing_key(), worker), token)
    found: dict[str, Any] = agents.hello(twin.on, ask).resources
    twin.run()
    return found


def refused(twin: Twin, worker: str, token: str, key: str | None = None) -> int:
    """How an agent is refused that says hello."""
    with pytest.raises(Refused) as told:
        greet(twin, worker, token, key)
    return told.value.status


def started(twin: Twin, ada: User, **ask: Any) -> tuple[str, str, dict[str, Any]]:
    """A job that runs, its worker, and the resources that it was told of."""
    job = submit(twin, ada, **ask)
    twin.run()
    worker = worker_of(twin, job).id
    return job, worker, greet(twin, worker, TOKEN)


def test_its_worker_is_told_as_often_as_it_asks(twin: Twin, ada: User) -> None:
    _, worker, told = started(twin, ada, resources=["bench", "licence"])
    assert {name: entry.metadata["type"] for name, entry in told.items()} == {"bench": "bench", "licence": "licence"}
    assert greet(twin, worker, TOKEN) == told


def test_another_jobs_worker_is_told_of_its_own_only(twin: Twin, ada: User) -> None:
    _, worker, _ = started(twin, ada, resources=["bench"])
    other = submit(twin, ada, resources=["licence"])
    twin.run()
    its = worker_of(twin, other).id
    key = drivers.bootstrap_key(twin.on.signing_key(), its)
    assert list(greet(twin, its, OTHER)) == ["licence"]
    assert refused(twin, worker, OTHER) == 409
    assert refused(twin, worker, OTHER, key) == 401
    assert refused(twin, worker, TOKEN, key) == 401


def test_an_old_attempts_worker_is_told_nothing(twin: Twin, ada: User) -> None:
    job, old, told = started(twin, ada, resources=["bench"])
    sweep(twin, 121)
    sweep(twin, 31)
    new = worker_of(twin, job).id
    assert new != old
    assert refused(twin, old, TOKEN) == 410
    assert greet(twin, new, OTHER)["bench"] == told["bench"]
    assert refused(twin, old, TOKEN) == 410
    assert refused(twin, old, OTHER) == 401


@pytest.mark.parametrize("way", ["finished", "cancelled"])
def test_a_finished_worker_gets_no_secrets_even_if_the_next_has_the_resource(twin: Twin, ada: User, way: str) -> None:
    job, worker, told = started(twin, ada, resources=["bench"])
    following = submit(twin, ada, resources=["bench"])
    if way == "cancelled":
        cancel.cancel(twin.on, ada, job)
    finish(twin, job)
    assert refused(twin, worker, TOKEN) == 410
    twin.run()
    assert greet(twin, worker_of(twin, following).id, OTHER) == told
    assert refused(twin, worker, TOKEN) == 410


def test_a_report_ends_what_it_is_told(twin: Twin, ada: User) -> None:
    job, worker, _ = started(twin, ada, resources=["bench"])
    agents.report_finished(twin.on, agents.authenticate(twin.on, job, TOKEN), jobs.Result.FAILED, "x", 1)
    assert refused(twin, worker, TOKEN) == 410


def test_metadata_of_another_fence_is_never_returned(twin: Twin, ada: User) -> None:
    """SLOT-3: whatever stands in a unit's row, it is told of for the lease only that it was made for."""
    _, worker, _ = started(twin, ada, resources=["bench"])
    (unit,) = (row for row in twin.store.rows.values() if isinstance(row, Unit) and row.is_a is UnitKind.RESOURCE)
    twin.store.commit([Replace(unit, replace(unit, lease=replace(unit.lease, fence=unit.lease.fence + 1)))])
    assert greet(twin, worker, TOKEN) == {}
