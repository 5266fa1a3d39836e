"""Users are disabled, enabled, renamed and removed; what follows is done in steps that the sweep repeats. [SEC-2]

Each step does what it finds first and then writes how far it came. So after a crash it does some of it again, which
changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from itertools import chain

from penstock.domain import published
from penstock.domain.jobs.jobs import Job, job_key, leases_of, listing
from penstock.domain.pools.pools import LeaseState
from penstock.domain.users import lifecycle
from penstock.domain.users.users import ADMIN, Standing, Token, User, token_listing, user_key
from penstock.kernel.errors import Refused
from penstock.kernel.rows import Change, Create, Delete, Key, Replace
from penstock.listings import whole_page
from penstock.system import System, transact
from penstock.usecases import caches
from penstock.usecases.jobs import cancel, flow
from penstock.usecases.users import audit, users

PAGE = 100
"""How many jobs or tokens are listed at once."""

PAGES = 10
"""How many pages one step looks through."""

ENDED = 20
"""How many jobs one step ends, after which it writes how far it came."""


def disable(on: System, by: User, name: str, *, ends_live: bool) -> User:
    """Refuse all tokens of a user, and end their waiting jobs; `ends_live` also those that run. Safe to repeat."""

    def decide() -> tuple[Sequence[Change], User]:
        was = users.find(on, name)
        now = lifecycle.disable(was, by.name, on.world.now(), ends_live=ends_live)
        text = f"running jobs {'end' if ends_live else 'go on'}"
        return audit.record(on, [Replace(was, now)], by.name, "disable user", f"user {was.name}", text), now

    user = transact(on, decide)
    advance(on, user.key)
    return users.find(on, name)


def enable(on: System, by: str, name: str) -> User:
    """Let a disabled user act again. What was ended stays ended. Safe to repeat."""

    def decide() -> tuple[Sequence[Change], User]:
        was = users.find(on, name)
        now = lifecycle.enable(was)
        changes = [Replace(was, now)] if was.status else []
        return audit.record(on, changes, by, "enable user", f"user {was.name}"), now

    return transact(on, decide)


def rename(on: System, by: str, name: str, wanted: str) -> User:
    """Give a user another name; the former one leads to it, and to nobody else. Raises Refused 400, 404, 409, 422."""
    users.check_name(wanted)

    def decide() -> tuple[Sequence[Change], User]:
        was = users.find(on, name)
        if was.name == wanted:
            return [], was
        if on.store.get(user_key(wanted), User):
            raise Refused(409, "user-exists", f"{wanted!r} is, or was, the name of another user")
        former, now = lifecycle.rename(was, wanted, by, on.world.now())
        rows = (on.store.get(user_key(each), User) for each in was.former)
        led = [Replace(row, lifecycle.follow(row, wanted)) for row in rows if row]
        changes: list[Change] = [Replace(was, former), Create(now), *led]
        return audit.record(on, changes, by, "rename user", f"user {was.name}", f"to {wanted}"), now

    user = transact(on, decide)
    for former in user.former:
        advance(on, user_key(former))
    return users.find(on, wanted)


def remove(on: System, by: str, name: str) -> User:
    """Remove a disabled user, nothing of whose runs any more. Raises Refused 404 or 409."""

    def decide() -> tuple[Sequence[Change], User]:
        was = users.find(on, name)
        why = lifecycle.why_not_removed(was)
        if why:
            raise Refused(409, "user-in-use", why)
        now = lifecycle.remove(was, by, on.world.now())
        return audit.record(on, [Replace(was, now)], by, "remove user", f"user {was.name}"), now

    user = users.find(on, name)
    if user.withdrawal:
        _withdraw(on, user)  # jobs that ran when they were last looked at may have settled
    user = transact(on, decide)
    advance(on, user.key)
    return user


def what_is_left(on: System, user: User) -> list[str]:
    """What is left of a removed user, and what becomes of it, in sentences."""
    files = sum(on.store.count(published.collection(name), "file#") for name in user.names)
    entries = sum(caches.usage(on, name).count for name in user.names)
    return [
        "their jobs, logs and outputs are kept as long as those of others; operators see them",
        f"{files} published names stay; an operator withdraws them with `penstock published withdraw`",
        f"{entries} cache entries go when nobody has used them for as long as the site says",
        "the name is not given to anybody else",
    ]


def advance(on: System, key: Key) -> None:
    """Take the next step of what follows from a user's status, if it is time. Safe to repeat."""
    user = on.store.get(key, User)
    if user is None or user.due is None or user.due > on.world.now():
        return
    if user.is_a(Standing.DISABLED):
        _withdraw(on, user)
    else:
        _clear_tokens(on, user)


