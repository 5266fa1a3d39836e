"""On which target a job runs that names a family, or says what it needs of its machine: as it is when it is submitted.

Nothing is reserved: by the time its claim comes, somebody else may have the warm worker that it was sent to. Then the
job gets a new worker there, or waits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from penstock.domain.jobfile.machine import Machine
from penstock.domain.pools import grants
from penstock.domain.pools.pools import WORKER, Claim, HoldTimes, Need
from penstock.domain.site import machines, sharing
from penstock.domain.site.machines import Stand, Standing, Taken
from penstock.domain.site.site import Site, Target
from penstock.kernel.errors import Refused
from penstock.kernel.frozen import dataclass
from penstock.system import System
from penstock.usecases.pools import scheduler


@dataclass(frozen=True)
class Asker:
    """For whom a target is chosen. `may_use`: whether the owner has the privilege that a target needs. [SEC-2]

    `fresh`: its worker is made as the job says, so that no warm one serves it. `needs`: what its machine is to have.
    """

    owner: str
    may_use: Callable[[Target], bool]
    fresh: bool = False
    needs: Machine = Machine()


def choose(on: System, site: Site, asker: Asker, asked: Target) -> Taken | Refused:
    """The target on which a job is to run: of a family one of its members. Refused if none fits."""
    needs = asker.needs
    if not asked.machines:
        return machines.check_plain(asked, needs, site.targets.values())
    members = site.members(asked)
    fits = machines.fitting(members, needs, asker.may_use)
    if not fits:
        return machines.refuse(asked.name, members, needs)
    band = machines.in_band(fits, needs, asked.price_band or 1)
    first = Standing(fits[0], Stand.BUSY) if len(fits) == 1 else _soonest(on, site, asker, band)
    others = fits[len(band) :] if first.stand is not Stand.WARM else []
    warm = _warm_instead(on, site, asker, first.target, others) if others else None
    if warm:
        return Taken(warm, machines.explain_warm(asked, needs, warm, first.target))
    return Taken(first.target, machines.explain(asked, needs, first, fits[0]))


def _soonest(on: System, site: Site, asker: Asker, band: Sequence[Target]) -> Standing:
    return machines.soonest([Standing(target, stand_of(on, site, asker, target)) for target in band])


def _warm_instead(on: System, site: Site, asker: Asker, taken: Target, others: Sequence[Target]) -> Target | None:
    """The cheapest of those that cost more which has a warm worker for less than a new one would cost."""
    times = on.store.get(HoldTimes(pool=taken.pool).key, HoldTimes)
    worth = machines.worth_it(taken, others, asker.needs, times)
    return next((each for each in worth if stand_of(on, site, asker, each) is Stand.WARM), None)


def stand_of(on: System, site: Site, asker: Asker, target: Target) -> Stand:
    """How soon a job would have a worker of a target, with all that the worker uses."""
    claims = _claims(on, site, asker, target)
    stocks = scheduler.look(on, claims)
    found = grants.pick_at_once(claims, stocks) if stocks else None
    if found is None:
        return Stand.BUSY
    warm = [] if asker.fresh else stocks[target.pool].warm_for(claims[0])
    return Stand.WARM if warm and warm[0].since else Stand.FREE


def _claims(on: System, site: Site, asker: Asker, target: Target) -> list[Claim]:
    """What a worker of a target would claim, as if a job of the owner asked for it now."""
    plain = Need(WORKER, WORKER, "worker", target.name, target.pool, "", uses=site.takes(target.uses))
    need = sharing.of_shared(plain, target, asker.needs) if target.share else plain
    takes = need.takes
    return [
        Claim(
            pool=pool,
            job="",
            attempt=0,
            step=WORKER,
            count=count,
            pools=tuple(takes),
            priority=0,
            since=on.world.now(),
            takes=(takes,),
            choices=(need.choice,) if need.choice else (),
            owner=asker.owner,
            fresh=asker.fresh,
        )
        for pool, count in takes.items()
    ]
