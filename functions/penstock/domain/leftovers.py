"""What the account diff decides: when a diff is due, what is a leftover, and what a diff adds up to. [UNIT-1]"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256

from penstock.domain.account import DIGEST, AccountDiff, Checked, Leftover, Thing
from penstock.domain.cooldowns import WHY_CHARS
from penstock.domain.units.units import Unit, UnitState
from penstock.kernel import rows

NIGHT = timedelta(hours=3)
"""When a night's diff begins, after midnight in UTC."""

PERIOD = timedelta(days=1)
"""The time from one night to the next."""

FIRST_WITHIN = timedelta(hours=1)
"""How late the first diff of a deployment may begin. If no sweep comes within that hour, the next night's is the first.
"""

LEFT_AFTER = timedelta(hours=1)
"""How long something may exist without a unit before it is a leftover. Within that time the sweep destroys strays, even
after an outage (GRACE + STRAY_AFTER + 2 COMPARE_EVERY = 21 minutes), and providers delete what they were told to.
"""

AGAIN_AFTER = timedelta(minutes=4)
"""How long after a step nothing was heard of a diff until the sweep sends its message again. A step takes two minutes
at most.
"""

TRIES = 3
"""How often the message of a diff is sent in vain until the factory or well whose turn it is counts as not listed: its
driver ends the process, or takes all the time that there is.
"""

MOST = 100
"""How many leftovers of a diff are kept, with some 500 bytes each. They are counted all."""

TEXT_CHARS = 200
"""How many characters are kept of what a provider calls a thing."""


def _id(time: datetime) -> str:
    return f"{time.astimezone(UTC):%Y%m%dT%H%M%S}"


def night_of(now: datetime) -> datetime:
    """When the last night's diff was to begin."""
    local = now.astimezone(UTC) - NIGHT
    return local.replace(hour=0, minute=0, second=0, microsecond=0) + NIGHT


def is_due(newest: AccountDiff | None, now: datetime) -> bool:
    """Whether a night's diff is to begin: none goes on, and none has begun since the last night did.

    A new deployment, which may have no factories yet, waits for the first hour of a night.
    """
    if newest is None:
        return now - night_of(now) < FIRST_WITHIN
    return newest.finished is not None and newest.began < night_of(now)


def begin(newest: AccountDiff | None, now: datetime) -> AccountDiff:
    """The diff of a night. Its id is that of the night, so there is one however many sweeps begin it."""
    return AccountDiff(id=_id(night_of(now)), began=now, again=now, whole=newest.whole if newest else now)


def ask(newest: AccountDiff | None, now: datetime, by: str) -> AccountDiff:
    """A diff that somebody wants now. The next sweep sends its message."""
    return AccountDiff(id=_id(now), began=now, by=by, again=now, whole=newest.whole if newest else now)


def is_silent(diff: AccountDiff, now: datetime) -> bool:
    """Whether a diff's message is to be sent: for the first time, or because a step was lost."""
    return diff.finished is None and diff.again <= now


def sent(diff: AccountDiff, now: datetime) -> AccountDiff:
    """A diff whose message is sent."""
    return replace(diff, again=now + AGAIN_AFTER, tries=diff.tries + 1)


def find_leftovers(
    maker: str, things: Iterable[Thing], units: Mapping[str, Unit], others: Collection[str], now: datetime
) -> tuple[Checked, list[Leftover]]:
    """What one factory or well lists, compared with the units that were read after it; the oldest leftovers first.

    `others` are the names of all factories, or of all wells: each says itself what it made.
    """
    named = [replace(each, maker=_known(each.maker, others)) for each in things]
    own = [each for each in named if each.maker == _name(maker) or each.maker not in others]
    found = [left for each in own if (left := _judge(maker, each, units.get(each.unit), now))]
    return Checked(len(own), len(found)), sorted(found, key=_by_age)


def _known(maker: str, others: Collection[str]) -> str:
    """The name of a maker that is known only by its digest, if the site still has it; else what is known."""
    if not maker.startswith(DIGEST):
        return maker
    digest = maker.removeprefix(DIGEST)
    return next((each for each in others if sha256(each.encode()).hexdigest().startswith(digest)), maker)


def _judge(maker: str, thing: Thing, unit: Unit | None, now: datetime) -> Leftover | None:
    """The leftover that a thing is, or None. What is young may still be destroyed by the sweep, or be deleted."""
    if unit and unit.state is not UnitState.GONE:
        return None
    made = thing.made or _ordered(thing.unit)
    times = [made, thing.until, unit.since if unit else None]
    last = max((time for time in times if time), default=None)
    if last and now - last < LEFT_AFTER:
        return None
    by = f"{maker.partition('/')[0]}/{thing.maker}" if thing.maker else maker
    return Leftover(by, _clip(thing.kind), _clip(thing.id), _clip(thing.unit), made, _why(thing, unit))


def _ordered(unit: str) -> datetime | None:
    """When a unit got its id, which is before anything was made for it; None for another id."""
    ulid = rows.ulid_in(unit)
    return rows.born(ulid) if ulid else None


def _why(thing: Thing, unit: Unit | None) -> str:
    if not thing.unit:
        return "its tags name no unit"
    return "its unit is gone" if unit else "there is no row of its unit"


def _clip(text: str) -> str:
    return text[:TEXT_CHARS]


def _name(maker: str) -> str:
    return maker.partition("/")[2]


def _by_age(left: Leftover) -> tuple[datetime, str, str]:
    """Those of unknown age come first: nobody can say that they are young."""
    return (left.made or rows.EPOCH, left.kind, left.id)


def unlisted(why: str) -> Checked:
    """A factory or well whose list could not be had. That is no zero."""
    return Checked(why=why[:WHY_CHARS])


def with_maker(
    diff: AccountDiff, maker: str, checked: Checked, found: Sequence[Leftover], now: datetime
) -> AccountDiff:
    """The diff with one more factory or well. What another one listed already is not counted again."""
    known = {(each.kind, each.id) for each in diff.leftovers}
    new = [each for each in found if (each.kind, each.id) not in known]
    counted = replace(checked, left=checked.left - (len(found) - len(new)))
    kept = sorted((*diff.leftovers, *new), key=_by_age)[:MOST]
    return replace(
        diff, makers={**diff.makers, maker: counted}, leftovers=tuple(kept), again=now + AGAIN_AFTER, tries=0
    )


def finish(diff: AccountDiff, now: datetime) -> AccountDiff:
    """The diff when all factories and wells are done."""
    return replace(diff, finished=now, whole=diff.whole if diff.unlisted else diff.began)
