"""The twin with a store, queues and flows that count. A read of the port is one request; so is a commit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from penstock.domain.commands import SubmitJob
from penstock.domain.jobs.jobs import Job
from penstock.domain.pools import grants
from penstock.domain.pools.pools import WORKER, Lease, LeaseState, Slot, SlotName, SlotState
from penstock.domain.units.units import Unit
from penstock.domain.users.users import User
from penstock.kernel.rows import Change, Check, Create, Key, Row
from penstock.testing.site import site_toml
from penstock.testing.store import MemoryStore
from penstock.testing.twin import START, Twin
from penstock.usecases.jobs import settle, submit
from penstock.usecases.pools import scheduler
from penstock.usecases.site import apply
from penstock.usecases.units import advance

R = TypeVar("R", bound=Row)

USER = User(name="ada", created=START, version=1)

SITE = site_toml(
    targets={"default": {}},
    wells={"locks": "lock"},
    resources={
        "licence": {"well": "locks", "limit": 1},
        "rig": {"well": "locks", "limit": 4, "uses": {"vcpus": 3}},
        "farm": {"well": "locks", "limit": 1, "uses": {"vcpus": 8}},
    },
    quotas={"vcpus": 8},
)


@dataclass(frozen=True)
class Counts:
    """What one thing took: requests that read and the rows they read, requests that write and the rows they wrote,
    and whom it woke: units that are asked for and parked steps that are answered. `hints` are messages to serve another
    queue that a granted claim left, and where somebody waits.
    """

    reads: int = 0
    rows_read: int = 0
    commits: int = 0
    rows_written: int = 0
    wakes: int = 0
    hints: int = 0
    grants: int = 0


class CountingStore(MemoryStore):
    """The twin's store, counting."""

    def __init__(self) -> None:
        super().__init__()
        self.counts = Counts()

    def get(self, key: Key, kind: type[R]) -> R | None:
        self._add(reads=1, rows_read=1)
        return super().get(key, kind)

    def find(self, pk: str, prefix: str, kind: type[R], **how: Any) -> list[R]:
        found = super().find(pk, prefix, kind, **how)
        self._add(reads=1, rows_read=len(found))
        return found

    def rows_at(self, keys: Sequence[Key]) -> Mapping[Key, Row]:
        found = super().rows_at(keys)
        self._add(reads=1, rows_read=len(found))
        return found

    def commit(self, changes: Sequence[Change]) -> bool:
        done = super().commit(changes)
        written = sum(not isinstance(change, Check) for change in changes) if done else 0
        granted = [change.row for change in changes if not isinstance(change, Check) and hasattr(change, "row")]
        units_made = {row.lease.job for row in granted if isinstance(row, Unit) and row.version == 0}
        self._add(commits=1, rows_written=written, grants=len(units_made) if done else 0)
        return done

    def _add(self, **more: int) -> None:
        self.counts = replace(self.counts, **{name: getattr(self.counts, name) + n for name, n in more.items()})


class CountingTwin(Twin):
    """The twin, counting, with jobs that want resources and no worker."""

    store: CountingStore

    def __init__(self) -> None:
        super().__init__()
        self.store = CountingStore()
        self.world.draw = lambda count: count - 1  # type: ignore[method-assign] # not the one in eight that is counted
        self.on = replace(self.on, store=self.store)
        apply.apply(self.on, "root", SITE, "site.toml")
        self.run()

    def count(self, call: Callable[[], Any]) -> Counts:
        """What a call took. Its messages are counted and left where they are."""
        sent, answered = len(self.queues.messages), []
        succeed, self.flows.succeed = self.flows.succeed, answered.append  # type: ignore[method-assign]
        self.store.counts = Counts()
        call()
        self.flows.succeed = succeed  # type: ignore[method-assign]
        fresh = list(self.queues.messages)[sent:]
        hints = sum(message.get("do") == "serve" for _, _, message in fresh)
        return replace(self.store.counts, wakes=len(fresh) - hints + len(answered), hints=hints)

    def job(self, kind: str) -> Job:
        """A job that wants one resource, accepted."""
        made = submit.prepare(self.on, USER, SubmitJob("#!/bin/sh\n", resources=[kind])).job
        job = replace(
            made,
            request=replace(made.request, needs=tuple(need for need in made.request.needs if need.order != WORKER)),
        )
        self.store.commit([Create(job)])
        return replace(job, version=1)

    def holder(self, kind: str) -> Unit:
        """A job that has a resource and has just ended: the resource's unit, which is to be put back."""
        job = self.job(kind)
        scheduler.acquire(self.on, job.id, 1, 1, "token")
        self.run()
        settle.settle(self.on, job.id, 1, None, "it had all that it asked for")
        self.queues.messages.clear()
        return next(row for row in self.store.rows.values() if isinstance(row, Unit) and row.lease.job == job.id)

    def wait(self, kind: str, count: int) -> None:
        """That many more jobs that wait for a resource, as rows: nobody is served."""
        like = self.job(kind)
        for _ in range(count):
            job = replace(like, id=self.world.ulid(), version=0)
            (need,) = job.request.needs
            lease = Lease(
                job=job.id, attempt=1, order=need.order, step=need.step, name=need.name, type=need.type,
                pool=need.pool, state=LeaseState.WAITING, token="token", since=self.world.now(),
            )  # fmt: skip
            claims = grants.claims(job, need.step, self.world.now())
            self.store.commit([Create(job), Create(lease), *map(Create, claims)])

    def slots(self, pool: str, count: int, state: SlotState) -> None:
        """That many more slots of a pool, as rows."""
        for number in range(count):
            name = f"more-{number}"
            self.store.commit([Create(SlotName(pool=pool, name=name)), Create(Slot(pool=pool, name=name, state=state))])

    def release(self, unit: Unit) -> Counts:
        """What it takes to put a unit back and to grant what falls free, but for the message that asks for that."""

        def release() -> None:
            advance.advance(self.on, unit.id)
            for message in [each for each in self.queues.messages if each[2].get("do") == "serve"][:1]:
                self.queues.messages.remove(message)
                self.take(*message[1:])

        return self.count(release)
