"""Which jobs are of one set: those of a folder that was submitted as a whole, or those of a commit.

Each job of a set writes one row more when it is submitted. So the jobs of a set are read by one query, however many
jobs their owner has.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar

from penstock.domain.jobs.jobs import Job
from penstock.domain.users.users import is_repository
from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Key, Row

SET, COMMIT = "set", "commit"
"""The tag whose value is the id of a job's set; and that of a commit, which is the set of a job that checks it."""

MEMBER = "job#"
"""What the places of a set's jobs begin with."""

_ID = r"[A-Za-z0-9._:@-]{1,100}"

_COMMIT = r"[0-9a-f]{40}([0-9a-f]{24})?"


@dataclass(frozen=True, kw_only=True)
class Member(Row):
    """That a job is of a set of its owner's. `matrix`: the combination that the job is of its file's."""

    kind: ClassVar[str] = "member"
    owner: str
    set: str
    job: str
    matrix: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> Key:
        return Key(set_pk(self.owner, self.set), f"{MEMBER}{self.job}")


def set_pk(owner: str, set: str) -> str:
    """The collection of a set's jobs, which are in it in the order in which they were submitted."""
    return f"set#{owner}#{set}"


def is_set_id(text: str) -> bool:
    """Whether a text can be the id of a set: one that can stand in an address."""
    return re.fullmatch(_ID, text) is not None


def member_of(job: Job, matrix: Mapping[str, str]) -> Member | None:
    """The row that puts a job into its set; None for a job that is of no set, or of one whose id cannot be one.

    What the jobs of a commit are, only the front end for GitHub says, whatever tags their files and other jobs of the
    repository have: a job that checks a commit is of no other set, and no other job is of that one. [SEC-2]
    """
    is_check = bool(job.provenance.check)
    found = job.request.tags.get(COMMIT if is_check else SET, "")
    is_anothers = is_repository(job.owner) and not is_check and re.fullmatch(_COMMIT, found)
    if is_anothers or not is_set_id(found):
        return None
    return Member(owner=job.owner, set=found, job=job.id, matrix=dict(matrix))
