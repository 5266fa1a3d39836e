"""What there is to say about outputs."""

from __future__ import annotations

from dataclasses import dataclass

from .events import Outbox
from .files import Found, NotUploaded
from .outcome import Failure


@dataclass(frozen=True)
class Fault:
    """Why the outputs are not what they are to be, in words and as a failure."""

    text: str
    failure: Failure


class Faults:
    """Tells it to the job's readers, and keeps the first fault, for which the job fails."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self.first: Fault | None = None

    def say(self, text: str) -> None:
        self._outbox.put("worker", None, text)

    def fail(self, text: str, failure: Failure) -> None:
        self.say(f"error: {text}")
        self.first = self.first or Fault(text, failure)

    def blame(self, file: Found, why: NotUploaded) -> None:
        """Report a file that was not uploaded: a warning, if its rule allows for that."""
        text = f"output {file.name} was not uploaded: {why}"
        if why.moving and file.may_change:
            self.say(f"warning: {text}")
        else:
            self.fail(text, _failure(file, why))


def _failure(file: Found, why: NotUploaded) -> Failure:
    if why.limit is not None:
        return Failure("output_too_large", {"path": file.name, "size_bytes": why.size, "limit_bytes": why.limit})
    return Failure("output_not_kept", {"path": file.name, "error": str(why)})
