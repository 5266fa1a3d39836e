"""What several jobs are shown on: lines under their jobs' names, and on a terminal a table of the jobs below them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.text import Text

from penstock.cli import times
from penstock.cli.follow import Closing, text_of, write, write_event, write_json
from penstock.cli.joined import Board, Watched
from penstock.cli.output import LINES, STYLES, Output
from penstock.cli.terminal import clean

COLOURS = ("cyan", "magenta", "green", "blue", "yellow", "bright_cyan", "bright_magenta", "bright_green", "bright_blue")
"""Colours of jobs. Red is for what went wrong."""

LABEL = 24
"""The longest name that stands before a line on a terminal."""

ROWS = 10
"""The most jobs in the table, if a third of the terminal has room for them."""

SILENCE = 60.0
"""Seconds without a line until a pipe is told where the jobs are."""

ORDER = ("errored", "failed", "cancelled", "succeeded", "running", "acquiring", "queued", "waiting")
"""Outcomes and states in the order in which they are counted."""

SINCE = {"waiting": "submitted", "queued": "ready", "acquiring": "ready", "running": "started"}
"""The time at which a state began."""


def open_board(
    out: Output,
    jobs: Sequence[Watched],
    *,
    quiet_stdout: bool = False,
    ends_only: bool = False,
    is_brief: bool = False,
) -> Board:
    """The board for this terminal, pipe or file. With `quiet_stdout`, stdout is reserved for a result at the end.

    With `ends_only`, a pipe is told nothing but which jobs did not succeed. What `is_brief` needs no table of jobs.
    """
    if out.as_json and not quiet_stdout:
        return JsonBoard(out)
    if ends_only:
        return (
            LiveBoard(out.errors, jobs, ends_only=True)
            if out.errors.is_terminal and not out.as_json
            else QuietBoard(out)
        )
    if out.is_terminal and out.errors.is_terminal and not quiet_stdout:
        return LiveBoard(out.console, jobs, has_table=not is_brief)
    return PlainBoard(out, jobs, quiet_stdout=quiet_stdout)


def end_of(job: Watched) -> str:
    """How a job ended, in a line, after its name."""
    reason = job.found.get("reason") if job.word != "succeeded" else None
    return clean(job.word + (f": {reason}" if reason else ""))


class JsonBoard(Closing):
    """Events as JSON, one a line, each with the id of its job."""

    def __init__(self, out: Output) -> None:
        self._out = out

    def event(self, job: Watched, event: Mapping[str, Any]) -> None:
        if job.view.choice.wants(event):
            write_json(self._out.console, {"job": job.id, **event})

    def ended(self, job: Watched) -> None:
        return None

    def wondered(self) -> Sequence[Watched]:
        return ()

    def refresh(self) -> None:
        return None

    def notice(self, text: str) -> None:
        self._out.notice(text)


class QuietBoard(JsonBoard):
    """Nothing but which jobs did not succeed."""

    def event(self, job: Watched, event: Mapping[str, Any]) -> None:
        return None

    def ended(self, job: Watched) -> None:
        if job.word != "succeeded":
            self._out.note(f"{job.name}: {end_of(job)}", "")


class PlainBoard(Closing):
    """Lines after the names of their jobs, for pipes, files and the logs of other systems."""

    def __init__(self, out: Output, jobs: Sequence[Watched], *, quiet_stdout: bool = False) -> None:
        self._out, self._jobs = out, jobs
        self._stdout = out.errors if quiet_stdout else out.console
        self._last = time.monotonic()

    def event(self, job: Watched, event: Mapping[str, Any]) -> None:
        if job.view.shows(event):
            console = self._stdout if event["stream"] == "stdout" else self._out.errors
            write_event(console, event, job.view, f"{clean(job.name)} | ")
            self._last = time.monotonic()

    def ended(self, job: Watched) -> None:
        self._tell(clean(f"{job.name}: {end_of(job)}"))

    def wondered(self) -> Sequence[Watched]:
        """One of those that wait, when nothing was said for a while."""
        is_silent = time.monotonic() - self._last >= SILENCE
        return [job for job in self._jobs if not job.is_settled and job.state != "running"][:1] if is_silent else ()

    def refresh(self) -> None:
        """After a while without a line, tell where the jobs are: those who read a log want to know that it goes on."""
        if time.monotonic() - self._last >= SILENCE:
            reasons = [f"; {job.name}: {job.why}" for job in self._jobs if job.why][:1]
            self._tell(clean(f"|=| {counts(self._jobs)}{''.join(reasons)}"))

    def _tell(self, text: str) -> None:
        write(self._out.errors, text)
        self._last = time.monotonic()

    def notice(self, text: str) -> None:
        self._out.notice(text)


def counts(jobs: Iterable[Watched]) -> str:
    """How many jobs are in each state: 2 failed, 7 running, 4 queued."""
    found = Counter(job.word for job in jobs if job.state)
    words = [*(word for word in ORDER if word in found), *sorted(word for word in found if word not in ORDER)]
    return ", ".join(f"{found[word]} {clean(word)}" for word in words) or "submitted"


class LiveBoard(Closing):
    """Lines after the names of their jobs, each in a colour of its own, and a table of the jobs below."""

    def __init__(
        self, console: Console, jobs: Sequence[Watched], *, has_table: bool = True, ends_only: bool = False
    ) -> None:
        self._console, self._has_table, self._ends_only = console, has_table, ends_only
        self._labels = labels(jobs)
        self._width = max(map(len, self._labels.values()), default=0)
        self._colours = {job.id: COLOURS[number % len(COLOURS)] for number, job in enumerate(jobs)}
        self._table = JobTable(jobs, self._labels, self._colours)
        self._live = Live(self._table, console=console, transient=True, refresh_per_second=4)

    def __enter__(self) -> LiveBoard:
        if self._has_table:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def event(self, job: Watched, event: Mapping[str, Any]) -> None:
        if job.view.shows(event):
            self._print(job, text_of(event, job.view))

    def ended(self, job: Watched) -> None:
        if self._ends_only and job.word == "succeeded":
            return
        self._print(job, Text(end_of(job), f"bold {STYLES.get(job.word, '')}".strip()))

    def _print(self, job: Watched, text: Text) -> None:
        label = self._labels[job.id].ljust(self._width)
        self._console.print(Text.assemble((label, self._colours[job.id]), (" │ ", "dim"), text), soft_wrap=True)

    def wondered(self) -> Sequence[Watched]:
        return self._table.shown(rows_of(self._console.height))

    def refresh(self) -> None:
        """The table refreshes itself."""

    def notice(self, text: str) -> None:
        self._console.print(Text(clean(text, LINES), style="yellow"), soft_wrap=True)


def labels(jobs: Sequence[Watched]) -> dict[str, str]:
    """The short names of jobs by their ids. A long one loses its middle: those of a matrix differ at the end."""
    found: dict[str, str] = {}
    for job in jobs:
        short = shortened(clean(job.name), LABEL)
        found[job.id] = short if short not in found.values() else shortened(short, LABEL - 5) + " " + job.id[-4:]
    return found


def shortened(text: str, most: int) -> str:
    """A text of at most so many characters: a third of them from its start, the rest from its end."""
    return text if len(text) <= most else text[: most // 3] + "…" + text[len(text) - (most - most // 3 - 1) :]


def rows_of(height: int) -> int:
    """How many jobs the table shows on a terminal of so many lines."""
    return max(1, min(ROWS, height // 3))


class JobTable:
    """The jobs that changed last: state, for how long, and what they wait for; then how many are in each state."""

    def __init__(self, jobs: Sequence[Watched], names: Mapping[str, str], colours: Mapping[str, str]) -> None:
        self._jobs, self._names, self._colours = jobs, names, colours
        self._since = time.monotonic()

    def shown(self, most: int) -> list[Watched]:
        """At most so many jobs, in their order: first those that have not settled, then those that changed last."""
        chosen = sorted(self._jobs, key=lambda job: (job.is_settled, -job.changed))[:most]
        return [job for job in self._jobs if job in chosen]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        rows = self.shown(rows_of(console.height))
        cells = [(self._names[job.id], clean(job.word) or "submitted", spent(job)) for job in rows]
        widths = [max(map(len, column), default=0) for column in zip(*cells, strict=True)]
        for job, (name, state, took) in zip(rows, cells, strict=True):
            text = Text.assemble((name.ljust(widths[0]), self._colours[job.id]), "  ")
            text.append(state.ljust(widths[1]), STYLES.get(state, "")).append(f"  {took.rjust(widths[2])}", "dim")
            text.append(f"  {clean(job.why)}" if job.why else "")
            text.truncate(options.max_width, overflow="ellipsis")
            yield text
        yield self._foot(len(self._jobs) - len(rows), options.max_width)

    def _foot(self, hidden: int, width: int) -> Text:
        took = whole(time.monotonic() - self._since)
        more = f"{hidden} more; " if hidden else ""
        text = Text(f"{more}{len(self._jobs)} jobs: {counts(self._jobs)}  {took}", "bold")
        text.truncate(width, overflow="ellipsis")
        return text


def spent(job: Watched) -> str:
    """For how long a job has been in its state; of a settled one, how long it took in all."""
    known = job.found.get("times") or {}
    begun = known.get("submitted") if job.is_settled else known.get(SINCE.get(job.state, "")) or known.get("submitted")
    if not begun:
        return ""
    end = times.parse(known["settled"]) if job.is_settled and known.get("settled") else times.now()
    return whole((end - times.parse(begun)).total_seconds())


def whole(seconds: float) -> str:
    """A length of time in whole seconds, so that what is shown does not flicker."""
    return times.duration(seconds) if seconds >= 10 else f"{max(0, int(seconds))}s"
