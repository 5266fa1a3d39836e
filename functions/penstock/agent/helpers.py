"""Threads that help the main one."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable

from .control import Abandon, Control
from .errors import ServiceError
from .log import log


def start(control: Control, name: str, work: Callable[[], None]) -> threading.Thread:
    """Start a helper. When it fails by a bug, the work is abandoned: better lost than hanging."""

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
