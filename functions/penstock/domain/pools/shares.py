"""Fair share: who has used much lately waits behind who has used little. [QUEUE-2]

Each owner, a user or a repository, has a weight, and a use: how many seconds its jobs held what they asked for. Use
halves with every half-life of the site. A new job gets a *turn*, the time by which it stands in every queue:

    turn = when it was submitted + WEIGHS * use / weight

and is counted as used at once, with what such jobs took lately; when it has ended, with what it took. So of ten
thousand jobs that are submitted together each has a later turn than the one before, and another owner's job has one
among the first of them. A turn never changes. So claims have the same order in every queue, as without shares, and all
that holds for their order by age holds for that by turn; and no job is behind others for ever, because time goes on.

It is what batch systems call fair-share scheduling: J. Kay, P. Lauder, "A fair share scheduler", Communications of the
ACM 31 (1988). Theirs changes the order of those who wait while use decays; this one does not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import ClassVar

from penstock.domain.jobs.jobs import Job
from penstock.domain.pools.pools import HoldTimes
from penstock.domain.site.site import Shares
from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Key, Place, Row

WEIGHS = 100
"""How many hours of waiting an hour of use outweighs. With a hundred times as many owners as slots that all have much
to do, each still has its share.
"""

LONGEST = timedelta(days=3650)
"""How much later than its submit a turn is at most."""

UNKNOWN_SECONDS = 600
"""How long a job is expected to hold what it asks for, while nothing is known of its target."""

LISTING = "uses"


@dataclass(frozen=True, kw_only=True)
class Use(Row):
    """What an owner has used, in seconds of one slot each, as it counted `at` a time."""

    kind: ClassVar[str] = "use"
    owner: str
    seconds: float = 0.0
    at: datetime

    @property
    def key(self) -> Key:
        return use_key(self.owner)

    @property
    def place(self) -> Place:
        return Place(LISTING, self.owner)


def use_key(owner: str) -> Key:
    """The key of an owner's use."""
    return Key(f"use#{owner}", "use")


def left(seconds: float, since: datetime, now: datetime, shares: Shares) -> float:
    """What still counts of a use after a time."""
    halvings = max(0.0, (now - since).total_seconds()) / shares.half_life
    return float(seconds * 2.0**-halvings)


def expected_seconds(job: Job, times: HoldTimes | None) -> int:
    """What a job is expected to use; `times` is how long holders of its target kept it
    lately, or of what a lease without a job asks for."""
    each = times.mean_hold if times and times.holds else UNKNOWN_SECONDS
    return int(each * job.request.slots)


def used_seconds(job: Job) -> float:
    """What a settled job has used: what it asked for, for as long as it had all of it."""
    if job.times.acquired is None or job.times.settled is None:
        return 0.0
    return (job.times.settled - job.times.acquired).total_seconds() * job.request.slots


def take_turn(use: Use, job: Job, expected: int, shares: Shares, now: datetime) -> tuple[Use, Job]:
    """A new job with its turn, and its owner's use with what the job is expected to add."""
    before = left(use.seconds, use.at, now, shares)
    behind = min(LONGEST.total_seconds(), WEIGHS * before / shares.weight(job.owner))
    turned = replace(job, times=replace(job.times, turn=job.times.submitted + timedelta(seconds=int(behind))))
    counted = replace(turned, usage=replace(job.usage, expected=expected))
    return replace(use, seconds=before + expected, at=now), counted


def correct(use: Use, job: Job, shares: Shares, now: datetime) -> Use:
    """A use once a job has settled: with what it took instead of what was expected."""
    assumed = left(job.usage.expected, job.times.submitted, now, shares)
    before = left(use.seconds, use.at, now, shares)
    return replace(use, seconds=max(0.0, before - assumed + used_seconds(job)), at=now)


@dataclass(frozen=True)
class Share:
    """How an owner stands: what it is entitled to and what it has used, as parts of what all have used lately."""

    owner: str
    weight: int
    entitled: float
    used: float
    used_seconds: int


def standings(uses: Iterable[Use], shares: Shares, now: datetime) -> list[Share]:
    """How those stand who have used something lately, first who is furthest above its share."""
    lately = {use.owner: left(use.seconds, use.at, now, shares) for use in uses}
    lately = {owner: seconds for owner, seconds in lately.items() if seconds >= 1}
    weights, total = sum(map(shares.weight, lately)), sum(lately.values())
    found = [
        Share(owner, shares.weight(owner), shares.weight(owner) / weights, seconds / total, int(seconds))
        for owner, seconds in lately.items()
    ]
    return sorted(found, key=lambda each: (each.entitled - each.used, each.owner))
