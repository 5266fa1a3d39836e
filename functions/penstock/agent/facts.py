"""What a job may know of itself, as it is now: what was said of its resources may have been said anew."""

from __future__ import annotations

import json
import threading
from typing import Any

from .control import ServiceError
from .job import Job
from .log import log, now
from .masking import resource_secrets

TRIES = 2
LEAST_SECONDS = 10.0  # how often the service is asked at the most


class Facts:
    """Asks the service again when what it said is no longer fresh. Until it answers, what it said last stands."""

    def __init__(self, job: Job) -> None:
        reply = job.order.reply
        self._job, self._one_asks = job, threading.Lock()
        self._facts = {"worker": job.config.worker, "factory": reply["factory"]}
        self._hear(reply.get("resources") or {}, job.order.told, 0.0)

    def read(self) -> bytes:
        """Return all of it as JSON."""
        with self._one_asks:
            if now() >= self._fresh_until:
                self._ask()
            return json.dumps({**self._facts, "resources": self._resources}).encode()

    def _ask(self) -> None:
        asked = now()
        try:
            told = self._job.service.call(self._job.order.job, "resources", {}, TRIES)["resources"]
        except (ServiceError, KeyError) as why:
            log(f"what the job may know of its resources cannot be asked anew: {why}")
            told = self._resources
        self._hear(told, asked, LEAST_SECONDS)

    def _hear(self, resources: dict[str, Any], asked: float, least: float) -> None:
        self._job.mask.learn(resource_secrets(resources))  # before anybody is told of them [SEC-1]
        self._resources = resources
        fresh = [float(told["fresh_seconds"]) for told in resources.values() if "fresh_seconds" in told]
        self._fresh_until = asked + max(least, min(fresh)) if fresh else float("inf")
