"""The queues and flows of all processes: a message goes to any process, in any order, some of them twice."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from typing import Any

DOUBLED = 0.02


class Messages:
    """What one process takes of the queues, and sends to them.

    `inboxes` has a queue for each process. A message goes to one that is drawn, as SQS hands it to whichever function
    takes it: if it came back to its sender, who grants first would have all the work, and nobody would race.
    `pending` counts the messages that are due and not handled; those that are not due yet are not in it.
    """

    def __init__(self, dice: random.Random, inboxes: Sequence[Any], number: int, pending: Any) -> None:
        self._dice = dice
        self._inboxes = inboxes
        self._inbox = inboxes[number]
        self._pending = pending
        self._waiting: list[tuple[float, dict[str, Any]]] = []

    def schedule(self, message: Mapping[str, Any]) -> None:
        self.put(dict(message))

    def serve(self, names: Sequence[str], group: str) -> None:
        self.put({"do": "serve", "pools": list(names), "group": group})

    def advance(self, unit: str, is_worker: bool, after: int = 0, maker: str = "") -> None:
        del is_worker
        self.put({"do": "advance", "unit": unit}, after)

    def console(self, unit: str, by: str, maker: str = "") -> None:
        """Nobody asks for it."""

    def power(self, host: str, after: int = 0, maker: str = "") -> None:
        """There are no hosts."""

    def sweep(self, message: Mapping[str, Any]) -> None:
        """Nobody takes these: the next sweep finds the same."""

    def put(self, message: dict[str, Any], after: float = 0) -> None:
        """Send a message, now and then twice."""
        for _ in range(2 if self._dice.random() < DOUBLED else 1):
            self._count(0 if after else 1)
            self._dice.choice(self._inboxes).put((time.monotonic() + after if after else 0.0, message))

    def take(self) -> dict[str, Any] | None:
        """Any message that is due. Who takes one says so when it is handled."""
        while not self._inbox.empty():
            self._waiting.append(self._inbox.get())
        now = time.monotonic()
        due = [at for at, (when, _) in enumerate(self._waiting) if when <= now]
        if not due:
            return None
        when, message = self._waiting.pop(self._dice.choice(due))
        self._count(1 if when else 0)
        return message

    def handled(self) -> None:
        """Count a message no more that was taken. What its handler sent is counted by then."""
        self._count(-1)

    def submitting(self) -> None:
        """Count a job that is being submitted like a message, until `handled` is called."""
        self._count(1)

    def _count(self, more: int) -> None:
        with self._pending.get_lock():
            self._pending.value += more


def token(job: str, step: int, steps: int) -> str:
    """The token of a parked step: all that is needed to go on after it, by whichever process answers."""
    return f"{job}/{step}/{steps}"


class Steps:
    """Flows without a state of their own: what follows is in the token. An answer may come to any process, or twice."""

    def __init__(self, messages: Messages) -> None:
        self._messages = messages

    def start(self, job: str, attempt: int, steps: Sequence[int]) -> None:
        self._messages.put({"do": "acquire", "job": job, "token": token(job, 1, len(steps))})

    def succeed(self, token_: str) -> bool:
        job, step, steps = token_.split("/")
        if step == steps:
            self._messages.put({"do": "settle", "job": job, "error": None, "cause": "it had all that it asked for"})
        else:
            self._messages.put({"do": "acquire", "job": job, "token": token(job, int(step) + 1, int(steps))})
        return True

    def fail(self, token_: str, error: str, cause: str) -> None:
        self._messages.put({"do": "settle", "job": token_.split("/")[0], "error": error, "cause": cause})

    def stop(self, job: str, attempt: int) -> None:
        raise AssertionError("nothing is ended by the sweep, for there is none")
