"""A job's log, followed until the job settles."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from penstock.cli.client import Api
from penstock.cli.errors import CliError, Interrupted
from penstock.cli.screen import Screen
from penstock.cli.transport import Patience

FAST, SLOW = 0.3, 1.5
"""Seconds between two looks: while lines come, and when none have come for a while.

With the agent's own wait (0.2 s while somebody looks) a line is shown within 2 s.
"""
WHY_FIRST, WHY_EACH = 1.0, 5.0
"""Seconds until it is asked what a job waits for, and between two such questions."""
PATIENCE_SECONDS = 30.0
"""For how long a lost service is awaited."""


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
        """Say where the job is; ask now and then what it waits for."""
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
        f"stopped watching; job {job} goes on",
        f"`penstock job tail {job}` follows it, `penstock job cancel {job}` ends it",
    )
