"""A job's store: its user and the job itself put values into it, until the job settles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

from penstock.domain.jobs import store
from penstock.domain.jobs.jobs import Job, job_key
from penstock.domain.jobs.store import Value, sealed_as, value_key
from penstock.domain.logs.logs import DETAIL
from penstock.domain.replies import NoValue, StoredValue
from penstock.kernel import limits
from penstock.kernel.errors import Refused, not_found
from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Change, Check, Create, Delete, Replace
from penstock.listings import every_of
from penstock.system import System, transact
from penstock.usecases.logs import logs


@dataclass(frozen=True)
class NewValue:
    """A value to put: by a user, or by the job itself, which is ""."""

    name: str
    text: str
    secret: bool = False
    by: str = ""


def unsettled(on: System, job: Job) -> Job:
    """The job's row, for a commit that checks or writes it. Raises Refused 409 for a job that is over."""
    fresh = on.store.get(job_key(job.id), Job)
    if fresh is None or fresh.is_settled:
        raise Refused(409, "job-settled", f"job {job.id} is over: nothing is put into its store any more")
    return fresh


def put(on: System, job: Job, ask: NewValue, find: Callable[[System, Job], Job] = unsettled) -> Value:
    """Put a value, replacing one of that name. A secret value stays secret. [SEC-1]

    `find` reads the job's row, and refuses whoever may not put anything any more. Raises Refused 400 or 413 for an
    invalid value, 409 if the job is over or its store is full.
    """
    _check(ask)

    @cache
    def sealed() -> str:
        return on.vault.seal(ask.text.encode(), sealed_as(job.id, ask.name))

    def decide() -> tuple[Sequence[Change], tuple[Value, bool]]:
        fresh, was = find(on, job), on.store.get(value_key(job.id, ask.name), Value)
        if was is None:
            _check_room(on, job)
        made = Value(job=job.id, name=ask.name, by=ask.by, time=on.world.now())
        is_secret = ask.secret or (was is not None and was.is_secret)
        now = replace(made, sealed=sealed()) if is_secret else replace(made, text=ask.text)
        marks = is_secret and not fresh.usage.has_secrets
        goes_on: Change = (
            Replace(fresh, replace(fresh, usage=replace(fresh.usage, has_secrets=True))) if marks else Check(fresh)
        )
        return [Replace(was, now) if was else Create(now), goes_on], (now, was is None)

    value, is_new = transact(on, decide)
    if is_new:
        what = f"{value.name} (secret)" if value.is_secret else value.name
        logs.append(on, job.id, job.attempt, f"{ask.by or 'the job'} put {what} into the job's store", DETAIL)
    return value


def _check(ask: NewValue) -> None:
    if not store.is_name(ask.name):
        raise Refused(400, "bad-request", "a value's name is 1 to 64 of A-Z a-z 0-9 . _ -")
    if ask.secret and not ask.text:
        raise Refused(400, "bad-request", "an empty value is no secret")
    try:
        size = len(ask.text.encode())
    except UnicodeEncodeError:
        raise Refused(400, "bad-request", "a value is text: half of a surrogate pair is none") from None
    if size > limits.VALUE_BYTES:
        raise Refused(413, "value-too-big", f"a value has at most {limits.VALUE_BYTES} bytes; this one has {size}")


def _check_room(on: System, job: Job) -> None:
    if len(on.store.find(f"job#{job.id}", "value#", Value, limit=limits.VALUES)) >= limits.VALUES:
        raise Refused(409, "too-many-values", f"a job's store has room for {limits.VALUES} values")


def list_values(on: System, job: Job) -> list[Value]:
    """All of a job's values, by name. Where several were put at once, they are more than there is room for."""
    return list(every_of(on, f"job#{job.id}", "value#", Value))


def show(on: System, job: Job, name: str) -> Value:
    """A value, for those who may see the job. Raises Refused 404, and 403 for a secret. [SEC-1]"""
    found = on.store.get(value_key(job.id, name), Value) if store.is_name(name) else None
    if found is None:
        raise not_found("value", name[:64])
    if found.is_secret:
        raise Refused(403, "secret-value", f"{name} is secret: only the job itself reads it")
    return found


def read(on: System, job: Job, name: str) -> StoredValue | NoValue:
    """A value, for the job itself. [SEC-1]"""
    found = on.store.get(value_key(job.id, name), Value) if store.is_name(name) else None
    if found is None:
        return NoValue()
    if not found.is_secret:
        return StoredValue(found.text, secret=False)
    return StoredValue(on.vault.open(found.sealed, sealed_as(job.id, name)).decode(), secret=True)


def delete_secrets(on: System, job: Job) -> bool:
    """Delete the secrets of a settled job: nobody puts or reads any more. Safe to repeat.

    False if one may be left: a delete is refused while another writes the row. [SEC-1]
    """
    return all([on.store.commit([Delete(row)]) for row in list_values(on, job) if row.is_secret])
