"""Whether the work goes on: cancellation, the lease and the timeout, shared by all threads; and the agent's errors."""

from __future__ import annotations

import signal
import threading
import traceback
from collections.abc import Callable
from enum import Enum
from typing import Any

from .log import log, now

DANGER_ZONE = 0.2  # the last part of a lease, kept for stopping the work in


class ServiceError(Exception):
    """A call to the service did not succeed."""


class Unreachable(ServiceError):
    """No answer, or one that means: try again. The only error that is retried."""


class Refused(ServiceError):
    """The service refused the call for good."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(f"HTTP {status}: {detail}" if detail else f"HTTP {status}")
        self.status = status


class Declined(Exception):
    """The agent cannot do what a task asked for. The message says why."""


class Abandoned(ServiceError):
    """The work is abandoned, so nothing is sent."""


class Stop(Enum):
    """Why the work is stopped. Outputs and a report with this result follow."""

    CANCELLED, TIMED_OUT = "cancelled", "timed_out"


class Abandon(Enum):
    """Why the work is abandoned. No report follows."""

    LOST = "the lease could not be renewed"
    GONE = "the service says that this worker is no longer wanted"
    REFUSED = "the service refused this worker"
    TERMINATED = "the agent was told to terminate"
    BROKEN = "the agent has a bug (see above)"
    DONE = "the job is reported"


class Control:
    """Whether the work goes on. The first reason to stop counts, and the first to abandon."""

    def __init__(self) -> None:
        self.stopped: Stop | None = None
        self.abandoned: Abandon | None = None
        self.watched = True  # whether somebody is looking at the job's output
        self.full: dict[str, int] | None = None  # the log has no room for output; what the service dropped of it
        self.deadline: float | None = None
        self.held_until = 0.0  # when the hold ends that an operator has put on the worker
        self._lease, self._grace = 0.0, 0.0
        self._renewed: float | None = None
        self._changed = threading.Condition()

    def renew_lease(self, reply: dict[str, Any], asked: float) -> None:
        """Renew the lease with an answer of the service. The lease counts from the request, not from the answer."""
        self._lease = float(reply.get("lease_seconds", self._lease))
        self._grace = float(reply.get("grace_seconds", self._grace))
        self._renewed = max(asked, self._renewed or asked)
        self.watched = bool(reply.get("watched", self.watched))
        self.full = reply.get("full") or self.full
        if reply.get("cancel"):
            self.stop(Stop.CANCELLED)

    def stop(self, why: Stop) -> None:
        with self._changed:
            self.stopped = self.stopped or why
            self._changed.notify_all()

    def abandon(self, why: Abandon) -> None:
        with self._changed:
            if not self.abandoned and why is not Abandon.DONE:
                log(f"abandoning the work: {why.value}")
            self.abandoned = self.abandoned or why
            self._changed.notify_all()

    @property
    def stopping(self) -> bool:
        return bool(self.stopped or self.abandoned)

    def check(self) -> None:
        """Raise Abandoned if nothing may be sent any more. A lost lease still allows one try."""
        if self.abandoned and self.abandoned is not Abandon.LOST:
            raise Abandoned(self.abandoned.value)

    def grace(self) -> float:
        """Return how many seconds processes have between TERM and KILL."""
        if self.abandoned is Abandon.LOST:  # all must be dead before the lease is over
            return min(self._grace, self._lease * DANGER_ZONE * 0.75)
        return min(self._grace, 2.0) if self.abandoned else self._grace

    def short_grace(self) -> float:
        """Return the grace for processes that a task left running."""
        return min(self.grace(), 2.0)

    def sleep(self, seconds: float) -> bool:
        """Sleep until the time is over or the work is abandoned. Return whether it goes on."""
        until = now() + seconds
        with self._changed:
            while not self.abandoned and now() < until:
                self._changed.wait(min(until - now(), 1.0))
        return not self.abandoned

    def watch_clock(self) -> None:
        """Stop the work at its timeout, abandon it when the lease can't be renewed. Runs as a thread.

        The work ends before the lease does: after that another worker may have the job. [JOB-2]
        """
        while self.sleep(0.2):
            deadline, renewed = self.deadline, self._renewed
            if deadline is not None and now() >= deadline:
                self.stop(Stop.TIMED_OUT)
            if renewed is not None and now() >= renewed + self._lease * (1 - DANGER_ZONE):
                self.abandon(Abandon.LOST)


def start_thread(control: Control, name: str, work: Callable[[], None]) -> threading.Thread:
    """Start a helper thread. An unexpected exception in it abandons the work: better lost than hanging."""

    def guarded() -> None:
        try:
            work()
        except ServiceError as why:
            log(f"{name} ends: {why}")
        except Exception:
            log(f"{name} failed:\n{traceback.format_exc()}")
            control.abandon(Abandon.BROKEN)

    thread = threading.Thread(target=guarded, name=name, daemon=True)
    thread.start()
    return thread


def handle_signals(control: Control) -> None:
    """Abandon the work on SIGTERM or SIGINT: in a thread, because a signal handler must not wait for a lock."""

    def terminate(number: int, frame: Any) -> None:
        threading.Thread(target=control.abandon, args=(Abandon.TERMINATED,), daemon=True).start()

    signal.signal(signal.SIGTERM, terminate)
    signal.signal(signal.SIGINT, terminate)
