"""A job's log, followed until the job settles.

A job's log as it is shown: plainly, or on a terminal with colours and a line that says where the job is.

The job's stdout goes to stdout. Everything else goes to stderr, unless a person looks at both on a terminal.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from types import TracebackType
from typing import Any, Protocol

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from penstock.cli import times
from penstock.cli.client import Api, Patience
from penstock.cli.errors import CliError, Interrupted
from penstock.cli.logview import View
from penstock.cli.output import LINES, STYLES, Output
from penstock.cli.terminal import clean, colours_only

FAST, SLOW = 0.3, 1.5
"""Seconds between two looks: while lines come, and when none have come for a while.

With the agent's own wait (0.2 s while somebody looks) a line is shown within 2 s.
"""


WHY_FIRST, WHY_EACH = 1.0, 5.0
"""Seconds until it is asked what a job waits for, and between two such questions."""


PATIENCE_SECONDS = 30.0
"""How long to wait for an unreachable service."""


class Follower:
    """Reads a job's log and shows it."""

    def __init__(self, api: Api, job: str, screen: Screen, after: int = 0, last: int = 0) -> None:
        self._api, self._job, self._screen = api, job, screen
        self._after, self._last = after, last
        self._asked = time.monotonic() - WHY_EACH + WHY_FIRST
        self._why: str | None = None
        self._pause = FAST
        self._settled = False

    def follow(self) -> None:
        """Show the log until the job has settled and all of it was shown. Raises Interrupted on Ctrl-C."""
        self._prepare()
        try:
            while not self._is_over(page := self._show()):
                if page["items"]:
                    self._pause = FAST
                else:
                    self._pause = min(self._pause * 1.5, SLOW)
                if page["state"] != "settled":
                    self._tell(str(page["state"]))
                    time.sleep(self._pause)
        except KeyboardInterrupt:
            raise goes_on(self._job) from None

    def _is_over(self, page: Mapping[str, Any]) -> bool:
        """Whether the log is complete: the lines of a page may be older than the state that came with them."""
        was, self._settled = self._settled, page["state"] == "settled"
        return was and not page["items"]

    def catch_up(self) -> None:
        """Show what there is so far."""
        self._prepare()
        try:
            while self._show()["items"]:
                pass
        except KeyboardInterrupt:
            raise goes_on(self._job) from None

    def _prepare(self) -> None:
        transport = self._api.transport
        transport.patience = replace(Patience(), connect=PATIENCE_SECONDS, reply=PATIENCE_SECONDS)
        transport.notice = self._screen.notice

    def _show(self) -> Mapping[str, Any]:
        page = self._api.events(self._job, self._after, self._last)
        self._last = 0  # of those that there were then: all that follow are shown
        for event in page["items"]:
            self._screen.event(event)
        self._after = max(self._after, int(page.get("next") or 0))
        return page

    def _tell(self, state: str) -> None:
        """Show the job's state, and from time to time why it waits."""
        now = time.monotonic()
        if state == "running":
            self._why = None
        elif now - self._asked >= WHY_EACH:
            self._asked = now
            self._why = self._reason()
        self._screen.where(state, self._why)

    def _reason(self) -> str | None:
        try:
            return str(self._api.why(self._job).get("summary") or "") or None
        except CliError:  # it is only a comment: the next look at the log will tell what is wrong
            return None


def goes_on(job: str) -> Interrupted:
    """What to say when somebody stops watching a job."""
    return Interrupted(
        f"stopped watching; job {job} continues",
        f"`penstock job tail {job}` follows it, `penstock job cancel {job}` ends it",
    )


PREFIXES = {"control": "|=|", "detail": "|=|", "worker": "|W|", "task": "|T|", "console": "|C|"}
"""As in buildomat's log; the job's own stdout and stderr have none."""

UNUSUAL = ("waiting", "queued")
"""The states that a job stays in only while something keeps it waiting."""


class Screen(AbstractContextManager["Screen"], Protocol):
    """What a job's log is shown on."""

    def event(self, event: Mapping[str, Any]) -> None:
        """A line of the log."""

    def where(self, state: str, why: str | None) -> None:
        """Where the job is now, and what it waits for if it does."""

    def notice(self, text: str) -> None:
        """A message that is not from the job, such as a lost connection."""


def open_screen(out: Output, view: View | None = None, *, quiet_stdout: bool = False) -> Screen:
    """The screen for this terminal, pipe or file. With `quiet_stdout`, stdout is reserved for a result at the end.

    JSON has every event that the view's choice wants.
    """
    view = view or View()
    if out.as_json and not quiet_stdout:
        return JsonScreen(out, view)
    if out.is_terminal and out.errors.is_terminal and not quiet_stdout:
        return LiveScreen(out.console, view)
    return PlainScreen(out, view, quiet_stdout=quiet_stdout)


