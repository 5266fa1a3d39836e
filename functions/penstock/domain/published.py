"""Published files: outputs that got a name for good. A name has an owner, a series, a version and a last part.

    (nothing) ──publish──▶ published ──unpublish──▶ withdrawn ──publish, the same bytes──▶ published

A name never stands for other bytes than the first that it was given: what is withdrawn keeps its digest. [ART-1]
Who may read is said for each series, or for all of an owner's that say nothing; what nobody said anything of is public.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import ClassVar

from penstock.domain.artifacts.artifacts import PUBLISHED, owner
from penstock.domain.jobfile import Publish
from penstock.domain.jobs.jobs import Publication
from penstock.domain.users.users import User
from penstock.kernel.errors import Fault, Refused
from penstock.kernel.rows import Key, Row

COMMIT = "GITHUB_SHA"
"""The variable of a job that names the commit that it is about: the version of what it publishes."""

ALL_SERIES = "*"
"""Stands for all series of an owner of which nothing else is said."""

MAX_SERIES = 200
"""Of how many series an owner may say who may read them."""

_PART = re.compile(r"[0-9A-Za-z._-]{1,100}")


class Access(StrEnum):
    """Who may read a series."""

    PUBLIC = "public"  # anybody, without a token
    PRIVATE = "private"  # who may see the owner's jobs
    PRIVILEGE = "privilege"  # they, and who has the privilege


@dataclass(frozen=True, kw_only=True)
class Published(Row):
    """A name that was given. `size` in bytes, `sha256` in hex; `path` and `job` are where it came from; `by` did it.

    `withdrawn` is since when it is not published any more, and `withdrawn_by` who did that.
    """

    kind: ClassVar[str] = "published"
    of: str
    series: str
    version_name: str
    name: str
    artifact: str
    size: int
    sha256: str
    path: str
    job: str
    by: str
    time: datetime
    withdrawn: datetime | None = None
    withdrawn_by: str = ""

    @property
    def key(self) -> Key:
        return published_key(self.of, self.series, self.version_name, self.name)

    @property
    def full(self) -> str:
        """What it is called: owner, series, version and name."""
        return f"{self.of}/{self.series}/{self.version_name}/{self.name}"

    @property
    def owner(self) -> str:
        """What the artifact calls its owner."""
        return owner(PUBLISHED, self.full)


@dataclass(frozen=True, kw_only=True)
class Series(Row):
    """Who may read a series of an owner's, or all of which nothing else is said."""

    kind: ClassVar[str] = "series"
    of: str
    name: str
    access: Access
    privilege: str = ""

    @property
    def key(self) -> Key:
        return series_key(self.of, self.name)


def collection(of: str) -> str:
    """Where the rows of all that somebody published are."""
    return f"published#{of}"


def published_key(of: str, series: str, version: str, name: str) -> Key:
    """Where a published name's row is."""
    return Key(collection(of), f"file#{series}#{version}#{name}")


def series_key(of: str, name: str) -> Key:
    """Where it is said who may read a series."""
    return Key(collection(of), f"series#{name}")


def is_part(text: str) -> bool:
    """Whether a text can be a series, a version or a name. What is only dots means something else in a path."""
    return _PART.fullmatch(text) is not None and bool(text.strip("."))


def resolve(asked: Iterable[Publish], env: Mapping[str, str], job: str) -> tuple[Publication, ...] | Refused:
    """What a job is to publish, with its version: the one that its file says, or its commit, or its own id."""
    found, faults = [], []
    for number, each in enumerate(asked):
        made = Publication(each.from_output, each.series, each.version or env.get(COMMIT) or job, each.name)
        found.append(made)
        for key, part in (("series", made.series), ("version", made.version), ("name", made.name)):
            if not is_part(part):
                said = f"publish: `{part[:100]}` cannot be a {key}; it has 1 to 100 of A-Z a-z 0-9 . _ -"
                hint = f"without `version` it is the commit in {COMMIT}" if key == "version" else None
                faults.append(Fault(said, where=f"publish[{number}].{key}", hint=hint))
    return (
        Refused(400, "bad-request", "what the job is to publish cannot be named so", faults) if faults else tuple(found)
    )


def has_content(row: Published, size: int, sha256: str) -> bool:
    """Whether a name stands, or stood, for these bytes."""
    return (row.size, row.sha256) == (size, sha256)


def already_taken(row: Published) -> Refused:
    """The refusal of other bytes for a name that was given: it says what is there."""
    since = f"withdrawn by {row.withdrawn_by}" if row.withdrawn else "published"
    there = f"{row.size} bytes with the SHA-256 {row.sha256}, from {row.path} of job {row.job}"
    why = f"{row.full} was given other bytes: {there}, at {row.time:%Y-%m-%d %H:%M} UTC, and is {since}"
    hint = "a name is given once; publish under another version"
    return Refused(409, "published-otherwise", f"{why}; {hint}")


def withdrawn(row: Published) -> Refused:
    """The refusal of what was withdrawn."""
    return Refused(
        410, "withdrawn", f"{row.full} was withdrawn by {row.withdrawn_by} at {row.withdrawn:%Y-%m-%d %H:%M} UTC"
    )


def withdraw(row: Published, by: str, now: datetime) -> Published:
    """A name that is not published any more, and keeps what it stood for."""
    return replace(row, withdrawn=now, withdrawn_by=by)


def may_read(user: User | None, of: str, series: str, said: Sequence[Series]) -> bool:
    """Whether somebody, or (None) anybody, may read a series. `said` is all that its owner said. [SEC-2]"""
    rules = {each.name: each for each in said}
    rule = rules.get(series) or rules.get(ALL_SERIES)
    if rule is None or rule.access is Access.PUBLIC:
        return True
    if user is None:
        return False
    return user.may_see(of) or (rule.access is Access.PRIVILEGE and user.may(rule.privilege))
