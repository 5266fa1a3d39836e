"""One job of a commit, and the check run of GitHub's that shows it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import ClassVar

from penstock.domain.github.checksets import KEPT, CheckSet, set_key
from penstock.domain.github.reports import Annotation
from penstock.kernel.rows import Key, Row

CONTROL = 0
"""The number of the check that speaks of the whole commit: what is wrong with its files, or that it awaits approval."""

CONTROL_NAME = "penstock"
MOST = 100
"""How many jobs one commit may have."""

BUSY = timedelta(minutes=2)
"""How long one call may take to show a check; after that another does."""


@dataclass(frozen=True, kw_only=True)
class CheckRun(Row):
    """One job of a commit. `run` counts its re-runs, `needs` are the checks whose jobs its own waits for.

    `told` is what it says when there is no job: why none was accepted, or that approval is awaited. `run_id` is the
    check run, once it is made; `begun` that it may have been. `shown` is a digest of what it says already, and `over`
    that this is how it ended. `past` are runs before this one whose check runs have not ended at GitHub yet. `reads`
    are the ids of other repositories that its job's token reads.
    """

    kind: ClassVar[str] = "check"
    repository: str
    repository_id: int
    installation: int
    sha: str
    number: int
    name: str
    since: datetime
    needs: tuple[str, ...] = ()
    run: int = 1
    job: str = ""
    told: str = ""
    annotations: tuple[Annotation, ...] = ()
    begun: bool = False
    run_id: int = 0
    shown: str = ""
    over: bool = False
    past: tuple[int, ...] = ()
    reads: tuple[int, ...] = ()
    busy: datetime | None = None
    tries: int = 0
    due: datetime | None = None

    @property
    def key(self) -> Key:
        return check_key(self.repository_id, self.sha, self.number)

    @property
    def deadline(self) -> datetime | None:
        return self.due

    @property
    def expiry(self) -> datetime:
        return self.since + KEPT

    @property
    def id(self) -> str:
        """What it is known by in a job's row."""
        return f"{self.repository_id}/{self.sha}/{self.number}"

    @property
    def external_id(self) -> str:
        """What it is known by at GitHub: another with each run, so that an old button presses nothing."""
        return self.external_id_of(self.run)

    def external_id_of(self, run: int) -> str:
        """What one of its runs is known by there."""
        return f"{self.id}/{run}"


def check_key(repository_id: int, sha: str, number: int) -> Key:
    """Where a check is."""
    return Key(set_key(repository_id, sha).pk, f"check#{number:03}")


def key_of(id: str) -> Key:
    """Where the check of an id is. Raises ValueError for what is no id."""
    repository_id, sha, number = id.split("/")[:3]
    return check_key(int(repository_id), sha, int(number))


def begin(of: CheckSet, number: int, name: str, needs: Sequence[str], now: datetime) -> CheckRun:
    """A check that is new: it is to be shown."""
    return CheckRun(
        repository=of.repository, repository_id=of.repository_id, installation=of.installation, sha=of.sha,
        number=number, name=name, since=of.since, needs=tuple(needs), due=now,
    )  # fmt: skip


def again(check: CheckRun, now: datetime) -> CheckRun:
    """A check whose job is to be run again: with a check run of its own. The one before it is to end, if it has not."""
    past = (*check.past, check.run) if check.begun and not check.over else check.past
    return replace(
        check, run=check.run + 1, job="", told="", annotations=(), begun=False, run_id=0, shown="", over=False,
        past=past, tries=0, due=now,
    )  # fmt: skip


def submitted(check: CheckRun, job: str, now: datetime) -> CheckRun:
    """A check whose job was accepted."""
    return replace(check, job=job, told="", due=now)


def refused(check: CheckRun, told: str, now: datetime, annotations: Sequence[Annotation] = ()) -> CheckRun:
    """A check that has no job, and says why."""
    return replace(check, told=told, annotations=tuple(annotations), due=now)


def behind(checks: Iterable[CheckRun], first: CheckRun) -> list[CheckRun]:
    """A check and all whose jobs wait for it, however many are between."""
    found, names = {first.number: first}, {first.name}
    rest = [check for check in checks if check.number != first.number]
    while more := [check for check in rest if check.number not in found and names.intersection(check.needs)]:
        found |= {check.number: check for check in more}
        names |= {check.name for check in more}
    return [found[number] for number in sorted(found)]


def submit_key(check: CheckRun) -> str:
    """The Idempotency-Key of a check's job: of commit, name and run, so that nothing is submitted twice."""
    name = hashlib.sha256(check.name.encode()).hexdigest()
    return f"github-{check.repository_id}-{check.sha}-{check.run}-{name}"
