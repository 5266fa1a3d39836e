"""Which lines of a job's log are shown, and how: by time, task, stream and pattern; with timestamps or without."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import click

from penstock.cli import times
from penstock.cli.client import Api
from penstock.cli.command import duration
from penstock.cli.errors import Refused
from penstock.cli.terminal import SEQUENCES, clean

DETAIL = "detail"
"""The stream of service lines that are shown with --verbose only."""

SETTLED = "settled: "
"""The start of the control plane's last line, which a summary of the settled job repeats."""

USUAL = re.compile(r"job \S+ accepted\b|running on |the job waits for ")
"""How lines of the service begin that a reader of several jobs has in the table, or does not need when it runs."""

STARTING = re.compile(r'starting task ([0-9]+): "(.*)"', re.DOTALL)
"""The line, of the stream `detail`, with which a worker begins a task. It has the task's number and its name."""

CLOCKS_DIFFER = timedelta(minutes=10)
"""By how much the times of two lines may be in another order than the lines: twice what the service lets pass."""


@dataclass
class Choice:
    """The lines that are wanted. `task` is a number or a name; what is None or empty excludes nothing."""

    since: datetime | None = None
    task: str | None = None
    streams: Sequence[str] = ()
    grep: re.Pattern[str] | None = None
    tasks: dict[int, str] = field(default_factory=dict)
    is_partial: bool = False

    def fresh(self) -> Choice:
        """The same choice for another job."""
        return replace(self, tasks={}, is_partial=False)

    def wants(self, event: Mapping[str, Any]) -> bool:
        """Whether a line is shown. Lines must come in their order, because a task's first line tells its name."""
        self.learn(event)
        return self._is_of_task(event) and self._is_recent(event) and self._is_of_streams(event) and self._found(event)

    def learn(self, event: Mapping[str, Any]) -> None:
        """Note the name of a task that begins."""
        begun = STARTING.fullmatch(str(event["payload"])) if event["stream"] == DETAIL else None
        if begun and event.get("task") == int(begun[1]):
            self.tasks[int(begun[1])] = begun[2]

    def _is_of_task(self, event: Mapping[str, Any]) -> bool:
        number = event.get("task")
        return self.task is None or (number is not None and self.task in (str(number), self.tasks.get(number)))

    def _is_recent(self, event: Mapping[str, Any]) -> bool:
        return self.since is None or times.parse(event["time"]) >= self.since

    def _is_of_streams(self, event: Mapping[str, Any]) -> bool:
        return not self.streams or event["stream"] in self.streams

    def _found(self, event: Mapping[str, Any]) -> bool:
        return self.grep is None or bool(self.grep.search(SEQUENCES.sub("", str(event["payload"]).rstrip("\n"))))

    def check(self) -> None:
        """Call when a log is complete. Raises Refused if no task was the wanted one."""
        if self.task is None or self.is_partial or self.task in (*map(str, self.tasks), *self.tasks.values()):
            return
        known = [f'  {number} "{clean(name)}"' for number, name in sorted(self.tasks.items())] or ["  (none began)"]
        raise Refused(f"the job has no task `{self.task}`", "give the number or the name of one of these", known)


@dataclass(frozen=True)
class View:
    """How a log is shown. With `summary_follows`, the line that says how the job ended is left out.

    With `is_one_of_many`, so are the lines that say what it waits for and where it runs.
    """

    verbose: bool = False
    summary_follows: bool = False
    timestamps: bool = False
    is_one_of_many: bool = False
    choice: Choice = field(default_factory=Choice)

    def shows(self, event: Mapping[str, Any]) -> bool:
        """Whether a person sees this line."""
        if not self.choice.wants(event):
            return False
        is_named = event["stream"] in self.choice.streams
        return self.verbose or is_named or not (event["stream"] == DETAIL or self._is_told(event))

    def _is_told(self, event: Mapping[str, Any]) -> bool:
        """Whether a decision of the service is told elsewhere."""
        if event["stream"] != "control":
            return False
        text = str(event["payload"])
        is_end = self.summary_follows and text.startswith(SETTLED)
        return is_end or (self.is_one_of_many and USUAL.match(text) is not None)

    def stamp(self, event: Mapping[str, Any], *, is_terminal: bool) -> str:
        """What stands before a line with --timestamps: local time on a terminal, else UTC as RFC 3339."""
        if not self.timestamps:
            return ""
        if not is_terminal:
            return clean(str(event["time"])) + " "
        return times.parse(event["time"]).astimezone().strftime("%Y-%m-%d %H:%M:%S ")


def moment_of(text: str) -> datetime:
    """A time, or a duration before now: 10m, 2026-11-27T10:00:00Z; without an offset it is local. Raises BadParameter.

    A date without a time is midnight.
    """
    try:
        found = datetime.fromisoformat(text)
        return found.astimezone()
    except (ValueError, OverflowError, OSError):
        pass
    try:
        return times.now() - timedelta(seconds=duration(text))
    except (click.BadParameter, OverflowError):
        raise click.BadParameter(f"`{text}` is no duration (10m, 2h) and no time (2026-11-27T10:00:00Z)") from None


def pattern(text: str) -> re.Pattern[str]:
    """A regular expression of Python's. Raises BadParameter, which says where it is wrong."""
    try:
        return re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise click.BadParameter(f"`{text}` is not a regular expression: {error}") from None


def begin(api: Api, job: str, choice: Choice, after: int, last: int = 0) -> int:
    """The number of the line after which reading begins, so that nothing wanted is missed and little else is read.

    The names of tasks that began before are noted. Raises what requests raise.
    """
    start = max(after, _before(api, job, choice.since - CLOCKS_DIFFER)) if choice.since else after
    if choice.task is None:
        return start
    start = max(start, _newest(api, job) - last) if last else start
    if choice.task.isdigit():  # then no name has to be known
        choice.is_partial = start > 0
    else:
        _learn(api, job, choice, start)
    return start


def _newest(api: Api, job: str) -> int:
    """The number of the newest line; 0 if there is none."""
    found = api.events(job, 0, 1)["items"]
    return int(found[-1]["seq"]) if found else 0


def _before(api: Api, job: str, since: datetime) -> int:
    """The number of a line before the first one from since then: lines are nearly in the order of their times."""
    low, high = 0, _newest(api, job)
    while low < high:
        middle = (low + high) // 2
        found = api.events(job, middle, limit=1)["items"]
        if not found or times.parse(found[0]["time"]) >= since:
            high = middle
        else:
            low = middle + 1
    return low


def _learn(api: Api, job: str, choice: Choice, end: int) -> None:
    """Read what is before a line for the names of tasks."""
    after = 0
    while after < end:
        page = api.events(job, after, limit=min(1000, end - after))
        for event in page["items"]:
            choice.learn(event)
        if not page["items"]:
            return
        after = int(page["next"])
