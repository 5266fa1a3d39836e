"""GITHUB_TOKEN: an installation token of the App for one repository, made when a job asks for it.

GitHub accepts it for an hour. A token older than RENEW_AFTER is replaced when a job asks for it. One older than
USABLE_FOR is not handed out any more: the job waits for the next. When the job has settled the token is revoked.
[SEC-1]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import ClassVar

from penstock.domain.github.commits import pause
from penstock.domain.jobs.store import Value
from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Key, Row

NAME = "GITHUB_TOKEN"
BY = "GitHub front end"
"""Who puts it. A value of that name that somebody else put is theirs, and left alone: no user's name has a space."""

RENEW_AFTER = timedelta(minutes=30)
USABLE_FOR = timedelta(minutes=55)
LIFE = timedelta(hours=1)
"""How long GitHub takes one. Source: GitHub, "Generating an installation access token"."""

RECHECK_INTERVAL = timedelta(minutes=10)
"""How often to check whether a token's job has settled, if no message said so."""


@dataclass(frozen=True, kw_only=True)
class Minted(Row):
    """A token that a job was given, sealed for whoever revokes it: it is due until that is done, or its life is over.

    It is written before the job is given the token, so nobody has one of which nobody knows. [SEC-1]
    """

    kind: ClassVar[str] = "minted"
    job: str
    id: str
    installation: int
    sealed: str
    made: datetime
    tries: int = 0
    due: datetime | None = None

    @property
    def key(self) -> Key:
        return minted_key(self.job, self.id)

    @property
    def deadline(self) -> datetime | None:
        return self.due

    @property
    def expiry(self) -> datetime:
        return self.made + 2 * LIFE


def minted_key(job: str, id: str) -> Key:
    """Where it is noted that a token was made for a job."""
    return Key(f"job#{job}", f"minted#{id}")


def sealed_as(job: str, id: str) -> Mapping[str, str]:
    """What a token is sealed as for whoever revokes it."""
    return {"job": job, "minted": id}


def is_dead(minted: Minted, now: datetime) -> bool:
    """Whether GitHub takes a token no more, whoever shows it."""
    return now - minted.made >= LIFE


def recheck(minted: Minted, now: datetime) -> Minted:
    """A token whose job goes on: it is checked again later."""
    return replace(minted, due=now + RECHECK_INTERVAL)


def count_try(minted: Minted, now: datetime) -> Minted:
    """A token that is being revoked. A failure is retried."""
    return replace(minted, tries=minted.tries + 1, due=now + pause(minted.tries))


def is_fresh(value: Value | None, now: datetime) -> bool:
    """Whether the token is young enough, or somebody else's value."""
    return value is not None and (value.by != BY or now - value.time < RENEW_AFTER)


def is_expired(value: Value | None, now: datetime) -> bool:
    """Whether a token is too old to hand out."""
    return value is not None and value.by == BY and now - value.time >= USABLE_FOR
