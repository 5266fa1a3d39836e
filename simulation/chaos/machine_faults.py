"""How often machines and the cloud's calls fail: the figures.

Arvados' test counts in milliseconds of real time, with a boot timeout of 150; ours is 300 s, so one of its milliseconds
is two seconds here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from random import Random

from penstock.kernel.errors import DriverError, Misconfigured, NoCapacity, QuotaReached, RateLimited, Unknown
from penstock.testing.fake import Ailment, Birth, Faults
from simulation.chaos.scenario import MACHINES, MACHINES_HARD

SICK_FOR = timedelta(seconds=600)
"""For how long after the first of its type every machine of type 4 is broken from birth: twice the boot timeout."""

CRASH = 0.1
RECLAIMED = 0.08
CUT = 0.06
NOTICE = 120


class Ailing:
    """Draws what each machine of one cloud suffers from; of those that are not of type 4 three in seven are bad."""

    def __init__(self, *, is_hard: bool) -> None:
        self._is_hard = is_hard
        self._first: datetime | None = None
        self._others = 0

    def __call__(self, birth: Birth, dice: Random) -> Ailment:
        """The faults of one machine."""
        boot = dice.uniform(5, 15) if not self._is_hard or dice.random() < 0.9 else dice.uniform(60, 400)
        if not birth.order.is_worker:
            return Ailment()
        if birth.offer.type == "4":
            self._first = self._first or birth.now
            if birth.now < self._first + SICK_FOR:
                return Ailment(boot, is_mute=True)
        ailment = self._other(boot, dice)
        return self._harder(ailment, birth, dice) if self._is_hard else ailment

    def _other(self, boot: float, dice: Random) -> Ailment:
        turn = self._others % 7
        self._others += 1
        if turn == 0:
            return Ailment(boot, breaks=dice.uniform(0, 180))
        if turn == 1:
            return Ailment(boot, is_mute=True)
        if turn == 2:
            return Ailment(boot, reports=dice.uniform(0, 400))
        if dice.random() >= CRASH:
            return Ailment(boot)
        return Ailment(boot, crash=dice.choice((0.0, dice.uniform(0, 60))))

    def _harder(self, ailment: Ailment, birth: Birth, dice: Random) -> Ailment:
        if birth.offer.market == "spot" and dice.random() < RECLAIMED:
            notice = dice.choice((0, NOTICE))
            ailment = replace(ailment, reclaimed=notice + dice.uniform(10, 200), notice=notice)
        if dice.random() < CUT:
            start = ailment.boot + dice.uniform(0, 100)
            ailment = replace(ailment, cut=(start, start + dice.choice((20, 60, 200, 900))))
        return ailment


def _unknown() -> DriverError:
    return Unknown("an internal error occurred", "InternalError")


MIXED: Sequence[Callable[[], DriverError]] = (
    *[_unknown] * 6,
    lambda: RateLimited("too many requests", 20),
    lambda: QuotaReached("the account is full"),
    lambda: NoCapacity("none left"),
    lambda: Misconfigured("no such image"),
)


def faults(*, is_hard: bool) -> Faults:
    """How the cloud's calls fail: one in ten creates and destroys, never a machine of type 6, ten machines at most."""
    like_arvados = Faults(
        create=0.1, destroy=0.1, errors=(_unknown,), create_every=0.2, quota=MACHINES, short=("fake/type/6",),
        ailing=Ailing(is_hard=is_hard),
    )  # fmt: skip
    if not is_hard:
        return like_arvados
    return replace(
        like_arvados, errors=MIXED, quota=MACHINES_HARD,
        clean=0.1, list=0.1, slow=0.1, lost=0.05, twice=0.04, lingers=0.2, linger=90.0,
        stale=0.2, lag=20.0, ghost=30.0, list_every=0.1,
    )  # fmt: skip