def _withdraw(on: System, user: User) -> None:
    """End jobs of a disabled user, and write how far that came."""
    todo = user.withdrawal
    assert todo
    live = (on.store.get(job_key(id), Job) for id in todo.live)
    after = _walk(on, user) if todo.names else lifecycle.watched(user, list(_live(on, user, live)))
    on.store.commit([Replace(user, lifecycle.next_pass(after, on.world.now()))])


def _walk(on: System, user: User) -> User:
    """Look through the jobs of one of the user's names, newest first, until some were ended."""
    todo = user.withdrawal
    assert todo
    before, seen = todo.before, [*todo.live]
    for _ in range(PAGES):
        page = _newest(on, todo.names[0], before)
        for job in page:
            before = job.id
            seen += _live(on, user, [job])
            if len(seen) - len(todo.live) >= ENDED:
                return lifecycle.walked(user, before, seen)
        if len(page) < PAGE:
            return lifecycle.walked(user, "", seen)
    return lifecycle.walked(user, before, seen)


def _newest(on: System, owner: str, before: str) -> list[Job]:
    """The newest jobs before one that did not fail, and leases without a job: one page of both together."""
    names = (listing(owner), leases_of(owner))
    found = (whole_page(on, name, Job, limit=PAGE, after=before, newest=True) for name in names)
    return sorted(chain.from_iterable(found), key=lambda job: job.id, reverse=True)[:PAGE]


def _live(on: System, user: User, jobs: Iterable[Job | None]) -> Iterator[str]:
    """Those of some jobs that have not settled. Those that may not go on are cancelled, as by who disabled the user."""
    assert user.status
    assert user.withdrawal
    operator = User(name=user.status.by, privileges=(ADMIN,), created=user.status.at)
    for job in jobs:
        if job is None or job.is_settled:
            continue
        after = job
        if user.withdrawal.ends_live or not _may_go_on(on, job, user.status.at):
            with suppress(Refused):  # it has just settled
                after = cancel.cancel(on, operator, job.id)
        if not after.is_settled:
            yield job.id


def _may_go_on(on: System, job: Job, since: datetime) -> bool:
    """Whether a job may go on that is left running: its attempt is not new, and has everything that it asked for."""
    last = job.history.attempts[-1].ended if job.history.attempts else None
    had = flow.leases_of(on, job)
    has = (LeaseState.GRANTED, LeaseState.READY)
    has_all = len(had) == len(job.request.needs) and all(lease.state in has for lease in had)
    return has_all and (last is None or last <= since)


def _clear_tokens(on: System, user: User) -> None:
    """Move the tokens of a renamed user, or delete those of a removed one; and look again, since a list may lag."""
    assert user.status
    found = [token for name in user.names for token in whole_page(on, token_listing(name), Token, limit=PAGE)]
    to = user.status.to
    for token in found:
        on.store.commit([Replace(token, replace(token, user=to)) if to else Delete(token)])
    now, until = on.world.now(), user.status.at + lifecycle.IN_FLIGHT
    due = now if found else None if now >= until else until
    on.store.commit([Replace(user, replace(user, due=due, indexed=None))])