class Closing:
    """What a screen does when it is entered and left: nothing."""

    def __enter__(self) -> Any:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


def prefix_of(stream: str) -> str:
    """What stands before a line of a stream. The name of a background process is the job's choice."""
    return PREFIXES.get(stream) or f"|{clean(stream)}|"


class PlainScreen(Closing):
    """Lines as they are, for pipes, files and the logs of other systems."""

    def __init__(self, out: Output, view: View | None = None, *, quiet_stdout: bool = False) -> None:
        self._out, self._view = out, view or View()
        self._stdout = out.errors if quiet_stdout else out.console
        self._said: str | None = None

    def event(self, event: Mapping[str, Any]) -> None:
        if not self._view.shows(event):
            return
        if event["stream"] == "control":
            self._said = str(event["payload"]).rstrip("\n")
        write_event(self._stdout if event["stream"] == "stdout" else self._out.errors, event, self._view)

    def where(self, state: str, why: str | None) -> None:
        is_usual = state not in UNUSUAL and not self._view.verbose
        if why and why != self._said and not is_usual:
            self._said = why
            write(self._out.errors, clean(f"|=| {state}: {why}"))

    def notice(self, text: str) -> None:
        self._out.notice(text)


def write_event(console: Console, event: Mapping[str, Any], view: View, label: str = "") -> None:
    """Write a line of a log after a label, its time if the view has it, and the mark of its stream."""
    mark = "" if event["stream"] in ("stdout", "stderr") else prefix_of(event["stream"]) + " "
    stamp = view.stamp(event, is_terminal=console.is_terminal)
    write(console, str(event["payload"]).rstrip("\n"), label + stamp + mark)


def write(console: Console, text: str, prefix: str = "") -> None:
    """Write a line. What a job prints goes into pipes and files as it is."""
    console.file.write(prefix + (colours_only(text) if console.is_terminal else text) + "\n")
    console.file.flush()


class JsonScreen(Closing):
    """Events as JSON, one a line."""

    def __init__(self, out: Output, view: View | None = None) -> None:
        self._out, self._choice = out, (view or View()).choice

    def event(self, event: Mapping[str, Any]) -> None:
        if self._choice.wants(event):
            write_json(self._out.console, event)

    def where(self, state: str, why: str | None) -> None:
        return None

    def notice(self, text: str) -> None:
        self._out.notice(text)


def write_json(console: Console, value: Mapping[str, Any]) -> None:
    """Write an object as a line of JSON."""
    console.file.write(json.dumps(value, ensure_ascii=False) + "\n")
    console.file.flush()


class LiveScreen(Closing):
    """Colours, and a status line below the log."""

    def __init__(self, console: Console, view: View | None = None) -> None:
        self._console, self._view = console, view or View()
        self._status = Status()
        self._live = Live(self._status, console=console, transient=True, refresh_per_second=8)

    def __enter__(self) -> LiveScreen:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def event(self, event: Mapping[str, Any]) -> None:
        if self._view.shows(event):
            self._console.print(text_of(event, self._view), soft_wrap=True)

    def where(self, state: str, why: str | None) -> None:
        self._status.set(state, why)

    def notice(self, text: str) -> None:
        self._console.print(Text(clean(text, LINES), style="yellow"), soft_wrap=True)


def text_of(event: Mapping[str, Any], view: View) -> Text:
    """A line of a log in the colours of its stream, after its time if the view has it."""
    stream, text = event["stream"], Text.from_ansi(colours_only(str(event["payload"]).rstrip("\n")))
    if stream == "stderr":
        text.style = "yellow"
    elif stream != "stdout":
        text = Text.assemble((prefix_of(stream) + " ", "dim"), text, style="dim")
    stamp = view.stamp(event, is_terminal=True)
    return Text.assemble((stamp, "dim"), text) if stamp else text


class Status:
    """The line below the log: state, what it waits for, and for how long already."""

    def __init__(self) -> None:
        self._spinner = Spinner("dots")
        self._state, self._why = "", ""
        self._since = time.monotonic()

    def set(self, state: str, why: str | None) -> None:
        """Set the job's state. A new state restarts its clock."""
        if state != self._state:
            self._since = time.monotonic()
        self._state, self._why = clean(state), clean(why or "")

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        spent = times.duration(int(time.monotonic() - self._since) or 0)
        text = Text.assemble((self._state, STYLES.get(self._state, "")), ("  " + spent, "dim"))
        text.append(f"  {self._why}" if self._why else "")
        text.truncate(max(10, options.max_width - 3), overflow="ellipsis")
        self._spinner.text = text
        yield self._spinner
