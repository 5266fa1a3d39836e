"""Jobs that have ended with outputs, for tests of how long these are kept."""

from __future__ import annotations

from datetime import datetime, timedelta

from penstock.domain.artifacts.artifacts import Artifact
from penstock.domain.artifacts.retention import Retention, retention_key
from penstock.domain.artifacts.volumes import object_name
from penstock.domain.commands import AgentFile
from penstock.domain.jobs.jobs import Result
from penstock.domain.logs.logs import Archive, archive_key
from penstock.domain.users.users import User
from penstock.kernel import limits
from penstock.testing.twin import Twin
from penstock.usecases.artifacts import expire, outputs
from penstock.usecases.jobs import prerequisites, settle
from penstock.usecases.overdue import Walk
from penstock.usecases.workers import agents
from tests.usecases.outputs import X_SHA256
from tests.usecases.steps import TOKEN, finish, hello, submit


def of(twin: Twin, kind: type) -> list:  # type: ignore[type-arg]
    return [row for row in twin.store.rows.values() if isinstance(row, kind)]


def send(twin: Twin, job: str, count: int = 1) -> list[str]:
    """Send outputs and have them committed."""
    who = agents.authenticate(twin.on, job, TOKEN)
    files = [AgentFile(f"/work/{number}", size=1, sha256=X_SHA256) for number in range(count)]
    most = limits.OUTPUTS_PER_CALL
    calls = (outputs.begin(twin.on, who.job, files[at : at + most]) for at in range(0, count, most))
    names = [one.id for call in calls for one in call.uploads]
    for name in names:
        twin.objects.objects[object_name(name)] = b"x"
    outputs.commit(twin.on, who.job, names)
    return names


def ended(twin: Twin, user: User, count: int = 1, result: Result = Result.SUCCEEDED, **ask: object) -> str:
    """A job that ended and has outputs. Its log is short, so nothing is archived: test_archiving."""
    job = submit(twin, user, **ask)
    twin.run()
    hello(twin, job)
    send(twin, job, count)
    finish(twin, job, result)
    assert twin.store.get(archive_key(job), Archive) is None
    return job


def kept(twin: Twin, job: str) -> Retention | None:
    return settle.find_retention(twin.on, job)[0]


def with_a_row_of_its_own(twin: Twin, job: str) -> str:
    """A job whose retention has its own row, because some job depended on it once."""
    assert twin.store.commit(prerequisites.pin(twin.on, job, "D"))
    settle.unpin(twin.on, job, "D")
    assert twin.store.rows[retention_key(job)]
    return job


def end_of(twin: Twin, job: str) -> datetime:
    row = kept(twin, job)
    assert row
    assert row.end
    return row.end


def tidy(twin: Twin, times: int = 1) -> None:
    """Sweep what nobody waits for, with the jobs that are still where they were while they ran. Nothing else moves."""
    end = twin.world.now() + timedelta(minutes=1)
    for _ in range(times):
        Walk(twin.on, lambda *_: None, end, end).take(twin.on.store.shards(later=False))
        assert expire.expire_overdue(twin.on).failed == 0


def nothing_is_left(twin: Twin) -> bool:
    return not twin.objects.objects and not of(twin, Artifact)
