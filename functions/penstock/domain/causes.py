"""Why an attempt was lost, and what became of a worker that was to boot, for those who count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from penstock.domain.custody import is_recycled
from penstock.domain.jobs import Job, Result, State
from penstock.domain.units import Unit, UnitKind, UnitState

NO_HELLO = "no hello"
SILENT = "lost"
"""The reasons that a worker's row has when its agent said nothing in time: no first word, or no further one."""


class LostBy(StrEnum):
    """Why an attempt was lost."""

    NO_HELLO = "no_hello"  # its worker was made, and its agent never spoke
    SILENT = "silent"  # its worker's agent fell silent
    VANISHED = "vanished"  # a unit of it is not listed any more
    RECYCLED = "recycled"  # an operator recycled a unit of it
    OVERDUE = "overdue"  # its script neither ended nor was stopped in its time
    FLOW = "flow"  # its flow did not go on


class Boot(StrEnum):
    """What became of a worker that was ordered. A kept one that goes to its next job is not ordered."""

    SUCCESS = "success"  # its agent said hello
    FAILED = "failed"  # its agent did not in time, or it can never be made
    DISAPPEARED = "disappeared"  # it was listed, and then was not, before it spoke
    ABORTED = "aborted"  # its attempt ended before


@dataclass(frozen=True)
class Ending:
    """An attempt at its end: the job before and after it, its units, and the error that ended its flow.

    `is_overdue` says that the sweep ended it.
    """

    before: Job
    after: Job
    units: Sequence[Unit]
    error: str | None
    is_overdue: bool

    @property
    def is_lost(self) -> bool:
        """Whether the attempt was lost. An agent's report has the last word, and one that is cancelled is not."""
        if self.before.cancelled_by:
            return False
        report = self.before.report
        return report.result is Result.LOST if report else self.error == "Lost"

    @property
    def lost_by(self) -> LostBy | None:
        """Why it was lost, if it was."""
        if not self.is_lost:
            return None
        if any(is_recycled(unit) for unit in self.units):
            return LostBy.RECYCLED
        if self.is_overdue and self.before.report is None:
            return LostBy.OVERDUE if self.before.state is State.RUNNING else LostBy.FLOW
        by_reason = {NO_HELLO: LostBy.NO_HELLO, SILENT: LostBy.SILENT}
        return by_reason.get(self._worker_reason, LostBy.VANISHED)

    @property
    def boot(self) -> Boot | None:
        """What became of the worker, if it was ordered and not heard of."""
        worker = self._worker
        if worker is None or worker.state is not UnitState.CREATING or worker.leases > 1:
            return None
        if self._worker_reason == NO_HELLO or self.error == "Unsatisfiable":
            return Boot.FAILED
        return Boot.DISAPPEARED if self.lost_by is LostBy.VANISHED else Boot.ABORTED

    @property
    def _worker(self) -> Unit | None:
        return next((unit for unit in self.units if unit.is_a is UnitKind.WORKER), None)

    @property
    def _worker_reason(self) -> str:
        return (self._worker and self._worker.reason) or ""
