"""The jobs of one commit: from the first event about it to their end.

received ──▶ planned ──▶ submitted ──▶ settled
              │  ▲ ▲          │
              ▼  │ └──re-run──┤          an approval is for this commit only: its set is found by the SHA [SEC-2]
           awaiting           ▼
              └────────▶ superseded      no branch or pull request ends with the commit, and the policy says so
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import ClassVar

from penstock.domain.github.deliveries import Event
from penstock.domain.github.policy import Policy
from penstock.domain.jobs.jobs import Provenance
from penstock.domain.users.oidc import PULL_REQUEST
from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Key, Place, Row

KEPT_FOR = timedelta(days=90)
"""How long the jobs of a commit can be run again from its checks."""

MAX_TRIES = 30
"""How often a step is tried; the last after half a day."""

LONGEST_WAIT = timedelta(minutes=30)

PUSH = "push"
"""The event of a commit that is the end of a branch, as GitHub calls it."""

MAX_PEOPLE = 10
"""For how many pushes the people are recorded."""


class Stage(StrEnum):
    """Where a set is. Each says who moves it on."""

    PLANNED = "planned"  # due: policy and job files are to be read, and jobs submitted
    AWAITING = "awaiting approval"  # moved on by the Approve button
    SUBMITTED = "submitted"  # its checks show its jobs
    SETTLED = "settled"  # there is nothing to run, and `why` says why
    SUPERSEDED = "superseded"  # due until its jobs are cancelled


@dataclass(frozen=True, kw_only=True)
class CheckSet(Row):
    """The jobs of one commit of a repository.

    `lines` are those that end with it, `left` those that did. `people` are those whose work it is, once for each time
    that it was brought. Its jobs are told that they come from `branch`, or from the pull request `number`: what brought
    it first, unless the repository does not trust that and the commit came to be the end of what it trusts. `outsider`
    says that its jobs are not trusted: it is of somebody who does not belong to the repository, or of such a ref.
    """

    kind: ClassVar[str] = "checkset"
    repository: str
    repository_id: int
    installation: int
    sha: str
    since: datetime
    branch: str = ""
    number: int = 0
    people: tuple[tuple[str, ...], ...] = ()
    lines: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    stage: Stage = Stage.PLANNED
    why: str = ""
    outsider: bool = False
    approved_by: str = ""
    tries: int = 0
    due: datetime | None = None

    @property
    def key(self) -> Key:
        return set_key(self.repository_id, self.sha)

    @property
    def place(self) -> Place:
        return Place("checksets", f"{self.since:%Y%m%dT%H%M%S%f}.{self.sha}.{self.repository_id}")

    @property
    def deadline(self) -> datetime | None:
        return self.due

    @property
    def expiry(self) -> datetime:
        return self.since + KEPT_FOR

    @property
    def line(self) -> str:
        """What its jobs are told that they come from."""
        return f"heads/{self.branch}" if self.branch else f"pull/{self.number}"

    @property
    def owner(self) -> str:
        """The user whose jobs they are."""
        return self.repository.replace("/", ":")


@dataclass(frozen=True, kw_only=True)
class Tip(Row):
    """The commit that a line ends with."""

    kind: ClassVar[str] = "tip"
    repository_id: int
    line: str
    sha: str
    since: datetime

    @property
    def key(self) -> Key:
        return tip_key(self.repository_id, self.line)

    @property
    def expiry(self) -> datetime:
        return self.since + KEPT_FOR


def set_key(repository_id: int, sha: str) -> Key:
    """Where the set of a commit is."""
    return Key(f"github#{repository_id}#{sha}", "checkset")


def tip_key(repository_id: int, line: str) -> Key:
    """Where it is noted with which commit a line ends."""
    return Key(f"github#{repository_id}", f"tip#{line}")


def pause(tries: int) -> timedelta:
    """How long until a step is tried again: a minute, doubled each time, half an hour at most."""
    return min(timedelta(minutes=2 ** min(tries, 10)), LONGEST_WAIT)


def new_set(event: Event, now: datetime) -> CheckSet:
    """The set of a commit that is new to us."""
    return CheckSet(
        repository=event.repository, repository_id=event.repository_id, installation=event.installation,
        sha=event.sha, since=now, branch=event.branch, number=event.number, people=(event.people,), due=now,
    )  # fmt: skip


def update_line(found: CheckSet, line: str, now: datetime, *, is_tip: bool) -> CheckSet:
    """A set whose commit is the newest of a line, or was when we received the event.

    If its jobs were not trusted, it is due: the repository may trust the line.
    """
    if is_tip and line in found.lines:
        return found
    if is_tip:
        again = now if found.outsider and found.stage is Stage.SUBMITTED else found.due
        left = tuple(each for each in found.left if each != line)
        return replace(found, lines=(*found.lines, line), left=left, due=again)
    return remove_line(found, line, now)


def remove_line(found: CheckSet, line: str, now: datetime) -> CheckSet:
    """A set whose commit is no longer the newest of a line. It is due when that was its last line."""
    lines = tuple(each for each in found.lines if each != line)
    left = found.left if line in found.left else (*found.left, line)
    over = found.stage in (Stage.SETTLED, Stage.SUPERSEDED)
    return replace(found, lines=lines, left=left, due=found.due if lines or over else now)


def to_trusted_line(found: CheckSet, policy: Policy) -> CheckSet:
    """A set whose jobs come from a line that the repository trusts, if the commit is the end of one. [SEC-2]"""
    trusted = [line for line in found.lines if policy.trusts(line)]
    if policy.trusts(found.line) or not trusted:
        return found
    kind, _, name = trusted[0].partition("/")
    return replace(found, branch=name, number=0) if kind == "heads" else replace(found, branch="", number=int(name))


def is_obsolete(found: CheckSet, policy: Policy) -> bool:
    """Whether nobody needs the results of a commit's jobs any more."""
    return not found.lines and any(policy.supersedes(each) for each in found.left)


