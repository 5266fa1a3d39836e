"""What a fake cloud does wrong: each is a knob that is off until it is turned."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from random import Random

from penstock.kernel.errors import DriverError, Misconfigured, NoCapacity, QuotaReached, RateLimited
from penstock.ports import Order
from penstock.testing.fake.offers import Offer

ERRORS: Sequence[Callable[[], DriverError]] = (
    lambda: RateLimited("too many requests", 30),
    lambda: QuotaReached("the account is full"),
    lambda: NoCapacity("none left"),
    lambda: Misconfigured("no such image"),
)
"""What a call that is refused by chance raises, one of them, each as often."""


@dataclass(frozen=True)
class Ailment:
    """What one machine suffers from. Times are seconds from when it was made; None is never."""

    boot: float = 0.0  # until anything works on it
    is_mute: bool = False  # nothing of ours ever runs on it: the agent is missing, or it is broken from birth
    breaks: float | None = None  # when it stops doing anything, though it still exists
    reports: float | None = None  # when it says of itself that it is broken
    crash: float | None = None  # how far into a job its agent crashes, and takes the machine down
    reclaimed: float | None = None  # when the provider takes it back
    notice: float = 0.0  # how long before that it is told so
    cut: tuple[float, float] | None = None  # from when until when its network reaches nobody


@dataclass(frozen=True)
class Birth:
    """A machine that is about to be made: the how-manieth of its cloud, how, for what, and when."""

    number: int
    offer: Offer
    order: Order
    now: datetime


def healthy(birth: Birth, dice: Random) -> Ailment:
    """No machine suffers from anything."""
    del birth, dice
    return Ailment()


@dataclass(frozen=True)
class Faults:
    """How a cloud's calls fail. Chances are from 0 to 1, times in seconds."""

    create: float = 0.0  # that a create is refused, with one of `errors`
    destroy: float = 0.0
    clean: float = 0.0
    list: float = 0.0
    errors: Sequence[Callable[[], DriverError]] = ERRORS
    unsatisfiable: float = 0.0  # of the creates that are refused: that it can never work
    slow: float = 0.0  # that a call is not done yet
    lost: float = 0.0  # that the answer of a create is lost: there is a machine, and the caller sees an error
    twice: float = 0.0  # that one create makes two machines
    lingers: float = 0.0  # that a machine does not die at first
    linger: float = 60.0  # how long it then takes
    stale: float = 0.0  # that a list misses what is newest
    lag: float = 0.0  # for how long lists miss a new machine
    unseen: float = 0.0  # for how long a look for one unit, too, misses what was just made of it
    ghost: float = 0.0  # for how long lists show a machine that is gone
    create_every: float = 0.0  # how far apart two creates must be; the sooner one is RateLimited
    list_every: float = 0.0  # the same for lists
    quota: int | None = None  # how many machines factories may have
    short: Collection[str] = ()  # scopes of which there is none: a type, a zone, a market, one way, or all
    forgets: bool = False  # that a create makes another machine after the first is gone: there are no client tokens
    ailing: Callable[[Birth, Random], Ailment] = healthy  # what each machine suffers from
