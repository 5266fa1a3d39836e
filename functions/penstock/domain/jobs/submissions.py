"""Which requests to submit were answered: the same Idempotency-Key gives the same job again."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import ClassVar

from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Key, Row

SUBMISSION_KEPT = timedelta(days=1)
"""How long an Idempotency-Key is remembered."""


@dataclass(frozen=True, kw_only=True)
class Submission(Row):
    """An accepted submission: its owner's Idempotency-Key, and the digest of the request."""

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
        return self.time + SUBMISSION_KEPT


def submission_key(owner: str, key_digest: str) -> Key:
    """The key of the submission with this digest of an Idempotency-Key."""
    return Key(f"submission#{owner}", key_digest)
