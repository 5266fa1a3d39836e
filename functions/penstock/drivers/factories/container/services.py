"""Services: containers beside a worker's, which live and die with it.

They share the worker's network, so that a job reaches each as a host of its name. Others reach them as far as they
reach the worker. Its container is there first: its agent waits until all services are ready, and holds the local
cloud's port by then, which no service can take. [SEC-2]
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from penstock.drivers.factories.container.containers import ENDED, ENDING, NOT_STARTED, Container, Containers
from penstock.drivers.factories.container.settings import Settings
from penstock.drivers.factories.container.spec import WAITING, Deployment, go, service_body
from penstock.kernel.errors import Misconfigured, Unsatisfiable
from penstock.ports import NotYet, Order

READY_WITHIN = timedelta(minutes=5)
"""How long a service may take until it is ready, from its start."""

COMMAND_SECONDS = 5.0
"""How long one call waits for the end of the command that tells whether a service is ready."""

AGAIN_SECONDS = 1
SHOWN_CHARS = 1000
"""How many characters of the end of a service's output a failure shows."""


class Services:
    """The services of one worker. Each call of `begin` takes the next step, and finds out by itself which that is."""

    def __init__(self, containers: Containers, settings: Settings, of_us: Deployment) -> None:
        self._containers, self._settings, self._of_us = containers, settings, of_us

    def begin(self, order: Order, worker: Container) -> NotYet | None:
        """Have the services of a worker made, and let its agent go on once all are ready. None when that is done.

        Raises Unsatisfiable for one that ended, or is not ready in time.
        """
        services: Mapping[str, Mapping[str, Any]] = order.options.get("services", {})
        if not services:
            return None
        if not self._containers.has_file(worker, WAITING):
            return NotYet(AGAIN_SECONDS, "its container does not wait for its services yet")
        for name, said in services.items():
            wait = self._begin_named(order.id, name, said, worker)
            if wait:
                return NotYet(AGAIN_SECONDS, f"its service {name} {wait}")
        self._containers.put(worker, go())
        return None

    def _begin_named(self, unit: str, name: str, said: Mapping[str, Any], worker: Container) -> str | None:
        """Take the next step of one service. What the engine refuses is wrong in the job, and not in the site."""
        try:
            return self._begin_one(unit, name, said, worker)
        except Misconfigured as error:
            raise Unsatisfiable(f"service {name} cannot be had: {error}") from error

    def _begin_one(self, unit: str, name: str, said: Mapping[str, Any], worker: Container) -> str | None:
        """Take the next step of one service. What it waits for, None if it is ready."""
        full, image = f"{unit}-{name}", str(said["image"])
        found = self._containers.find(full, unit)
        if found is None and not self._containers.has_image(image):
            return "waits for its image, which is being pulled"
        description = service_body(unit, name, said, worker.id, self._settings, self._of_us)
        found = found or self._containers.make(full, unit, description)
        if found and found.state in NOT_STARTED:
            self._containers.start(found)
            found = self._containers.find(full, unit)
        if found and found.state in ENDED:
            raise Unsatisfiable(f"service {name} ended with exit code {found.code}{self._shown(found)}")
        is_running = found is not None and found.state not in (*NOT_STARTED, *ENDING)
        return self._wait(name, str(said.get("ready", "")), found) if found and is_running else "does not run yet"

    def _wait(self, name: str, command: str, found: Container) -> str | None:
        """What a service that runs waits for; None if it is ready."""
        if not command or self._containers.succeeds(found, command, COMMAND_SECONDS):
            return None
        if _age(found) > READY_WITHIN:
            minutes = int(READY_WITHIN.total_seconds() // 60)
            why = f"service {name} is not ready {minutes} minutes after its start: `{command}` fails"
            raise Unsatisfiable(f"{why}{self._shown(found)}")
        return "is not ready yet"

    def _shown(self, found: Container) -> str:
        printed = self._containers.output(found.id)[-SHOWN_CHARS:]
        return f"; end of its output:\n{printed or '(nothing)'}"


def _age(found: Container) -> timedelta:
    """How long ago a container was started, by the clock of this machine, which is the engine's too."""
    try:
        started = datetime.fromisoformat(f"{found.started[:19]}+00:00")
    except ValueError:
        return timedelta()
    return datetime.now(UTC) - started
