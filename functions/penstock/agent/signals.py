"""What the agent does when it is told to terminate."""

from __future__ import annotations

import signal
import threading
from typing import Any

from .control import Abandon, Control


def obey(control: Control) -> None:
    """Abandon the work on SIGTERM or SIGINT; in a thread, as a handler must not wait for a lock."""

    def terminate(number: int, frame: Any) -> None:
        threading.Thread(target=control.abandon, args=(Abandon.TERMINATED,), daemon=True).start()

    signal.signal(signal.SIGTERM, terminate)
    signal.signal(signal.SIGINT, terminate)
