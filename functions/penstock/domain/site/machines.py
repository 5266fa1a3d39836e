"""Which target of a family a job runs on: the cheapest that fits what it needs of its machine.

A *family* is a target that stands for several, its members. A job that names it gets one of them when it is submitted:

1. Of the members that fit, the cheapest. Of those that cost the same, the first in the site's list.
2. With a price band, of those that cost at most so many times as much: one with a warm worker, else one with a free
   slot, else the cheapest.
3. If that one has no warm worker for the job, but one that costs more has, that serves, if it is cheaper than a new
   worker: a new one has to boot, and boots are paid for too.

Members of which the site has none, or that the owner may not use, are passed over if another fits.
docs/decisions/0102-machines-by-need.md
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum

from penstock.domain.jobfile.machine import Lack, Machine, lacking
from penstock.domain.pools.pools import HoldTimes
from penstock.domain.site.sharing import parts_for
from penstock.domain.site.site import Target
from penstock.kernel.errors import Fault, Refused
from penstock.kernel.frozen import dataclass

MAX_NAMED = 10
"""How many targets a refusal names."""


class Stand(IntEnum):
    """How soon a job would start on a target, the soonest first."""

    WARM = 0  # a worker is there already that serves it
    FREE = 1  # a worker would be made for it at once
    BUSY = 2  # it would wait


@dataclass(frozen=True)
class Taken:
    """The target on which a job is to run, and why, as a sentence; "" where nothing was to be chosen."""

    target: Target
    why: str = ""


@dataclass(frozen=True)
class Standing:
    """A target, and how soon a job would start there."""

    target: Target
    stand: Stand


def price_of(target: Target, needs: Machine) -> int:
    """What a worker costs a job in an hour, as the site says, in millionths: of a host that jobs share its parts."""
    price, share = target.price or 0, target.share
    return price * parts_for(needs, target.machine or Machine(), share.parts) // share.parts if share else price


def fitting(members: Iterable[Target], needs: Machine, may_use: Callable[[Target], bool]) -> list[Target]:
    """The members that a job could run on, the cheapest first. None if none fits."""
    fits = [member for member in members if not lacking(needs, member.machine or Machine())]
    usable = [member for member in fits if member.limit and may_use(member)]
    return sorted(usable or fits, key=lambda member: price_of(member, needs))


def in_band(found: Sequence[Target], needs: Machine, band: float) -> list[Target]:
    """Of the targets that fit, those that cost at most so many times as much as the cheapest."""
    return [target for target in found if price_of(target, needs) <= price_of(found[0], needs) * band]


def soonest(found: Sequence[Standing]) -> Standing:
    """Where a job starts first; of several the cheapest, which comes first."""
    return min(found, key=lambda each: each.stand)


def worth_it(taken: Target, others: Sequence[Target], needs: Machine, times: HoldTimes | None) -> list[Target]:
    """The targets of which a warm worker is cheaper than a new one of `taken`, the cheapest first.

    `times` are those of `taken`: a job costs there the price for as long as others used a worker, and for a boot. On a
    warm worker it is expected to take as long, and no boot. Empty while no boot was measured.
    """
    if times is None or not times.boots:
        return []
    new = price_of(taken, needs) * (times.mean_use + times.mean_boot)
    return [target for target in others if price_of(target, needs) * times.mean_use < new]


def explain(family: Target, needs: Machine, found: Standing, cheapest: Target) -> str:
    """Why one of a family's targets was taken, where it was the price or how soon it has a worker."""
    fits = f" that fits {needs}" if needs.said else ""
    name = found.target.name
    if found.target == cheapest:
        return f"{name} is the cheapest of {family.name}{fits}"
    has = "a warm worker" if found.stand is Stand.WARM else "a free slot"
    return f"{name} has {has}, and its price is in the band of {cheapest.name}, the cheapest of {family.name}{fits}"


def explain_warm(family: Target, needs: Machine, found: Target, instead: Target) -> str:
    """Why a warm worker of one target was taken instead of a new one of another."""
    fits = f" and fit {needs}" if needs.said else ""
    better = f"{found.name} has a warm worker, which is cheaper than a new one of {instead.name}"
    return f"{better}; both are of {family.name}{fits}"


def refuse(asked: str, members: Sequence[Target], needs: Machine) -> Refused:
    """The refusal of what none of these targets fits: with the nearest, and what is too much for it."""
    lacks = [(member, lacking(needs, member.machine or Machine())) for member in members]
    nearest, missing = min(lacks, key=lambda each: (_distance(each[1]), each[0].price or 0))
    said = "; ".join(map(str, missing))
    text = f"no machine of {asked} fits {needs}"
    hint = f"the nearest is {nearest.name}: {said}"
    return Refused(422, "unsatisfiable", f"{text}: {hint}", [Fault(text, where="machine", hint=hint)])


def _distance(lacks: Sequence[Lack]) -> float:
    return sum(lack.part for lack in lacks)


def refuse_unknown(target: Target, needs: Machine, others: Iterable[Target]) -> Refused:
    """The refusal of needs where the site does not say what a target's machines have."""
    known = [each.name for each in others if each.machines or each.machine]
    text = f"target {target.name} does not say what its machines have, so it cannot be told whether they fit {needs}"
    hint = f"name one that does: {', '.join(known[:MAX_NAMED])}" if known else "no target says it: take `machine` out"
    return Refused(422, "unsatisfiable", f"{text}: {hint}", [Fault(text, where="machine", hint=hint)])


def check_plain(target: Target, needs: Machine, others: Iterable[Target]) -> Taken | Refused:
    """A target that is no family, if its machines fit."""
    if needs.said and target.machine is None:
        return refuse_unknown(target, needs, others)
    if lacking(needs, target.machine or Machine()):
        return refuse(target.name, [target], needs)
    return Taken(target)
