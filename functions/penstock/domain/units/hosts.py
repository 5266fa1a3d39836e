"""Hosts: machines that exist already, each with a name of its own, and whether they are connected.

    away ──its agent connects──▶ connected ──silent for a lease, or says goodbye──▶ away

The slot of a connected host is available in the one pool that the host serves, or its slots, if jobs share it. What the
host does as a worker is in the worker's row, not here.
"""

from __future__ import annotations

import hmac
from dataclasses import replace
from datetime import datetime, timedelta
from typing import ClassVar

from penstock.domain.users import users
from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Key, Row

NAME_HINT = "lower-case, and not digits only, like bench-7: it is part of the privilege host.bench-7 too"


def is_name(text: str) -> bool:
    """Whether a text can name a host. Numbers alone are the names of numbered slots."""
    return users.is_name(text) and not text.isdigit()


def slot_name(name: str, part: int) -> str:
    """The name of a host's slot; of one of its parts, counted from 1, if jobs share it."""
    return f"{name}/{part}" if part else name


def privilege(name: str) -> str:
    """The privilege that a user needs to connect a host. [SEC-2]"""
    return f"host.{name}"


@dataclass(frozen=True, kw_only=True)
class Host(Row):
    """A host that has connected. `session`: a hash that identifies its agent; `pool`: where its slot is available.

    `due`: when it counts as away without contact; `away`: since when it does.
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
    """The key of a host's row."""
    return Key(f"host#{name}", "host")


def connect(was: Host | None, host: Host, now: datetime, lease: timedelta) -> Host:
    """A host that connects. A new agent replaces the last one."""
    since = was.since if was and was.away is None and was.session == host.session else now
    return replace(host, since=since, due=now + lease, away=None)


def renew(host: Host, now: datetime, lease: timedelta) -> Host:
    """A host that stays connected. The row is written at most every half lease, and the due index with it."""
    is_fresh = host.due is not None and now + lease - host.due < lease / 2
    return host if is_fresh else replace(host, due=now + lease, indexed=None)


def disconnect(host: Host, now: datetime) -> Host:
    """A host that is away from now on."""
    return replace(host, due=None, away=now)


def is_known(host: Host, session: str) -> bool:
    """Whether this (hashed) session is that of the host's present agent."""
    return hmac.compare_digest(host.session, session)


def is_silent(host: Host, now: datetime) -> bool:
    """Whether a host has not been in contact for a lease."""
    return host.due is None or host.due <= now


def is_lost(host: Host, now: datetime, patience: timedelta) -> bool:
    """Whether a host is away for so long that nobody can say when it comes back."""
    return host.away is not None and now - host.away >= patience


def is_available(host: Host | None, pool: str) -> bool:
    """Whether a host is connected and serves this pool: its slot in another pool must not be leased as well.
    [SLOT-1]
    """
    return host is not None and host.away is None and host.pool == pool
