"""One process's queues and flows: its own messages, taken in any order, some of them twice."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from typing import Any

DOUBLED = 0.02


class Messages:
    """Queues whose messages come back to the process that sent them. As long as they are, those that are due."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice
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
        """Place a message, now and then twice."""
        due = time.monotonic() + after
        self._waiting += [(due, message)] * (2 if self._dice.random() < DOUBLED else 1)

    def take(self) -> dict[str, Any] | None:
        """Any message that is due."""
        due = self._due()
        return self._waiting.pop(self._dice.choice(due))[1] if due else None

    def __len__(self) -> int:
        return len(self._due())

    def _due(self) -> list[int]:
        now = time.monotonic()
        return [at for at, (when, _) in enumerate(self._waiting) if when <= now]


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
