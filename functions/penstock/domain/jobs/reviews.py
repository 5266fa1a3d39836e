"""Reviews: that somebody has to approve a job for the environment that it asks for. [SEC-2]"""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Key, Place, Row

LISTING = "reviews"


@dataclass(frozen=True)
class Review:
    """That a job waits until somebody approves it for an environment, and who did.

    It waits until `until`, and has `privileges` from when it is approved: those that the environment had when it was
    submitted. `by` is a user, or a login with `github/` before it. `authors` are the users who submitted the job, and
    those that it repeats, but for its owner: none of them approves it.
    """

    environment: str
    until: datetime
    privileges: tuple[str, ...] = ()
    by: str = ""
    authors: tuple[str, ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether nobody has approved yet."""
        return not self.by


@dataclass(frozen=True, kw_only=True)
class ReviewRequest(Row):
    """That a job waits for a review, by which reviewers find it. It goes when somebody decides, or the job ends."""

    kind: ClassVar[str] = "reviewrequest"
    job: str
    environment: str
    until: datetime

    @property
    def key(self) -> Key:
        return review_key(self.job)

    @property
    def place(self) -> Place:
        return Place(LISTING, self.job)

    @property
    def expiry(self) -> datetime:
        return self.until


def review_key(job: str) -> Key:
    """Where it is noted that a job waits for a review."""
    return Key(f"job#{job}", "review")
