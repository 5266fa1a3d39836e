"""What the agent tells about the job."""

from __future__ import annotations

import json
import os
import socket
from typing import Any

ANSWER_SECONDS = 40  # the agent may have to ask the service first


class Absent(Exception):
    """What a script asked for is not there; the message says what is."""


def facts() -> dict[str, Any]:
    """Ask the agent: worker, factory, resources. Raises Absent."""
    return ask({"do": "facts"})


def ask(what: dict[str, Any], seconds: float | None = ANSWER_SECONDS) -> dict[str, Any]:
    """Ask the agent for something; None waits for as long as it works. Raises Absent, also for why it cannot give."""
    answer = _ask(json.dumps(what).encode() + b"\n", seconds)
    if "error" in answer:
        raise Absent(str(answer["error"]))
    return answer


def _ask(line: bytes, seconds: float | None) -> dict[str, Any]:
    try:
        with socket.socket(socket.AF_UNIX) as agent:
            agent.settimeout(seconds)
            agent.connect(os.environ.get("PENSTOCK_SOCKET", ""))
            agent.sendall(line)
            with agent.makefile("rb") as answer:
                return dict(json.load(answer))
    except (OSError, ValueError) as why:
        raise Absent(f"no agent answers ({why}); bmat works in the tasks of a running job") from why


def pick(what: str, name: str, among: dict[str, Any]) -> Any:
    """Look a name up. Raises Absent, which lists the names there are."""
    if name not in among:
        raise Absent(f"there is no {what} {name!r}; there is: {', '.join(sorted(among)) or 'none'}")
    return among[name]


def plain(value: Any) -> str:
    """Return text as it is, anything else as JSON."""
    return value if isinstance(value, str) else "" if value is None else json.dumps(value)
