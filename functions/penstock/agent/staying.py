"""Leaves a machine as it is for as long as an operator holds it."""

from __future__ import annotations

from typing import Any

from .client import Client
from .config import Config
from .control import Control, Unreachable, handle_signals
from .log import log, now

TRIES = 5  # of one question; a service that is away is asked again for as long as the hold lasts


def stay(config: Config, introduction: dict[str, Any], until: float) -> None:
    """Ask again and again, touching nothing, until the service says that the hold is over. [UNIT-3]

    `until` is the end of the hold as it was told last: a service that cannot be reached is believed for as long. It is
    0 for an agent that was not told of a hold, and asks whether there is one before it leaves. Raises ServiceError.
    """
    control = Control()
    handle_signals(control)
    service = Client(config.url, config.token(), control)
    while True:
        try:
            reply = service.hello(introduction, TRIES)
        except Unreachable:
            if until <= now():
                raise
            continue
        held = float(reply.get("held_seconds") or 0.0)
        if not held:
            return
        log(f"an operator holds this worker; its machine is left as it is for at most {held:.0f} s")
        until = now() + held
        control.sleep(min(float(reply["seconds"]), held))
