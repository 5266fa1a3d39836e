"""Published files: outputs with a permanent name. A name has an owner, a series, a version and a last part.

    (nothing) ──publish──▶ published ──unpublish──▶ withdrawn ──publish, the same bytes──▶ published

A name stands only for the bytes that it was first given: a withdrawn name keeps its digest. [ART-1] Read access is set
for each series, or for all other series of an owner; without a setting it is public.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from typing import ClassVar

from penstock.domain.artifacts.artifacts import PUBLISHED, owner
from penstock.domain.artifacts.content import Content
from penstock.domain.jobfile import Publish
from penstock.domain.jobs.jobs import Publication
from penstock.domain.users.users import User
from penstock.kernel.errors import Fault, Refused
from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Key, Row

COMMIT = "GITHUB_SHA"
"""The variable with a job's commit, which is the default version of what it publishes."""

ALL_SERIES = "*"
"""Stands for all series of an owner without a setting of their own."""

MAX_SERIES = 200
"""For how many series an owner may set who may read them."""

_PART = r"[0-9A-Za-z._-]{1,100}"


class Access(StrEnum):
    """Who may read a series."""

    PUBLIC = "public"  # anybody, without a token
    PRIVATE = "private"  # who may see the owner's jobs
    PRIVILEGE = "privilege"  # they, and who has the privilege


@dataclass(frozen=True, kw_only=True)
class Published(Row):
    """A published name. `size` in bytes; `path` and `job`: its source; `by`: who published it.

    `sha256` or, for a file that was sent in parts, `composite`, in hex: its digest, which the store verified.
    `withdrawn`: since when it is withdrawn, by `withdrawn_by`.
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
    composite: str = ""

    @property
    def content(self) -> Content:
        """The bytes that the name stands for."""
        return Content(self.size, self.sha256, self.composite)

    @property
    def key(self) -> Key:
        return published_key(self.of, self.series, self.version_name, self.name)

    @property
    def full(self) -> str:
        """The full name: owner, series, version and name."""
        return f"{self.of}/{self.series}/{self.version_name}/{self.name}"

    @property
    def owner(self) -> str:
        """The name as an owner in its artifact's row."""
        return owner(PUBLISHED, self.full)


@dataclass(frozen=True, kw_only=True)
class Series(Row):
    """Who may read a series of an owner, or all series without a setting."""

    kind: ClassVar[str] = "series"
    is_recreated: ClassVar[bool] = True
    of: str
    name: str
    access: Access
    privilege: str = ""

    @property
    def key(self) -> Key:
        return series_key(self.of, self.name)


def collection(of: str) -> str:
    """The collection of what somebody published."""
    return f"published#{of}"


def published_key(of: str, series: str, version: str, name: str) -> Key:
    """The key of a published name."""
    return Key(collection(of), f"file#{series}#{version}#{name}")


def series_key(of: str, name: str) -> Key:
    """The key of a series' setting."""
    return Key(collection(of), f"series#{name}")


def is_part(text: str) -> bool:
    """Whether a text can be a series, a version or a name. Names of only dots mean something else in a path."""
    return re.fullmatch(_PART, text) is not None and bool(text.strip("."))


def resolve(asked: Iterable[Publish], env: Mapping[str, str], job: str) -> tuple[Publication, ...] | Refused:
    """What a job publishes, with its version: the one in its file, its commit, or its own id."""
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


def has_content(row: Published, content: Content) -> bool:
    """Whether a name stands, or stood, for these bytes."""
    return row.content == content


def already_taken(row: Published) -> Refused:
    """The refusal of other bytes for a name that exists: it says what the name stands for."""
    since = f"withdrawn by {row.withdrawn_by}" if row.withdrawn else "published"
    there = f"{row.content}, from {row.path} of job {row.job}"
    why = f"{row.full} was given other bytes: {there}, at {row.time:%Y-%m-%d %H:%M} UTC, and is {since}"
    hint = "a name is given once; publish under another version"
    return Refused(409, "published-otherwise", f"{why}; {hint}")


def withdrawn(row: Published) -> Refused:
    """The refusal of a request for a withdrawn name."""
    return Refused(
        410, "withdrawn", f"{row.full} was withdrawn by {row.withdrawn_by} at {row.withdrawn:%Y-%m-%d %H:%M} UTC"
    )


def withdraw(row: Published, by: str, now: datetime) -> Published:
    """A withdrawn name. It keeps what it stood for."""
    return replace(row, withdrawn=now, withdrawn_by=by)


def may_read(user: User | None, of: str, series: str, said: Sequence[Series]) -> bool:
    """Whether a user, or (None) anybody, may read a series. `said`: all settings of its owner. [SEC-2]"""
    rules = {each.name: each for each in said}
    rule = rules.get(series) or rules.get(ALL_SERIES)
    if rule is None or rule.access is Access.PUBLIC:
        return True
    if user is None:
        return False
    return user.may_see(of) or (rule.access is Access.PRIVILEGE and user.may(rule.privilege))
