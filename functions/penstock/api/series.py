"""What pools had over time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated

from penstock.api.app import Caller, Router
from penstock.api.shapes import present, view
from penstock.domain.pools import series as rules
from penstock.domain.pools.series import Counts, Hour
from penstock.domain.users.users import READ
from penstock.kernel.frozen import dataclass
from penstock.system import System
from penstock.usecases.site import apply
from penstock.usecases.telemetry import series

router = Router("pools")

DAY = timedelta(days=1)

DIGITS = 3

EARLIEST = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class CountsView:
    """What a pool had. Of an amount, such as a quota, how much of it."""

    held: Annotated[float, "How many slots jobs had."]
    idle: Annotated[
        float,
        "How many slots had a unit and no job: one that is warm or is being made ahead of need, one that somebody "
        "holds, or one in quarantine.",
    ]
    waiting: Annotated[float, "How many jobs waited for it."]


@dataclass(frozen=True)
class HourView:
    """An hour of a pool. What is not over is counted up to now."""

    start: Annotated[str, "When it began, as RFC 3339."]
    seconds: Annotated[float, "How many seconds of it were counted."]
    limit: Annotated[int, "How many slots the pool had at its end."]
    mean: Annotated[CountsView, "The means over these seconds."]
    most: Annotated[CountsView, "The most that was counted in one minute."]


@dataclass(frozen=True)
class SeriesView:
    """What a pool had, hour by hour. An hour in which nothing was counted is left out."""

    pool: Annotated[str, "The pool's name."]
    since: Annotated[str, "From when on, as RFC 3339."]
    until: Annotated[str, "Until when, as RFC 3339."]
    items: Annotated[list[HourView], "The hours, oldest first. They are kept for 32 days."]


@router.get("/v1/pools/{sort}/{name}/series", "Show what a pool had, hour by hour", READ)
def get_series(
    on: System,
    user: Caller,
    sort: str,
    name: str,
    *,
    since: Annotated[
        datetime | None, "From the hour of this time on, as RFC 3339. By default a day before `until`."
    ] = (None),
    until: Annotated[datetime | None, "Up to the hour of this time, as RFC 3339. By default now."] = None,
) -> SeriesView:
    pool, now = apply.find(on, f"{sort}/{name}"), on.world.now()
    end = until or now
    begin = since or end - max(timedelta(0), min(DAY, end - EARLIEST))
    items = [show(hour, now) for hour in series.hours(on, pool.name, begin, end)]
    return SeriesView(pool.name, present(begin), present(end), items)


def show(row: Hour, now: datetime) -> HourView:
    """An hour of a pool."""
    seconds, mean = rules.means(row, now)
    return view(HourView, row, seconds=round(seconds, DIGITS), mean=_rounded(mean))


def _rounded(mean: Counts) -> CountsView:
    return CountsView(*(round(each, DIGITS) for each in (mean.held, mean.idle, mean.waiting)))
