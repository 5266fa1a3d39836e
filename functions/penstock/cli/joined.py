"""Several jobs watched at once: their states, their logs in one stream, and how they ended.

States come from the list of a set, a request for each 100 jobs, or from each job. Logs are read only of jobs that run
or have just settled, and at most READS times a second.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from penstock.cli import follow, logview
from penstock.cli.client import Api, Object, Patience
from penstock.cli.errors import OUTCOME_CODES, CliError, Interrupted, Refused
from penstock.cli.logview import View
from penstock.cli.terminal import clean

TAG = "set"
"""The tag that the jobs of a set have. Its value is the set's id."""

PAGE_SECONDS = 1.0
"""Seconds between two looks at the states, for each request that a look takes; SLOW at least."""

PAGE = 100
"""Jobs for each request of a list."""

ONE_SECONDS = 0.2
"""Seconds between two looks, for each job that is looked at without a list."""

ONE_BY_ONE = 10
"""How many jobs are looked at in one go if they have no list of their own."""

READS = 10.0
"""How many logs of running jobs are read in a second, all together."""

WHY_EACH = 10.0
"""Seconds between two questions what a job waits for. There is one such question for all jobs in a second."""

WORST = (0, 3, 1, 4)
"""Exit codes of jobs, the worst last."""

GONE = 410
"""The status of a log that was deleted."""

TIMED_OUT = 124
"""The exit code when a time is over, as that of `timeout`."""


class TimedOut(CliError):
    """What was waited for did not happen in time."""

    exit_code = TIMED_OUT


@dataclass(eq=False)
class Watched:
    """One of the jobs: its newest view, and how far its log was read. `changed` grows with every change of state."""

    id: str
    name: str
    view: View = field(default_factory=View)
    found: Object = field(default_factory=dict)
    changed: int = 0
    first: int = 0
    last: int = 0
    after: int | None = None
    pause: float = 0.0
    due: float = 0.0
    is_read: bool = False
    why: str | None = None
    asked: float = 0.0
    looked: float = 0.0

    @property
    def state(self) -> str:
        """Its state; empty before it is known."""
        return str(self.found.get("state") or "")

    @property
    def word(self) -> str:
        """How it ended, or its state."""
        return str(self.found.get("outcome") or self.state)

    @property
    def is_settled(self) -> bool:
        """Whether it has ended."""
        return self.state == "settled"

    @property
    def is_live(self) -> bool:
        """Whether its log may have lines that were not shown."""
        return self.state in ("running", "settled") and not self.is_read

    @property
    def code(self) -> int:
        """Its outcome as an exit code."""
        return OUTCOME_CODES.get(str(self.found.get("outcome")), CliError.exit_code)


class Board(AbstractContextManager["Board"], Protocol):
    """What several jobs are shown on."""

    def event(self, job: Watched, event: Mapping[str, Any]) -> None:
        """A line of a job's log."""

    def ended(self, job: Watched) -> None:
        """A job has settled, and its log was shown."""

    def wondered(self) -> Sequence[Watched]:
        """The jobs of which a reader wants to know what they wait for."""

    def refresh(self) -> None:
        """Some time has passed."""

    def notice(self, text: str) -> None:
        """A message that is not from a job."""


def watched(ids: Mapping[str, str], view: View | None = None) -> list[Watched]:
    """Jobs by their names, to be watched from the start of their logs."""
    view = view or View()
    return [
        Watched(id, name, replace(view, is_one_of_many=True, choice=view.choice.fresh())) for name, id in ids.items()
    ]


@dataclass(frozen=True)
class SetList:
    """Where the jobs of a set are listed. An owner is named if it is not the user."""

    id: str
    owner: str | None = None

    @property
    def query(self) -> list[tuple[str, str]]:
        """The filters of the list."""
        return [("tag", f"{TAG}={self.id}"), *([("owner", self.owner)] if self.owner else [])]

    @property
    def hint(self) -> str:
        """What can be done with its jobs."""
        return f"`penstock job join --set {self.id}` shows them again, `penstock job cancel --set {self.id}` ends them"


