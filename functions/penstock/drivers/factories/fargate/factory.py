"""The `fargate` factory: workers that are tasks of ECS on Fargate. See docs/operators/fargate.md."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from penstock.domain.account import DIGEST, Thing
from penstock.domain.units.units import CleanProof
from penstock.drivers import MAKER
from penstock.drivers.factories.aws.tags import SITE, Tags
from penstock.drivers.factories.fargate import settings as fargate_settings
from penstock.drivers.factories.fargate.alternatives import alternatives, scope_prefix
from penstock.drivers.factories.fargate.definition import Families
from penstock.drivers.factories.fargate.errors import CODES
from penstock.drivers.factories.fargate.events import read_event
from penstock.drivers.factories.fargate.launch import TASKS, TRIES, launch, metadata, noted
from penstock.drivers.factories.fargate.tasks import RUNNING, STARTING, Task, Tasks, connect, printed
from penstock.drivers.factories.shortages import has_alternative, lateness
from penstock.kernel.errors import Misconfigured, Unsatisfiable
from penstock.ports import MachineFate, MachineNotice, NotYet, Order, Ready, UnitContext

RECHECK_SECONDS = 5
"""Seconds between checks of a task that is being stopped."""

PULL_SECONDS = 10
"""Seconds between checks of a task whose image only its job knows, and which may not exist."""

LISTING_LAG = 300
"""Seconds until ECS lists a new task at the latest: its API Reference advises to wait up to five minutes."""

EVIDENCE_CHARS = 8 * 1024
"""How many characters of the end of the log become evidence."""

NO_SUCH_IMAGE = re.compile(
    r"CannotPullContainer.*(not found|manifest unknown|no match for platform|denied|unauthorized|does not exist)",
    re.I | re.S,
)
"""What ECS says of an image that can never be pulled. Other reasons, such as a registry that is away, may end."""


class FargateFactory:
    """Makes workers in one cluster. What it must know of its tasks between calls is in its notes. [UNIT-1]"""

    def __init__(
        self,
        settings: Mapping[str, Any],
        environment: Mapping[str, str],
        client: Callable[[str, str], Any] = connect,
        notes: Mapping[str, Any] | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        if not environment.get(SITE) or not environment.get(MAKER):
            raise Misconfigured(f"the fargate driver needs {SITE} and {MAKER} in its environment, to tag what it makes")
        self._given, self._environment, self._client = settings, environment, client
        self._monotonic = monotonic
        self._settings = fargate_settings.read(settings)
        self._tags = Tags(environment[SITE], environment[MAKER])
        self._families = Families.by(self._tags)
        self._noted: Sequence[str] = (notes or {}).get(TASKS, ())
        self._tries: int = (notes or {}).get(TRIES, 0)

    reusable = True

    def with_context(self, of: UnitContext) -> FargateFactory:
        """The driver for one worker: its tasks, as far as they are known, and how often ECS refused it one."""
        return FargateFactory(self._given, self._environment, self._client, of.notes, self._monotonic)

    @staticmethod
    def complaints(settings: Mapping[str, Any]) -> Sequence[str]:
        """What is wrong with settings, one sentence each. Calls no service."""
        return fargate_settings.complaints(settings)

    @staticmethod
    def objections(options: Mapping[str, Any], factory: Mapping[str, Any], _: Mapping[str, Any]) -> Sequence[str]:
        """What is wrong with what a job says of its container. Calls no service."""
        return fargate_settings.objections(options, factory)

    @property
    def _tasks(self) -> Tasks:
        client = self._client("ecs", self._settings.region)
        return Tasks(client, self._settings.cluster, self._families.site)

    def create(self, order: Order) -> Ready | NotYet:
        """Run the worker's task unless it exists, trying one alternative after the other."""
        is_late = lateness(self._monotonic)
        with CODES.driver_errors():
            found = self._tasks.of_worker(order.id, self._noted)
            if not found and self._noted:
                return NotYet(PULL_SECONDS, "ECS does not show its task yet")
            if found:
                task = next((each for each in found if not each.is_ending), found[0])
                done = Ready(metadata(task), proves=(), notes=noted(found, self._tries))
            else:
                task, done = launch(order, self._tasks, self._settings, self._tags, self._tries, is_late)
        return self._unless_pulled(order, task, done)

    def _unless_pulled(self, order: Order, task: Task, done: Ready) -> Ready | NotYet:
        """Wait for an image that only the job names: if it cannot be had, the job fails, and nothing is wrong here."""
        if order.options.get("image", self._settings.image) == self._settings.image:
            return done
        if NO_SUCH_IMAGE.search(task.reason):
            raise Unsatisfiable(f"the image {order.options['image']} cannot be had: {task.reason}")
        if task.state in STARTING and not task.is_ending:
            return NotYet(PULL_SECONDS, "its image is being pulled", notes=done.notes)
        return done

    def destroy(self, unit: str, now: datetime) -> CleanProof | NotYet:
        """Stop the worker's tasks; a proof when ECS says that all of them have stopped.

        A task that is to stop is not listed by its worker any more. So it is known by the notes, or looked for.
        """
        with CODES.driver_errors():
            tasks = self._tasks.of_worker(unit, self._noted) or self._tasks.ending(unit)
            for task in tasks:
                if not task.is_ending:
                    self._tasks.stop(task)
        if not all(task.is_gone for task in tasks):
            return NotYet(RECHECK_SECONDS, "its task is stopping", notes=noted(tasks, self._tries))
        gone = ", ".join(task.id for task in tasks) or "none was listed"
        checked = f"no task started by {unit} is left in the cluster {self._settings.cluster}; stopped: {gone}"
        return CleanProof(by="fargate", time=now, checked=checked, lag=0 if tasks else LISTING_LAG)

    def list(self) -> Iterable[str]:
        """The workers of this factory whose tasks ECS does not end yet. One that it ends is gone in two minutes."""
        with CODES.driver_errors():
            found = [each for each in self._tasks.alive() if each.family.startswith(self._families.prefix)]
            return sorted({task.worker for task in found if task.worker})

    def things(self) -> Iterable[Thing]:
        """The tasks of this site in the cluster, and the task definitions of its other factories: those of this one are
        for tasks to come, and deregistered by themselves.
        """
        with CODES.driver_errors():
            tasks = [
                Thing("task", each.id, each.worker, each.made, maker=self._maker(each.family))
                for each in self._tasks.alive()
            ]
            families = self._tasks.families(self._families.site)
        others = [each for each in families if not each.startswith(self._families.prefix)]
        return [*tasks, *(Thing("task definition", each, "", maker=self._maker(each)) for each in others)]

    def _maker(self, family: str) -> str:
        return f"{DIGEST}{self._families.maker(family)}"

    def evidence(self, unit: str) -> str | None:
        """The state of a worker's tasks, why they stopped, and the end of their log, if the site has one."""
        with CODES.driver_errors():
            tasks = self._tasks.of_worker(unit, self._noted) or self._tasks.ending(unit)
            return "\n".join(map(self._describe, tasks)) or None

    def _describe(self, task: Task) -> str:
        why = f" ({task.stop_code}): {task.reason}" if task.reason else ""
        head = f"task {task.id} ({task.market}, {task.zone}) is {task.state}{why}"
        if not self._settings.log_group:
            return f"{head}; the factory has no log_group"
        logs = self._client("logs", self._settings.region)
        said = printed(logs, self._settings.log_group, task, EVIDENCE_CHARS)
        return f"{head}; end of its log:\n{said}" if said else f"{head}; its log is empty"

    def has_alternative(self, order: Order) -> bool:
        """Whether an order leaves any alternative to try."""
        return has_alternative(order, alternatives(self._settings))

    def shares_scope(self, scope: str) -> bool:
        """Whether a scope is in this region. ECS counts the vCPUs of all factories of an account there."""
        return scope.startswith(f"{scope_prefix(self._settings.region)}/")

    def read_event(self, event: Mapping[str, Any]) -> MachineNotice | None:
        """What an event of EventBridge means for a worker of this site in this cluster."""
        found = read_event(event)
        if found is None or not found.worker or not self._is_here(found.region, found.cluster):
            return None
        if not found.family.startswith(self._families.site):
            return None
        if found.fate is MachineFate.LOST and self._has_twin(found.worker, found.task):
            return None
        return MachineNotice(found.worker, found.fate, found.why, found.until)

    def _is_here(self, region: str, cluster: str) -> bool:
        """Whether an event is of this factory's cluster. Settings may have its name or its ARN."""
        names = (cluster, cluster.rpartition("/")[2])
        return region == self._settings.region and self._settings.cluster in names

    def _has_twin(self, worker: str, task: str) -> bool:
        """Whether the worker has another task: then the loss of this one does not lose the worker. [JOB-2]

        A RunTask whose answer was lost, and that was repeated with other settings, makes a second one.
        """
        with CODES.driver_errors():
            return any(each.id != task and each.state in (*STARTING, RUNNING) for each in self._tasks.of_worker(worker))
