"""Hosts: machines that exist already, each with a name of its own, and whether they are there.

    away ──its agent asks──▶ there ──silent for a lease, or says that it leaves──▶ away

A host that is there has its slot in play, in the one pool that it serves. What it does for a worker is in the worker's
row, not here.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import ClassVar

from penstock.domain.users import users
from penstock.kernel.rows import Key, Row

NAME_HINT = "lower-case, and not digits only, like bench-7: it is part of the privilege host.bench-7 too"


def is_name(text: str) -> bool:
    """Whether a text can name a host. Digits alone are how numbered slots are named."""
    return users.is_name(text) and not text.isdigit()


def privilege(name: str) -> str:
    """What a host's user must be granted to speak for it. [SEC-2]"""
    return f"host.{name}"


@dataclass(frozen=True, kw_only=True)
class Host(Row):
    """A machine that was heard of. `session` knows its agent again, by a hash; `pool` is where its slot is in play.

    `due` is when it counts as away if nothing is heard; `away`, since when it does.
    """

    kind: ClassVar[str] = "host"
    name: str
    pool: str
    session: str
    machine: str = ""
    since: datetime
    due: datetime | None = None
    away: datetime | None = None

    @property
    def key(self) -> Key:
        return host_key(self.name)

    @property
    def deadline(self) -> datetime | None:
        return self.due


def host_key(name: str) -> Key:
    """Where a host's row is."""
    return Key(f"host#{name}", "host")


def connect(was: Host | None, host: Host, now: datetime, lease: timedelta) -> Host:
    """A host that is there from now on. A new agent takes the place of the last."""
    since = was.since if was and was.away is None and was.session == host.session else now
    return replace(host, since=since, due=now + lease, away=None, version=was.version if was else 0)


def renew(host: Host, now: datetime, lease: timedelta) -> Host:
    """A host that is there and was heard of again; half a lease is soon enough to write it."""
    is_fresh = host.due is not None and now + lease - host.due < lease / 2
    return host if is_fresh else replace(host, due=now + lease)


def disconnect(host: Host, now: datetime) -> Host:
    """A host that is away from now on."""
    return replace(host, due=None, away=now)


def is_known(host: Host, session: str) -> bool:
    """Whether a host's present agent has this session (hashed)."""
    return hmac.compare_digest(host.session, session)


def is_silent(host: Host, now: datetime) -> bool:
    """Whether nothing was heard of a host for a lease."""
    return host.due is None or host.due <= now


def is_available(host: Host | None, pool: str) -> bool:
    """Whether a host is there, and serves this pool: its slot in another is not to be leased as well. [SLOT-1]"""
    return host is not None and host.away is None and host.pool == pool
