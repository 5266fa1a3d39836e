"""What is remembered of requests: that a job was submitted, and that somebody is watching one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar

from penstock.kernel.rows import Key, Row

REMEMBERED = timedelta(days=1)
"""How long an Idempotency-Key is remembered."""

WATCHED = timedelta(seconds=30)
"""How long after somebody read a job's log it counts as watched."""


@dataclass(frozen=True, kw_only=True)
class Submission(Row):
    """A submit that was accepted, by its owner's Idempotency-Key and the digest of what was asked."""

    kind: ClassVar[str] = "submission"
    owner: str
    key_digest: str
    request_digest: str
    job: str
    time: datetime

    @property
    def key(self) -> Key:
        return submission_key(self.owner, self.key_digest)

    @property
    def expiry(self) -> datetime:
        return self.time + REMEMBERED


@dataclass(frozen=True, kw_only=True)
class Watch(Row):
    """Somebody reads a job's log: its agent hurries until then."""

    kind: ClassVar[str] = "watch"
    job: str
    until: datetime

    @property
    def key(self) -> Key:
        return watch_key(self.job)

    @property
    def expiry(self) -> datetime:
        return self.until


def submission_key(owner: str, key_digest: str) -> Key:
    """Where the submission with an Idempotency-Key of this digest is."""
    return Key(f"submission#{owner}", key_digest)


def watch_key(job: str) -> Key:
    """Where it is noted that a job is watched."""
    return Key(f"job#{job}", "watch")
