"""What all jobs cost together: sums of closed bills, for each owner, target and day, and in them for each pool.

The commit that closes a job's bill adds it to one row, of the owner, the target and the day on which the job ended. So
each job is counted once, and no sum drifts. Of each such row there are PARTS; a job's id says to which it belongs. So
those who close many bills at once seldom wait for each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass as plain_dataclass
from dataclasses import replace
from datetime import date, datetime, timedelta
from enum import StrEnum
from typing import ClassVar
from zlib import crc32

from penstock.domain.jobs.jobs import Bill, Charge, Job
from penstock.domain.pools.pools import WORKER
from penstock.domain.site.site import RESOURCE_POOLS, TARGET_POOLS
from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Key, Place, Row

PARTS = 4
"""Over how many rows the jobs of an owner, a target and a day are spread."""

LISTING = "spends"

PREFIX = "day#"
"""How the sort keys of an owner's sums begin."""

KEPT_DAYS = 3 * 366
"""For how many days a sum is kept."""

DAYS_MOST = 366
"""How many days may be asked for at once."""

POOLS_MOST = 100
"""Of how many pools a row has sums of their own. So it stays small on a site with thousands of resource types."""

OTHER = "other"
"""What is under no pool's name: the service, files, pools beyond POOLS_MOST. Names of pools have a slash in them."""


class By(StrEnum):
    """What costs are added up by."""

    OWNER = "owner"
    TARGET = "target"
    DAY = "day"
    POOL = "pool"


@dataclass(frozen=True)
class PoolSpend:
    """What some jobs had of one pool: how many they are, what it cost, and the part while no script ran."""

    pool: str
    jobs: int = 0
    cost: int = 0
    unused: int = 0


@dataclass(frozen=True, kw_only=True)
class Spend(Row):
    """What some jobs cost: of one owner and target, that ended on one day, in one currency. In its millionths.

    `unused` is the part of `worker` and `resources` for what was held while no script ran. `pools` has both once more
    for each pool, by name; rows of releases that did not count them lack it.
    """

    kind: ClassVar[str] = "spend"
    owner: str
    target: str
    day: str
    currency: str
    part: int
    jobs: int = 0
    control: int = 0
    worker: int = 0
    resources: int = 0
    stored: int = 0
    sent: int = 0
    unused: int = 0
    pools: tuple[PoolSpend, ...] = ()

    @property
    def key(self) -> Key:
        return Key(collection(self.owner), f"{PREFIX}{self.day}#{self.currency}#{self.part}#{self.target}")

    @property
    def place(self) -> Place:
        return Place(LISTING, f"{self.day}#{self.owner}#{self.currency}#{self.part}#{self.target}")

    @property
    def expiry(self) -> datetime:
        return datetime.fromisoformat(f"{self.day}T00:00:00+00:00") + timedelta(days=KEPT_DAYS)

    @property
    def total(self) -> int:
        """All that the jobs cost."""
        return self.control + self.worker + self.resources + self.stored + self.sent


def collection(owner: str) -> str:
    """The collection of an owner's sums."""
    return f"spend#{owner}"


def before(day: date) -> str:
    """A sort key before all sums of a day, and behind those of the day before."""
    return f"{PREFIX}{day.isoformat()}"


def place_before(day: date) -> str:
    """A place in the listing before all sums of a day."""
    return day.isoformat()


def row_of(job: Job, bill: Bill, now: datetime) -> Spend:
    """The row that a job's bill is added to, as long as nothing is in it."""
    ended = job.times.settled or now
    return Spend(
        owner=job.owner,
        target=job.request.shown_target,
        day=ended.date().isoformat(),
        currency=bill.currency,
        part=crc32(job.id.encode()) % PARTS,
    )


def add(was: Spend, bill: Bill) -> Spend:
    """Sums with one more bill."""
    worker = sum(charge.cost for charge in bill.charges if charge.order == WORKER)
    return replace(
        was,
        jobs=was.jobs + 1,
        control=was.control + bill.control,
        worker=was.worker + worker,
        resources=was.resources + sum(charge.cost for charge in bill.charges) - worker,
        stored=was.stored + bill.stored,
        sent=was.sent + bill.sent,
        unused=was.unused + bill.unused,
        pools=_with_charges(was.pools, bill.charges),
    )


def _with_charges(was: Iterable[PoolSpend], charges: Iterable[Charge]) -> tuple[PoolSpend, ...]:
    """The sums of pools with those of one more job, which is counted once in each of its pools."""
    found = {each.pool: each for each in was}
    for name, spent in _of_job(charges).items():
        old = found.get(name, PoolSpend(name))
        if name in found or len(found) < POOLS_MOST:
            found[name] = PoolSpend(name, old.jobs + 1, old.cost + spent.cost, old.unused + spent.unused)
    return tuple(found[name] for name in sorted(found))


def _of_job(charges: Iterable[Charge]) -> dict[str, PoolSpend]:
    """What a job had of each pool, by the pool's name."""
    found: dict[str, PoolSpend] = {}
    for charge in charges:
        name = f"{TARGET_POOLS if charge.order == WORKER else RESOURCE_POOLS}{charge.type}"
        old = found.get(name, PoolSpend(name))
        found[name] = PoolSpend(name, 1, old.cost + charge.cost, old.unused + charge.unused_cost)
    return found


COUNTED = ("jobs", "control", "worker", "resources", "stored", "sent", "unused")
"""What is added up."""


@plain_dataclass
class Cost:
    """What the jobs of one owner, target or day cost, or what jobs had of one pool."""

    name: str
    currency: str
    jobs: int = 0
    control: int = 0
    worker: int = 0
    resources: int = 0
    stored: int = 0
    sent: int = 0
    unused: int = 0

    @property
    def total(self) -> int:
        """All of it."""
        return self.control + self.worker + self.resources + self.stored + self.sent

    def take(self, more: Cost) -> None:
        """Add what others cost."""
        for name in COUNTED:
            setattr(self, name, getattr(self, name) + getattr(more, name))


def sums(rows: Iterable[Spend], by: By) -> list[Cost]:
    """The costs by owner, target, day or pool: days in their order, of the others first the dearest.

    By pool, OTHER has all jobs, and what these cost beside their pools. So the sums of all are those by owner, but for
    the number of jobs: a job counts in each of its pools.
    """
    found: dict[tuple[str, str], Cost] = {}
    for row in rows:
        for cost in _by_pool(row) if by is By.POOL else (_whole(row, str(getattr(row, by.value))),):
            found.setdefault((cost.name, cost.currency), Cost(cost.name, cost.currency)).take(cost)
    by_name = sorted(found.values(), key=lambda cost: (cost.name, cost.currency))
    return by_name if by is By.DAY else sorted(by_name, key=lambda cost: -cost.total)


def _whole(row: Spend, name: str) -> Cost:
    return Cost(name, row.currency, **{each: getattr(row, each) for each in COUNTED})


def _by_pool(row: Spend) -> Iterator[Cost]:
    """What a row has of each pool, and what is left of it then."""
    rest = _whole(row, OTHER)
    for each in row.pools:
        kind = "worker" if each.pool.startswith(TARGET_POOLS) else "resources"
        yield Cost(each.pool, row.currency, jobs=each.jobs, unused=each.unused, **{kind: each.cost})
        rest.take(Cost(OTHER, row.currency, unused=-each.unused, **{kind: -each.cost}))
    yield rest
