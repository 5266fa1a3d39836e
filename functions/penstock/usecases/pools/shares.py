"""What owners use, counted on sites that divide by shares: a turn for each new job, and its true use when it ends.

Each is one write of the owner's own row, which nothing waits for. Where others write it all the time, a job keeps the
turn that was read last, and its use is not corrected: such a row forgets a little, and nobody waits for longer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from penstock.domain.jobs.jobs import Job
from penstock.domain.pools import shares as rules
from penstock.domain.pools.pools import HoldTimes
from penstock.domain.pools.shares import LISTING, Share, Use, use_key
from penstock.domain.site.site import Shares
from penstock.domain.users.users import User
from penstock.kernel.rows import Create, Replace
from penstock.listings import every
from penstock.system import System, current_site

TRIES = 5
"""How often a race for an owner's row is tried again."""

T = TypeVar("T")


def take_turn(on: System, job: Job, shares: Shares) -> Job:
    """A new job with its turn. [QUEUE-2]"""
    expected = _expected_seconds(on, job)
    return _write(on, job.owner, lambda use: rules.take_turn(use, job, expected, shares, on.world.now()))


def give_back_turn(on: System, job: Job) -> None:
    """Count no more what was expected of a job that was not accepted. [QUEUE-2]"""
    shares = current_site(on).shares
    if shares:
        _write(on, job.owner, lambda use: (rules.correct(use, job, shares, on.world.now()), None))


def foresee_turn(on: System, job: Job, shares: Shares) -> Job:
    """A planned job with the turn that it would get. Writes nothing."""
    use = on.store.get(use_key(job.owner), Use) or Use(owner=job.owner, at=on.world.now())
    return rules.take_turn(use, job, 0, shares, on.world.now())[1]


def _expected_seconds(on: System, job: Job) -> int:
    last = min(job.request.needs, key=lambda need: need.order)  # its worker; of a lease without a job, its first
    return rules.expected_seconds(job, on.store.get(HoldTimes(pool=last.pool).key, HoldTimes))


def correct_use(on: System, job: Job) -> None:
    """Count what a settled job took, instead of what was expected."""
    if job.is_settled:
        give_back_turn(on, job)


def _write(on: System, owner: str, change: Callable[[Use], tuple[Use, T]]) -> T:
    """Change an owner's use, or give up after some tries; what `change` returned for the row that was read last."""
    for tries in range(TRIES):
        was = on.store.get(use_key(owner), Use)
        now, answer = change(was or Use(owner=owner, at=on.world.now()))
        if on.store.commit([Replace(was, now) if was else Create(now)]):
            break
        on.world.pause(tries)
    return answer


def list_shares(on: System, user: User) -> tuple[Shares | None, list[Share]]:
    """The site's shares, and how those stand who have used something lately: whomever the user may see."""
    shares = current_site(on).shares
    if shares is None:
        return None, []
    found = rules.standings(every(on, LISTING, Use), shares, on.world.now())
    return shares, [share for share in found if user.may_see(share.owner)]
