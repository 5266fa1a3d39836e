"""Backlogs: the jobs of one owner that wait until fewer of its jobs are under way.

Where a site has `limits.at_once`, so many jobs of one user or repository are under way at most: from when they may ask
for what they need until they settle. The others stand in the owner's backlog, by priority and age. It comes before all
queues: who stands in it holds nothing, and is in nobody's way.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import ClassVar

from penstock.domain.jobs.jobs import Job, State
from penstock.domain.pools.pools import RANK_BASE
from penstock.domain.site.site import Limits
from penstock.domain.users.users import Tally
from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Key, Row


@dataclass(frozen=True, kw_only=True)
class Backlogged(Row):
    """That a job stands in its owner's backlog. It waits for nothing else, and the commit that lets it go on, or that
    ends it, deletes this.
    """

    kind: ClassVar[str] = "backlogged"
    owner: str
    job: str
    priority: int
    since: datetime

    @property
    def key(self) -> Key:
        return Key(collection(self.owner), place(self.job, self.priority))


def collection(owner: str) -> str:
    """The collection of an owner's backlog."""
    return f"backlog#{owner}"


PREFIX = "wait#"
"""How the sort keys of all that stand in a backlog begin."""


def place(job: str, priority: int) -> str:
    """A job's place in its backlog: a higher priority comes first, then an older job."""
    return f"{PREFIX}{RANK_BASE - priority:03d}#{job}"


def key_of(job: Job) -> Key:
    """Where it is noted that a job stands in its owner's backlog."""
    return Key(collection(job.owner), place(job.id, job.request.priority))


def room(tally: Tally, limits: Limits, most: int) -> int:
    """How many more of an owner's jobs may be under way, at most `most`."""
    return max(0, min(most, limits.at_once - tally.begun)) if limits.at_once else most


def begin(job: Job, tally: Tally) -> tuple[Job, Tally]:
    """A job that is under way from now on, and is counted as such until it settles."""
    return replace(job, usage=replace(job.usage, begun=True)), replace(tally, begun=tally.begun + 1)


def put_off(job: Job) -> Job:
    """A job that stands in the backlog."""
    return replace(job, state=State.WAITING, times=replace(job.times, ready=None))


def note(job: Job, now: datetime) -> Backlogged:
    """The row of a job that joins the backlog."""
    return Backlogged(owner=job.owner, job=job.id, priority=job.request.priority, since=now)
