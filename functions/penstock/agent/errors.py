"""What can come of a call to the service, and of one to the agent."""

from __future__ import annotations


class ServiceError(Exception):
    """A call to the service did not succeed."""


class Unreachable(ServiceError):
    """No answer, or one that says try again: the only error that is retried."""


class Refused(ServiceError):
    """The service answered that this will never work."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(f"HTTP {status}: {detail}" if detail else f"HTTP {status}")
        self.status = status


class Declined(Exception):
    """What a task asked its agent for cannot be done; the message says why."""


class Abandoned(ServiceError):
    """The work was abandoned, so nothing is sent."""
