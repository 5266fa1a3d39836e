"""Takes events from the outbox to the service."""

from __future__ import annotations

from .control import Abandon, Control
from .errors import Refused
from .outbox import Event, Outbox
from .service import Service

ABOUT_CONTENT = (400, 413, 422)  # statuses that refuse what is in a batch, not the worker


class Delivery:
    """Posts batches in order, each until it is taken."""

    def __init__(self, service: Service, control: Control, outbox: Outbox, job: str) -> None:
        self._service, self._control, self._outbox, self._job = service, control, outbox, job

    def run(self) -> None:
        """Deliver events until abandoned. Runs as a thread."""
        while not self._control.abandoned:
            batch = self._outbox.next_batch()
            if batch:
                self._deliver(batch)

    def try_rest(self) -> None:
        """Try once to deliver what is left, after the lease was lost and the thread has ended. Raises ServiceError."""
        while batch := self._outbox.oldest():
            self._deliver(batch)

    def _deliver(self, batch: list[Event]) -> None:
        """Post a batch; of one refused for what is in it half, until the culprit is found and replaced.

        The other half is still the outbox's, which may drop of it what has no room any more.
        """
        try:
            self._post(batch)
        except Refused as why:
            if why.status not in ABOUT_CONTENT:
                self._control.abandon(Abandon.REFUSED)
                raise
            if len(batch) == 1:
                self._replace(batch[0], why.status)
            else:
                self._deliver(batch[: len(batch) // 2])

    def _replace(self, culprit: Event, status: int) -> None:
        try:
            self._post([{**culprit, "payload": f"[the service refused this line: HTTP {status}]"}])
        except Refused:
            self._control.abandon(Abandon.REFUSED)
            raise

    def _post(self, batch: list[Event]) -> None:
        self._service.renew(self._job, "events", {"first": self._outbox.first, "events": batch})
        self._outbox.delivered(len(batch))
