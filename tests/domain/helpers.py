"""Rows as most tests want them; every test names what it changes."""

from datetime import UTC, datetime, timedelta
from typing import Any

from penstock.domain.jobs.jobs import Job, JobLimits, Request, State, Times
from penstock.domain.pools.pools import Claim, Lease, LeaseState, Need, Pool, Slot, SlotState
from penstock.domain.units.units import Unit, UnitKind, UnitLease, UnitState
from tests.rows import changed

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)


def job(**changes: Any) -> Job:
    needs = (Need(1, 1, "bench", "bench", "resource/bench", "benches"), Need(0, 0, "worker", "u", "target/u", "f"))
    plain = Job(
        id="J1",
        name="build",
        owner="ada",
        state=State.QUEUED,
        request=Request(target="default", target_resolved="ubuntu", needs=needs),
        limits=JobLimits(timeout=600, queue_seconds=3600, grace=30),
        times=Times(submitted=NOW, ready=NOW),
    )
    return changed(plain, **changes)


def lease(order: int = 1, state: LeaseState = LeaseState.WAITING, **changes: Any) -> Lease:
    fields: dict[str, Any] = {"job": "J1", "attempt": 1, "name": "it", "type": "bench", "pool": "resource/bench"}
    return Lease(**{**fields, "order": order, "step": order, "state": state, "token": "t", "since": NOW, **changes})


def pool(**changes: Any) -> Pool:
    return Pool(**{"name": "resource/bench", "limit": 2, **changes})


def slot(name: str = "1", state: SlotState = SlotState.FREE, **changes: Any) -> Slot:
    return Slot(**{"pool": "resource/bench", "name": name, "state": state, **changes})


def claim(job: str = "J1", priority: int = 0, **changes: Any) -> Claim:
    fields: dict[str, Any] = {
        "pool": "resource/bench",
        "attempt": 1,
        "step": 1,
        "count": 1,
        "pools": ("resource/bench",),
        "since": NOW,
    }
    return Claim(**{**fields, "job": job, "priority": priority, **changes})


def unit(**changes: Any) -> Unit:
    plain = Unit(
        id="w-1",
        is_a=UnitKind.WORKER,
        maker="here",
        type="ubuntu",
        state=UnitState.CREATING,
        lease=UnitLease(job="J1", attempt=1, order=0, pool="target/ubuntu", slot="1", fence=1),
        since=NOW,
        due=NOW,
    )
    return changed(plain, **changes)