def named(api: Api, jobs: Sequence[str], of: SetList | None = None) -> dict[str, str]:
    """The ids of jobs that somebody named, or of all jobs of a set, by distinct names. Raises Refused if there is none.

    Jobs are looked at, so that one that does not exist is refused before anything is shown.
    """
    found = list(api.items("jobs", query=of.query))[::-1] if of else [api.job(job) for job in dict.fromkeys(jobs)]
    if not found and of:
        raise Refused(f"there are no jobs of a set {of.id}", f"`penstock job list -T {TAG}={of.id}` lists them")
    names: dict[str, str] = {}
    for job in found:
        name = clean(str(job.get("name") or job["id"]))
        names[name if name not in names else f"{name} {job['id'][-4:]}"] = job["id"]
    return names if len(names) == len(found) else {job["id"]: job["id"] for job in found}


class Joined:
    """Watches jobs until all have settled, or one has. With `has_logs`, their logs are shown to their ends."""

    def __init__(
        self,
        api: Api,
        jobs: Sequence[Watched],
        board: Board,
        *,
        of: SetList | None = None,
        is_any: bool = False,
        has_logs: bool = True,
    ) -> None:
        self._api, self._jobs, self._board = api, jobs, board
        self._of, self._is_any, self._has_logs = of, is_any, has_logs
        self._changes = 0
        self._asked = 0.0

    def follow(self, seconds: float | None = None) -> list[Watched]:
        """The jobs that settled: all of them, or the first. Raises TimedOut after some seconds, and Interrupted."""
        self._prepare()
        ends = None if seconds is None else time.monotonic() + seconds
        looked = None
        try:
            while True:
                if looked is None or time.monotonic() - looked >= self._pause():
                    self._look()
                    looked = time.monotonic()
                self._read(looked + self._pause())
                if ended := self._ended():
                    return ended
                self._wonder()
                self._board.refresh()
                if ends is not None and time.monotonic() >= ends:
                    raise self._late()
                time.sleep(self._nap(looked + self._pause(), ends))
        except KeyboardInterrupt:
            raise Interrupted("stopped watching; the jobs continue", self._hint()) from None

    def catch_up(self) -> None:
        """Show what there is so far, one job after the other. Raises Interrupted on Ctrl-C."""
        self._prepare()
        try:
            for job in self._jobs:
                while self._show(job):
                    pass
        except KeyboardInterrupt:
            raise Interrupted("stopped reading") from None

    def _prepare(self) -> None:
        transport = self._api.transport
        patience = follow.PATIENCE_SECONDS
        transport.patience = replace(Patience(), connect=patience, reply=patience)
        transport.notice = self._board.notice

    def _pause(self) -> float:
        """Seconds between two looks at the states."""
        left = [job for job in self._jobs if not job.is_settled]
        if self._of:
            return max(follow.SLOW, -(-len(self._jobs) // PAGE) * PAGE_SECONDS)
        return max(follow.SLOW, min(len(left), ONE_BY_ONE) * ONE_SECONDS)

    def _look(self) -> None:
        """Learn the states of the jobs."""
        by_id = {job.id: job for job in self._jobs}
        for found in self._views():
            job = by_id.get(str(found["id"]))
            if job:
                was, job.found = job.word, found
                if was != job.word:
                    self._changes += 1
                    job.changed, job.why, job.due, job.pause = self._changes, None, 0.0, follow.FAST
                    if job.is_settled and not self._has_logs:
                        self._board.ended(job)

    def _views(self) -> Iterator[Object]:
        """The newest views: of the set's jobs as they are listed, and of some others, that longest not looked at first.

        The list is newest first, and a set's jobs are together in it: it is read until all of them were seen.
        """
        left = {job.id: job for job in self._jobs if not job.is_settled}
        if self._of and left:
            for found in self._api.items("jobs", query=self._of.query):
                left.pop(str(found["id"]), None)
                yield found
                if not left:
                    return
        others = sorted(left.values(), key=lambda job: job.looked)
        yield from (self._one(job) for job in others[:ONE_BY_ONE])

    def _one(self, job: Watched) -> Object:
        job.looked = time.monotonic()
        return self._api.job(job.id)

    def _read(self, until: float) -> None:
        """Show what is new in the logs that are due, those first that are due for longest; stop when it is time."""
        if not self._has_logs:
            return
        live = [job for job in self._jobs if job.is_live]
        for job in sorted(live, key=lambda job: job.due):
            if job.due <= time.monotonic() < until:
                self._read_one(job, len(live) / READS)

    def _read_one(self, job: Watched, least: float) -> None:
        """Read a page of a running job, or the rest of a settled one: only an empty page is its end."""
        try:
            has_more = self._show(job)
            while job.is_settled and has_more:
                has_more = self._show(job)
            job.is_read = job.is_settled
        except Refused as error:
            if error.status != GONE:
                raise
            self._board.notice(f"{job.name}: {error.what}")
            job.is_read, has_more = True, False
        if job.is_read and job.is_settled:
            self._board.ended(job)
        job.pause = follow.FAST if has_more else min(job.pause * 1.5, follow.SLOW)
        job.due = time.monotonic() + max(job.pause, least)

    def _show(self, job: Watched) -> bool:
        """Show a page of a job's log. Whether it had lines."""
        if job.after is None:
            job.after = logview.begin(self._api, job.id, job.view.choice, job.first, job.last)
        page = self._api.events(job.id, job.after, job.last)
        job.last = 0  # of those that there were then
        for event in page["items"]:
            self._board.event(job, event)
        job.after = max(job.after, int(page.get("next") or 0))
        if page["state"] == "settled":
            job.looked = 0.0  # so that it is looked at next
        return bool(page["items"])

    def _ended(self) -> list[Watched]:
        """What was waited for, if it has happened and its logs were shown."""
        ended = [job for job in self._jobs if job.is_settled and (job.is_read or not self._has_logs)]
        if self._is_any:
            return sorted(ended, key=lambda job: str(job.found["times"].get("settled")))[:1]
        return ended if len(ended) == len(self._jobs) else []

    def _wonder(self) -> None:
        """Ask what one of the jobs waits for that a reader sees, and has not been told of for the longest time."""
        now = time.monotonic()
        waiting = [job for job in self._board.wondered() if job.state and job.state not in ("running", "settled")]
        job = min(waiting, key=lambda each: each.asked, default=None)
        if job is None or now - self._asked < 1.0 or (job.why and now - job.asked < WHY_EACH):
            return
        self._asked = job.asked = now
        try:
            job.why = str(self._api.why(job.id).get("summary") or "") or None
        except CliError:  # it is only a comment: the next look will tell what is wrong
            job.why = None

    def _nap(self, look: float, ends: float | None) -> float:
        """Seconds until something is due."""
        dues = [job.due for job in self._jobs if job.is_live] if self._has_logs else []
        return max(0.0, min([look, *dues, *([] if ends is None else [ends])]) - time.monotonic())

    def _late(self) -> TimedOut:
        left = sum(not job.is_settled for job in self._jobs)
        return TimedOut(f"the time is over: {left} of {len(self._jobs)} jobs have not settled", self._hint())

    def _hint(self) -> str:
        if self._of:
            return self._of.hint
        ids = " ".join(job.id for job in self._jobs[:3]) + (" …" if len(self._jobs) > 3 else "")
        return f"`penstock job join {ids}` shows them again"


def worst(jobs: Iterable[Watched]) -> int:
    """The exit code of the worst end: errored, then failed, cancelled, succeeded."""
    return max((job.code for job in jobs), key=WORST.index, default=0)
