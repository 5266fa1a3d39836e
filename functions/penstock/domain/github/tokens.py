"""GITHUB_TOKEN: a token of the App's installation for one repository, made when a job asks for it.

GitHub lets it live for an hour. One that is older than FRESH is replaced when it is asked for, and one that is older
than GOOD is not handed out any more: whoever asks waits for the next.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from penstock.domain.values import Value

NAME = "GITHUB_TOKEN"
BY = "GitHub front end"
"""Who puts it. A value of that name that somebody else put is theirs, and left alone: no user's name has a space."""

FRESH = timedelta(minutes=30)
GOOD = timedelta(minutes=55)


def is_fresh(value: Value | None, now: datetime) -> bool:
    """Whether no other token is to be made."""
    return value is not None and (value.by != BY or now - value.time < FRESH)


def is_over(value: Value | None, now: datetime) -> bool:
    """Whether a token is not to be handed out any more."""
    return value is not None and value.by == BY and now - value.time >= GOOD
