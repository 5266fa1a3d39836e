"""What must be so, looked at whenever everything has come to rest, and at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from penstock.domain.jobs.jobs import Job, State
from penstock.domain.logs.logs import Batch
from penstock.domain.pools.pools import Pool, Slot, SlotState
from penstock.domain.units import quarantine
from penstock.domain.units.units import Unit, UnitState
from penstock.kernel.rows import Row
from tests.crash import shown

if TYPE_CHECKING:
    from tests.crash.life import Life

Rows = Mapping[str, list[Any]]


class Watch:
    """Remembers what it saw, for what may only grow and what may never change."""

    def __init__(self) -> None:
        self.fences: dict[tuple[str, str], int] = {}
        self.ends: dict[str, tuple[Any, Any]] = {}

    def look(self, rows: Mapping[str, list[Row]]) -> None:
        """What must be so at every moment."""
        self._slots(rows)
        self._ends(rows)
        _workers(rows)
        _logs(rows)
        _artifacts(rows)
        shown.look(rows)

    def _slots(self, rows: Rows) -> None:
        slots: list[Slot] = rows.get("slot", [])
        twice = [key for key, count in Counter((slot.pool, slot.name) for slot in slots).items() if count > 1]
        assert not twice, f"SLOT-1: slots that are there twice: {twice}"
        needs = {(slot.pool, slot.thing, slot.job, slot.attempt, slot.order) for slot in slots if slot.job}
        two = [need for need, count in Counter((pool, *whose) for pool, _, *whose in needs).items() if count > 1]
        assert not two, f"SLOT-1: needs with slots of two things: {two}"
        several = Counter((slot.pool, slot.thing, slot.job) for slot in slots if slot.job)
        for pool, thing, job in (whose for whose, count in several.items() if count > 1):
            others = {slot.job for slot in slots if (slot.pool, slot.thing) == (pool, thing) and slot.job} - {job}
            assert not others, f"SLOT-1: {job} has {pool}/{thing} for itself, and so have {others}"
        for pool in rows.get("pool", []):
            _capacity(pool, [slot for slot in slots if slot.pool == pool.name])
        for slot in slots:
            before = self.fences.get((slot.pool, slot.name), 0)
            assert slot.fence >= before, f"SLOT-3: the fence of {slot.pool}/{slot.name} went from {before} back"
            self.fences[slot.pool, slot.name] = slot.fence
        known = {unit.id: unit for unit in rows.get("unit", []) if unit.state is not UnitState.GONE}
        for slot in slots:
            assert not slot.unit or slot.unit in known, f"SLOT-1: {slot.pool}/{slot.name} is with {slot.unit}, gone"
            is_warm = slot.state is SlotState.FREE and slot.unit
            assert not is_warm or known[slot.unit].state is UnitState.IDLE, (
                f"UNIT-2: {slot.unit} is free, and not clean"
            )

    def _ends(self, rows: Rows) -> None:
        for job in rows.get("job", []):
            if job.is_settled:
                end = self.ends.setdefault(job.id, (job.end.outcome, job.end.reason))
                assert end == (job.end.outcome, job.end.reason), (
                    f"JOB-1: {job.id} settled twice: {end}, {job.end.outcome}"
                )
                assert job.end.reason, f"JOB-1: {job.id} settled without a reason"
            else:
                assert job.id not in self.ends, f"JOB-1: {job.id} was settled and is {job.state}"

    def left(self, life: Life) -> list[str]:
        """What is not over yet."""
        rows: Rows = life.rows
        left = [f"job {job.id} is {job.state}" for job in rows.get("job", []) if job.state is not State.SETTLED]
        left += [f"unit {unit.id} is {unit.state}" for unit in rows.get("unit", []) if unit.state is not UnitState.GONE]
        left += [
            f"{unit.id}, which is gone, keeps a secret" for unit in rows.get("unit", []) if _is_told_too_much(unit)
        ]
        left += [f"a secret of job {each.job} is left" for each in rows.get("value", []) if each.is_secret]
        left += [f"{slot.pool}/{slot.name} is held" for slot in rows.get("slot", []) if slot.state is SlotState.HELD]
        left += [f"a claim of {claim.job} waits for {claim.pool}" for claim in rows.get("claim", [])]
        left += [f"{pool.name} is still to be resized" for pool in rows.get("pool", []) if pool.due]
        left += [f"{pool.name} is stopped" for pool in rows.get("pool", []) if pool.stops]
        left += [f"the stop of {stop.scope} is left" for stop in rows.get("stop", [])]
        left += [f"{pool.name} has not its limit" for pool in rows.get("pool", []) if not _is_whole(pool, rows)]
        left += shown.left(rows)
        for hand in life.site.drivers.hands.values():
            left += [f"{unit} exists outside" for unit in hand.made]
        with life.site.unseen():
            flows = life.site.clients["stepfunctions"]
            running = flows.list_executions(stateMachineArn=life.site.machine, statusFilter="RUNNING")["executions"]
        return left + [f"flow {execution['name']} is parked" for execution in running]

    def over(self, life: Life) -> None:
        """What must be so in the end. [JOB-1] [UNIT-1] [QUEUE-1]"""
        left = self.left(life)
        assert not left, f"after {life.site.world.now()} there is left: {left}"
        assert life.script_over, "the users still wait for something"
        shown.over(life)


def _is_told_too_much(unit: Unit) -> bool:
    """Whether what a well told for a lease is kept after it. [SEC-1]"""
    return unit.state is UnitState.GONE and bool(unit.access.sealed)


def _capacity(pool: Pool, slots: list[Slot]) -> None:
    if pool.is_amount:
        used = sum(slot.count for slot in slots)
        assert used == pool.used, f"SLOT-1: of {pool.name} {used} are held, and its row says {pool.used}"
        assert used <= pool.limit or pool.over, f"SLOT-1: of {pool.name} {used} are held; there are {pool.limit}"
    free = [slot for slot in slots if slot.state is SlotState.FREE]
    assert pool.due or len(free) <= pool.limit, f"SLOT-1: {pool.name} has more free slots than its limit"


def _is_whole(pool: Pool, rows: Rows) -> bool:
    if pool.is_amount:
        return not pool.used
    mine = [slot for slot in rows.get("slot", []) if slot.pool == pool.name and slot.state is not SlotState.OFF]
    return len(mine) == pool.limit


def _workers(rows: Rows) -> None:
    live = [unit for unit in rows.get("unit", []) if _is_live_worker(unit)]
    most = Counter(unit.lease.job for unit in live)
    assert all(count == 1 for count in most.values()), f"JOB-2: jobs with two workers: {most}"


def _is_live_worker(unit: Unit) -> bool:
    if unit.lease.job == "" or (unit.state is UnitState.QUARANTINED and quarantine.may_continue(unit)):
        return False
    return unit.lease.order == 0 and unit.state not in (UnitState.IDLE, UnitState.GONE)


def _artifacts(rows: Rows) -> None:
    """ART-1, ART-2: who owns an artifact has a name for it; its bytes are doomed when it is gone, and not before."""
    owned = {(one.id, owner) for one in rows.get("artifact", []) for owner in one.owners}
    mine = [one for one in rows.get("artifact", []) if one.sort == "output" and one.state == "created"]
    named = {(one.id, f"job#{one.job}") for one in mine}
    named |= {(one.artifact, f"job#{one.job}") for one in rows.get("archive", []) if one.state == "archived"}
    assert owned == named, f"ART-1: owned are {owned}, and names are there for {named}"
    for one in rows.get("artifact", []):
        is_owned = bool(one.owners)
        assert is_owned is (one.state == "created"), f"ART-1: {one.id} is {one.state}, and owned by {one.owners}"
        assert is_owned is (one.due is None), f"ART-2: nobody can ever free {one.id}"


def _logs(rows: Rows) -> None:
    """Logs have no gaps, and each attempt's lines stand there once and in order."""
    from tests.crash.life import LINES

    batches: list[Batch] = rows.get("batch", [])
    archived = {row.job: row for row in rows.get("archive", []) if row.state in ("archived", "gone")}
    for job in rows.get("job", []):
        mine = sorted((batch for batch in batches if batch.job == job.id), key=lambda batch: batch.first)
        row = archived.get(job.id)
        start = mine[0].first if row and mine else 1
        ends = [start, *(batch.end for batch in mine)]
        assert [batch.first for batch in mine] == ends[:-1], f"the log of {job.id} has gaps"
        if row:
            # Of a log that is gone the rows go oldest first, and a reader at its start is told 410 all the while.
            assert row.state == "gone" or start <= row.end, f"the log of {job.id} has a gap behind its object"
            continue
        for attempt in range(1, job.attempt + 1):
            said = tuple(
                line.payload for batch in mine if batch.attempt == attempt for line in batch.lines if line.task == 0
            )
            assert said == LINES[: len(said)], f"attempt {attempt} of {job.id} said {said}"
            if _succeeded(job, attempt) and not job.is_lease:  # nobody prints anything then
                assert said == LINES, f"lines of {job.id} are missing: {said}"


def _succeeded(job: Job, attempt: int) -> bool:
    return job.attempt == attempt and job.end.outcome == "succeeded"
