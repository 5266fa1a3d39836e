"""A job's log as it is shown: plainly, or on a terminal with colours and a line that says where the job is.

The job's stdout goes to stdout. Everything else goes to stderr, unless a person looks at both on a terminal.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Protocol

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from penstock.cli import times
from penstock.cli.output import STYLES, Output, clean

PREFIXES = {"control": "|=|", "detail": "|=|", "worker": "|W|", "task": "|T|", "console": "|C|"}
"""As in buildomat's log; the job's own stdout and stderr have none."""

DETAIL = "detail"
"""The stream of service lines that are shown with --verbose only."""

SETTLED = "settled: "
"""How the control plane's last line begins. A summary of the settled job says the same."""

UNUSUAL = ("waiting", "queued")
"""The states that a job stays in only while something keeps it waiting."""

SEQUENCES = re.compile(
    r"(\x1b\[[0-9;:]*m)"  # a colour or style
    r"|\x1b\[[0-?]*[ -/]*[@-~]"  # another control sequence
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # a title, a link
    r"|\x1b"
)


class Screen(AbstractContextManager["Screen"], Protocol):
    """What a job's log is shown on."""

    def event(self, event: Mapping[str, Any]) -> None:
        """A line of the log."""

    def where(self, state: str, why: str | None) -> None:
        """Where the job is now, and what it waits for if it does."""

    def notice(self, text: str) -> None:
        """Something that is not of the job: lost connections."""


def open_screen(
    out: Output, *, verbose: bool = False, summary_follows: bool = False, quiet_stdout: bool = False
) -> Screen:
    """The screen for this terminal, pipe or file.

    `verbose` shows every service line. With `summary_follows`, the line that says how the job ended is left out.
    With `quiet_stdout`, stdout is reserved for a result at the end. JSON always has every event.
    """
    if out.as_json and not quiet_stdout:
        return JsonScreen(out)
    if out.is_terminal and out.errors.is_terminal and not quiet_stdout:
        return LiveScreen(out.console, verbose=verbose, summary_follows=summary_follows)
    return PlainScreen(out, verbose=verbose, summary_follows=summary_follows, quiet_stdout=quiet_stdout)


class _Base:
    def __init__(self, *, verbose: bool, summary_follows: bool) -> None:
        self._verbose, self._summary_follows = verbose, summary_follows

    def _shows(self, event: Mapping[str, Any]) -> bool:
        is_end = event["stream"] == "control" and str(event["payload"]).startswith(SETTLED)
        return self._verbose or not (event["stream"] == DETAIL or (is_end and self._summary_follows))

    def __enter__(self) -> Any:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


class PlainScreen(_Base):
    """Lines as they are, for pipes, files and the logs of other systems."""

    def __init__(
        self, out: Output, *, verbose: bool = False, summary_follows: bool = False, quiet_stdout: bool = False
    ) -> None:
        super().__init__(verbose=verbose, summary_follows=summary_follows)
        self._out = out
        self._stdout = out.errors if quiet_stdout else out.console
        self._said: str | None = None

    def event(self, event: Mapping[str, Any]) -> None:
        if not self._shows(event):
            return
        stream, text = event["stream"], str(event["payload"]).rstrip("\n")
        if stream == "control":
            self._said = text
        prefix = "" if stream in ("stdout", "stderr") else PREFIXES.get(stream, f"|{stream}|") + " "
        _write(self._stdout if stream == "stdout" else self._out.errors, prefix + text)

    def where(self, state: str, why: str | None) -> None:
        is_usual = state not in UNUSUAL and not self._verbose
        if why and why != self._said and not is_usual:
            self._said = why
            _write(self._out.errors, f"|=| {state}: {why}")

    def notice(self, text: str) -> None:
        self._out.notice(text)


def _write(console: Console, text: str) -> None:
    console.file.write((colours_only(text) if console.is_terminal else text) + "\n")
    console.file.flush()


def colours_only(text: str) -> str:
    """A line for a terminal: it may have colours, but can't move the cursor, set titles or reset anything."""
    return clean(SEQUENCES.sub(lambda found: found[1] or "", text), keep="\x1b\t\r")


class JsonScreen(_Base):
    """Events as JSON, one a line."""

    def __init__(self, out: Output) -> None:
        super().__init__(verbose=True, summary_follows=False)
        self._out = out

    def event(self, event: Mapping[str, Any]) -> None:
        self._out.console.file.write(json.dumps(event, ensure_ascii=False) + "\n")
        self._out.console.file.flush()

    def where(self, state: str, why: str | None) -> None:
        return None

    def notice(self, text: str) -> None:
        self._out.notice(text)


class LiveScreen(_Base):
    """Colours, and a status line below the log."""

    def __init__(self, console: Console, *, verbose: bool = False, summary_follows: bool = False) -> None:
        super().__init__(verbose=verbose, summary_follows=summary_follows)
        self._console = console
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
        if not self._shows(event):
            return
        stream, payload = event["stream"], str(event["payload"]).rstrip("\n")
        text = Text.from_ansi(colours_only(payload))
        if stream == "stderr":
            text.style = "yellow"
        elif stream != "stdout":
            text = Text.assemble((PREFIXES.get(stream, f"|{stream}|") + " ", "dim"), text, style="dim")
        self._console.print(text, soft_wrap=True)

    def where(self, state: str, why: str | None) -> None:
        self._status.set(state, why)

    def notice(self, text: str) -> None:
        self._console.print(Text(text, style="yellow"), soft_wrap=True)


class Status:
    """The line below the log: state, what it waits for, and for how long already."""

    def __init__(self) -> None:
        self._spinner = Spinner("dots")
        self._state, self._why = "", ""
        self._since = time.monotonic()

    def set(self, state: str, why: str | None) -> None:
        """Tell where the job is; a new state starts counting anew."""
        if state != self._state:
            self._since = time.monotonic()
        self._state, self._why = state, why or ""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        spent = times.duration(int(time.monotonic() - self._since) or 0)
        text = Text.assemble((self._state, STYLES.get(self._state, "")), ("  " + spent, "dim"))
        text.append(f"  {self._why}" if self._why else "")
        text.truncate(max(10, options.max_width - 3), overflow="ellipsis")
        self._spinner.text = text
        yield self._spinner
