"""What tasks may call what they ask their agent for: it becomes part of the names of streams."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from .control import Declined

NAME = re.compile(r"[A-Za-z0-9._-]{1,48}")
MOST = 100


def texts(env: Any) -> dict[str, str]:
    """Return an environment as a process can have it: whoever asks may write to the socket what they like."""
    return {str(name): str(value) for name, value in dict(env).items()}


def admit(name: str, known: Collection[str], what: str) -> None:
    """Make sure that a name can be one more of those that are known. Raises Declined."""
    if not NAME.fullmatch(name):
        raise Declined(f"{name!r} is no name: 1 to 48 of A-Z a-z 0-9 . _ -")
    if name in known:
        raise Declined(f"there is a {what} {name} already")
    if len(known) >= MOST:
        raise Declined(f"there is room for {MOST} of a {what}, and no more")