def add_people(found: CheckSet, people: tuple[str, ...], now: datetime) -> CheckSet:
    """A set whose commit other people pushed too. Any of them may answer for it, so a set that awaits approval is
    checked again.
    """
    if not people or people in found.people or len(found.people) >= MAX_PEOPLE:
        return found
    more = replace(found, people=(*found.people, people))
    return replace(more, stage=Stage.PLANNED, tries=0, due=now) if found.stage is Stage.AWAITING else more


def approve(found: CheckSet, by: str, now: datetime) -> CheckSet:
    """A set that somebody with the right to write approved; of no other commit is anything said. [SEC-2]"""
    if found.stage is not Stage.AWAITING:
        return found
    return replace(found, stage=Stage.PLANNED, approved_by=by, why="", tries=0, due=now)


def plan_again(found: CheckSet, now: datetime) -> CheckSet:
    """A set some of whose jobs are to be run again, also of an old commit; what awaits approval goes on doing so."""
    if found.stage is Stage.AWAITING:
        return found
    return replace(found, stage=Stage.PLANNED, why="", left=(), tries=0, due=now)


def move_to(found: CheckSet, stage: Stage, why: str = "", *, outsider: bool | None = None) -> CheckSet:
    """A set that got further, where nothing is due; with `outsider`, it was found out whether it is such a one's."""
    is_one = found.outsider if outsider is None else outsider
    return replace(found, stage=stage, why=why, outsider=is_one, tries=0, due=None)


def provenance(found: CheckSet, check: str) -> Provenance:
    """What the service vouches for of the jobs of a commit. It has a ref only if somebody pushed it to that branch:
    whoever opens a pull request may have written it. [SEC-2]
    """
    ref = {"ref": f"refs/heads/{found.branch}", "event_name": PUSH} if found.branch else {"event_name": PULL_REQUEST}
    number = {"pull_request": str(found.number)} if found.number else {}
    return Provenance(check=check, vouched={**ref, "sha": found.sha, **number}, outsider=found.outsider)
