"""The caches that the job file names: restored before the first task, saved when the job has succeeded."""

from __future__ import annotations

from .caches import HIT, Caches, Wanted
from .job import Job


class Declared:
    """The caches of a job file. `until` is when the job's time is over, by the agent's clock."""

    def __init__(self, job: Job, until: float) -> None:
        self._job, self._caches = job, Caches(job, until)
        work = job.places.on_machine("/work")
        self._all = [
            Wanted(told["name"], list(told["paths"]), told["key"], list(told["restore_keys"]), work)
            for told in job.order.reply.get("caches") or []
        ]
        self._there: set[str] = set()

    def restore(self) -> None:
        """Restore each, unless the work is to be stopped."""
        for wanted in self._all:
            if self._job.control.stopping:
                return
            came = self._caches.restore(wanted)
            self._say(came.text)
            if came.word == HIT:
                self._there.add(wanted.name)

    def save(self) -> None:
        """Save each whose key had nothing when the job began."""
        for wanted in self._all:
            if wanted.name not in self._there and not self._job.control.stopping:
                self._say(self._caches.save(wanted).text)

    def _say(self, text: str) -> None:
        self._job.outbox.put("worker", None, text)
