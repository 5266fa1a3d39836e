"""GITHUB_TOKEN: created when a running job asks for it, as weak as its repository's policy says, revoked when the job
settles.

The agents' API only requests it: what serves workers has no permission to create tokens. [SEC-2]
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from penstock.domain.github import checks, policy
from penstock.domain.github.checks import CheckRun
from penstock.domain.github.commits import CheckSet, set_key
from penstock.domain.github.policy import DEFAULT_PERMISSIONS, Policy
from penstock.domain.github.tokens import (
    BY,
    NAME,
    RECHECK_INTERVAL,
    Minted,
    count_try,
    is_dead,
    is_expired,
    is_fresh,
    recheck,
    sealed_as,
)
from penstock.domain.jobs.jobs import Job, State, job_key
from penstock.domain.jobs.store import Value, value_key
from penstock.kernel.errors import Refused
from penstock.kernel.rows import Create, Delete, Replace
from penstock.ports import TokenScope
from penstock.system import System
from penstock.usecases.github import client, hints
from penstock.usecases.github.client import Repository
from penstock.usecases.jobs import store
from penstock.usecases.jobs.flow import fenced
from penstock.usecases.jobs.store import NewValue
from penstock.usecases.logs import logs


def request(on: System, job: Job, name: str) -> None:
    """A job asks for a value: if it is its token, request one, and drop one that has expired. [SEC-1]"""
    if name != NAME or not job.provenance.check:
        return
    value, now = on.store.get(value_key(job.id, NAME), Value), on.world.now()
    if value and is_expired(value, now):
        on.store.commit([Delete(value)])
    if not is_fresh(value, now):
        hints.send(on, {"token": job.id})


def mint(on: System, job_id: str) -> bool:
    """Create a running job's token, and put it where only that job reads it. False if there is none. [SEC-1]"""
    job, now = on.store.get(job_key(job_id), Job), on.world.now()
    if job is None or job.state is not State.RUNNING or not job.provenance.check:
        return False
    if is_fresh(on.store.get(value_key(job.id, NAME), Value), now):
        return False
    check = on.store.get(checks.key_of(job.provenance.check), CheckRun)
    if check is None or check.job != job.id:
        return False
    found = on.store.get(set_key(check.repository_id, check.sha), CheckSet)
    if found is None:
        return False
    scope = _scope(on, found, check, job)
    token, why = client.mint(on, scope) if scope else ("", f"{policy.PATH} of the default branch gives none")
    if not token:
        _deny(on, job, why)
        return False
    _record(on, job, found.installation, token)
    try:
        store.put(on, job, NewValue(NAME, token, secret=True, by=BY), fenced)
    except Refused:  # the job has ended meanwhile
        revoke(on, job.id)
        return False
    return True


def _scope(on: System, found: CheckSet, check: CheckRun, job: Job) -> TokenScope | None:
    """What the token permits: one repository, and what the default branch says; less for an outsider's job. [SEC-2]

    GitHub gives one set of permissions for all repositories of a token: one that reads others only reads.
    """
    of = Repository(found.installation, found.repository_id, found.repository)
    raw = client.read_file(on, of, policy.PATH)
    rules = policy.parse((raw or b"").decode("utf-8", "replace"))
    if not isinstance(rules, Policy) or not rules.enable or not client.app(on).serves(found.repository):
        return None
    granted = DEFAULT_PERMISSIONS if check.reads else rules.granted(outsider=job.provenance.outsider)
    return TokenScope(of.installation, of.id, granted, check.reads)


def _deny(on: System, job: Job, why: str) -> None:
    """Tell a job that waits for its first token that there is none, and why, so that it does not wait for ever.

    Its value is empty: the job's next step fails at once, and GitHub is not asked again for a while.
    """
    if on.store.get(value_key(job.id, NAME), Value) is None:
        logs.append(on, job.id, job.attempt, f"there is no {NAME}, its value is empty: {why}")
        with suppress(Refused):  # the job has ended meanwhile
            store.put(on, job, NewValue(NAME, "", by=BY), fenced)


def _record(on: System, job: Job, installation: int, token: str) -> None:
    """Record a token before the job gets it, sealed so that only the revoking side opens it. [SEC-1]"""
    id, now = on.world.ulid(), on.world.now()
    sealed = on.minted.seal(token.encode(), sealed_as(job.id, id))
    row = Minted(job=job.id, id=id, installation=installation, sealed=sealed, made=now, due=now + RECHECK_INTERVAL)
    on.store.commit([Create(row)])


def revoke(on: System, job_id: str) -> None:
    """Revoke a job's tokens once it has settled. Safe to repeat. [SEC-1]"""
    job = on.store.get(job_key(job_id), Job)
    for row in on.store.find(f"job#{job_id}", "minted#", Minted):
        if is_dead(row, on.world.now()):
            on.store.commit([Delete(row)])
        elif job is None or job.is_settled:
            _revoke(on, row)
        else:
            on.store.commit([Replace(row, recheck(row, on.world.now()))])


def _revoke(on: System, row: Minted) -> None:
    """Revoke one token. If this dies, it is repeated for as long as the token lives."""
    begun = count_try(row, on.world.now())
    if on.store.commit([Replace(row, begun)]):
        token = on.minted.open(row.sealed, sealed_as(row.job, row.id)).decode()
        if client.revoke(on, row.installation, token):
            on.store.commit([Delete(replace(begun, version=row.version + 1))])
