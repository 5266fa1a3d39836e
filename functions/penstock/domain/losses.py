"""What the rows of a lost attempt, and of one that waited in vain, say of why: the evidence of those who cannot."""

from __future__ import annotations

from collections.abc import Collection

from penstock.domain import failures, idling
from penstock.domain.causes import NO_HELLO, SILENT, Ending
from penstock.domain.custody import is_recycled
from penstock.domain.failures import Failure, Kind
from penstock.domain.leases import Lease
from penstock.domain.units import Unit, UnitKind, UnitState


def lost(ending: Ending) -> Failure:
    """Why an attempt was lost: which unit, when it was heard of last, who took it back, and what its maker says."""
    resource = next((unit for unit in ending.units if _is_to_blame(unit, ending.after.reason or "")), None)
    unit = resource or next((unit for unit in ending.units if unit.is_a is UnitKind.WORKER), None)
    evidence = {
        "worker": ending.before.worker,
        "lost_by": ending.lost_by and ending.lost_by.value,
        **(_of(unit) if unit else {}),
    }
    return failures.of(Kind.RESOURCE_LOST if resource else Kind.WORKER_LOST, evidence)


def _is_to_blame(unit: Unit, reason: str) -> bool:
    """Whether a unit is a resource that was lost, and with it the attempt."""
    is_named = unit.reason is not None and unit.reason in reason
    return unit.is_a is UnitKind.RESOURCE and (is_recycled(unit) or is_named)


def _of(unit: Unit) -> dict[str, str | None]:
    said = None if unit.reason in (NO_HELLO, SILENT) else unit.reason
    return {
        unit.is_a.value: unit.id,
        "type": unit.type,
        "last_heard": unit.heard.isoformat(timespec="seconds") if unit.heard else None,
        "notice": str(unit.drain) if unit.drain else None,
        "error": said,
    }


def expired(ending: Ending, leases: Collection[Lease]) -> Failure:
    """What an attempt waited for when its queue deadline was over, and what is said of the unit that was being made."""
    pools = dict.fromkeys(lease.pool for lease in leases if lease.state in idling.PENDING)
    making = (unit.reason for unit in ending.units if unit.state is UnitState.CREATING)
    known = {
        "bound": "queue deadline",
        "bound_seconds": ending.before.queue_seconds,
        "waited_for": ", ".join(pools) or None,
        "error": next(making, None) or ending.after.reason,
    }
    return failures.of(Kind.QUEUE_EXPIRED, known)
