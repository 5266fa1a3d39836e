"""What all jobs of an owner, or of everybody, cost in some days. The sums are those of domain/costs.py."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import chain, islice, takewhile

from penstock.domain import costs
from penstock.domain.costs import By, Cost, Spend
from penstock.domain.jobs.jobs import Bill, Job
from penstock.domain.users.users import User, is_name
from penstock.kernel.errors import Refused
from penstock.kernel.rows import Change, Create, Replace
from penstock.listings import every, every_of
from penstock.system import System

ROWS_MOST = 20_000
"""How many rows one request adds up: a second or two."""


def add(on: System, job: Job, bill: Bill) -> list[Change]:
    """The change to write with a job's closed bill: it is added to the sums, once."""
    fresh = costs.row_of(job, bill, on.world.now())
    was = on.store.get(fresh.key, Spend)
    return [Replace(was, costs.add(was, bill)) if was else Create(costs.add(fresh, bill))]


def list_costs(
    on: System, user: User, by: By, since: datetime | None, until: datetime | None, owner: str | None
) -> tuple[date, date, list[Cost]]:
    """The first and the last day, and what jobs cost that ended then: an owner's; else for operators everybody's, and
    for others their own, also of former names. By default since the first day of the month. Raises Refused. [SEC-2]
    """
    last = (until or on.world.now()).astimezone(UTC).date()
    first = since.astimezone(UTC).date() if since else last.replace(day=1)
    if not timedelta(0) <= last - first < timedelta(days=costs.DAYS_MOST):
        raise Refused(400, "bad-request", f"`since` and `until` are from 0 to {costs.DAYS_MOST - 1} days apart")
    if owner and not user.may_see(owner):
        raise Refused(403, "privilege-missing", f"the costs of {owner[:200]} are for operators")
    if owner and not is_name(owner):
        raise Refused(400, "bad-request", "owner is the name of a user")
    own = chain.from_iterable(of_owner(on, name, first, last) for name in ((owner,) if owner else user.names))
    rows = _of_all(on, first, last) if user.is_admin and not owner else own
    found = list(islice((row for row in rows if user.may_see(row.owner)), ROWS_MOST + 1))
    if len(found) > ROWS_MOST:
        raise Refused(413, "too-many-costs", f"these are more than {ROWS_MOST} rows: ask for fewer days, or one owner")
    return first, last, costs.sums(found, by)


def of_owner(on: System, owner: str, first: date, last: date) -> Iterator[Spend]:
    """The sums of an owner's jobs that ended on some days, day by day."""
    rows = every_of(on, costs.collection(owner), costs.PREFIX, Spend, costs.before(first))
    return takewhile(lambda row: row.day <= last.isoformat(), rows)


def _of_all(on: System, first: date, last: date) -> Iterator[Spend]:
    """The sums of everybody's jobs that ended on some days, day by day."""
    rows = every(on, costs.LISTING, Spend, costs.place_before(first))
    return takewhile(lambda row: row.day <= last.isoformat(), rows)
