"""All that belongs to the one job of this agent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .background import Background
from .client import Client
from .config import Config
from .control import Control, Stop
from .copies import Copies
from .events import Outbox
from .family import Family
from .log import duration_text
from .masking import Mask
from .order import Order
from .outcome import Failure, Outcome
from .places import Places
from .posts import Posts


@dataclass(frozen=True)
class Job:
    """What the parts of the agent share."""

    config: Config
    order: Order
    places: Places
    control: Control
    service: Client
    outbox: Outbox
    family: Family
    mask: Mask
    background: Background
    posts: Posts
    copies: Copies

    def call(self, what: str, body: dict[str, Any]) -> dict[str, Any]:
        """Call the service about this job. Raises ServiceError."""
        return self.service.call(self.order.job, what, body)

    def stopped(self, task: int, how: str) -> Outcome:
        """Return the outcome when work is stopped in or before a task; `how` says what was done to it."""
        if self.control.stopped is Stop.CANCELLED:
            return Outcome("cancelled", f"the job was cancelled; {how}", task, failure=Failure("cancelled", task=task))
        if self.control.stopped is Stop.TIMED_OUT:
            limit = duration_text(self.order.timeout)
            bound = {"bound": "timeout", "bound_seconds": int(self.order.timeout)}
            reason = f"the job ran longer than its timeout of {limit}; {how}"
            return Outcome("timed_out", reason, task, failure=Failure("timed_out", bound, task))
        return Outcome("failed", f"the work was abandoned; {how}", task)
