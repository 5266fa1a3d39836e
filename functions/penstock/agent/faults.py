"""What there is to say about outputs."""

from __future__ import annotations

from .files import Found, NotUploaded
from .outbox import Outbox


class Faults:
    """Tells it to the job's readers, and keeps the first fault, for which the job fails."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self.first: str | None = None

    def say(self, text: str) -> None:
        self._outbox.put("worker", None, text)

    def fail(self, text: str) -> None:
        self.say(f"error: {text}")
        self.first = self.first or text

    def blame(self, file: Found, why: NotUploaded) -> None:
        """Report a file that was not uploaded: a warning, if its rule allows for that."""
        text = f"output {file.name} was not uploaded: {why}"
        if why.moving and file.may_change:
            self.say(f"warning: {text}")
        else:
            self.fail(text)
