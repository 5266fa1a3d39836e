"""Names every commit by the action of the model that it is, and checks the guards of that action."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from penstock.domain.jobs.jobs import Job, Result, job_key
from penstock.domain.pools.pools import Claim, Lease, Pool, Slot, lease_key, lease_prefix
from penstock.domain.units.units import Unit, unit_key
from penstock.kernel.rows import Change, Check, Create, Delete, Key, Replace, Row
from penstock.testing.store import MemoryStore, lease_now
from tests.model import pools

ACTIONS = tomllib.loads((Path(__file__).parents[2] / "model" / "actions.toml").read_text(encoding="utf-8"))
PROTOCOL = (Job, Lease, Slot, Claim, Unit)
HOLDING = ("granted", "ready", "releasing")

Moves = set[str]
LeaseMove = tuple[Lease | None, Lease]


def moves(changes: Sequence[Change], leases: Iterable[LeaseMove]) -> Moves:
    """How a commit moves the rows of the protocol. A slot that moves is a delete and a create at two keys.

    `leases`: how it moves leases, whose state is in the rows of their units.
    """
    before: dict[Any, Row] = {}
    after: dict[Any, Row] = {}
    for change in changes:
        if isinstance(change, Check) or isinstance(_rows([change])[0], Lease):
            continue
        if not isinstance(change, Create):
            before[_identity(change.was)] = change.was
        if not isinstance(change, Delete):
            after[_identity(change.row)] = change.row
    found: Moves = set()
    for key in before.keys() | after.keys():
        found |= _moves(before.get(key), after.get(key))
    for was, now in leases:
        found |= _moves(was, now)
    if any(move.startswith("slot: ") for move in found):
        found.discard("due: set")  # a resize that moves slots keeps its pool due; an operator moves none
    return found


def lease_moves(changes: Sequence[Change], before: Mapping[Key, Row], after: Mapping[Key, Row]) -> list[LeaseMove]:
    """The leases that a commit writes, and those that it moves with their units."""
    rows = [row for change in changes for row in _sides(change)]
    written = {row.key for row in rows if isinstance(row, Lease)}
    had = {row.lease for row in rows if isinstance(row, Unit)}
    found = []
    for key in sorted(written | {lease_key(lease.job, lease.attempt, lease.order) for lease in had}):
        was, now = (_seen(rows, key) for rows in (before, after))
        if now and (key in written or was is None or was.state is not now.state):
            found.append((was, now))
    return found


def _seen(rows: Mapping[Key, Row], key: Key) -> Lease | None:
    row = rows.get(key)
    return lease_now(rows, row) if isinstance(row, Lease) else None


def _sides(change: Change) -> list[Row]:
    """The row before a change, and after it."""
    was = [] if isinstance(change, Create) else [change.was]
    return [*was, *([change.row] if isinstance(change, Create | Replace) else ())]


def _identity(row: Row) -> Any:
    return ("slot", row.pool, row.name) if isinstance(row, Slot) else row.key


def _moves(was: Row | None, now: Row | None) -> Moves:
    if isinstance(was, Pool) and isinstance(now, Pool):
        return pools.facts(was, now)
    if isinstance(was, Claim) and isinstance(now, Claim):
        return {"overtaken: more"}
    row = now or was
    if not isinstance(row, PROTOCOL):
        return set()
    if isinstance(row, Unit) and was is not None and now is not None and _state(was) == _state(now):
        return set()
    found = {f"{row.kind}: {_state(was)} -> {_state(now)}"}
    return found | _facts(was, now) if isinstance(was, Job) and isinstance(now, Job) else found


def _facts(was: Job, now: Job) -> Moves:
    """What a job's row says beside its state."""
    found = set()
    if _report(was) != _report(now):
        found.add(f"report: {_report(was)} -> {_report(now)}")
    if now.cancellation.cancelled_by and not was.cancellation.cancelled_by:
        found.add("cancelled: no -> yes")
    if now.attempt > was.attempt or (now.is_settled and not was.is_settled):
        found.add("end: no -> yes")
    return found


def _state(row: Row | None) -> str:
    if row is None:
        return "none"
    if isinstance(row, Slot):
        return pools.slot_state(row)
    return "waiting" if isinstance(row, Claim) else str(row.state)  # type: ignore[attr-defined]


def _report(job: Job) -> str:
    if job.run.report is None:
        return "none"
    return "lost" if job.run.report.result is Result.LOST else "done"


def actions_of(found: Moves) -> list[str]:
    """The actions that a commit may be, by its moves."""
    named = []
    for name, action in ACTIONS.items():
        must, may = set(action.get("must", ())), set(action.get("may", ()))
        if not action.get("message") and must <= found <= must | may and found:
            named.append(name)
    return named


def seen_leases(rows: Mapping[Key, Row]) -> list[Lease]:
    """All leases in their present state."""
    return [lease_now(rows, row) for row in rows.values() if isinstance(row, Lease)]


class Stray(AssertionError):
    """A commit that is no step of the model."""


class ObservedStore(MemoryStore):
    """A store that checks every commit to be a step of the model, and what the model promises after it."""

    def __init__(self) -> None:
        super().__init__()
        self.trace: list[str] = []
        self.seen: Moves = set()
        self.fences: dict[tuple[str, str], int] = {}
        self.settled: set[Key] = set()

    def commit(self, changes: Sequence[Change]) -> bool:
        """Commit as the model could, or raise Stray."""
        before = dict(self.rows)
        if not super().commit(changes):
            return False
        leases = lease_moves(changes, before, self.rows)
        found = moves(changes, leases)
        if not found or self._is_setting_up(found):
            return True
        named = actions_of(found)
        if len(named) != 1:
            raise Stray(f"{sorted(found)} is {named or 'no action of the model'}")
        self.trace.append(named[0])
        self.seen |= found
        self._check_guard(named[0], changes, before, [now for _, now in leases])
        pools.check_guard(named[0], changes, before, self.rows)
        self._check_promises()
        pools.check_promises(self.rows.values())
        return True

    def _is_setting_up(self, found: Moves) -> bool:
        """Submissions, slots that are made, claims that nobody waits with, and what is written late of a new job."""
        return found <= {"job: none -> queued", "slot: none -> free", "claim: waiting -> none"}

    def _check_guard(
        self, name: str, changes: Sequence[Change], before: dict[Key, Row], leases: Sequence[Lease]
    ) -> None:
        """What the model asks beside the states that rows come from."""
        touched = {type(row) for row in _rows(changes)}
        for lease in leases:
            job = (self.rows if name == "grant_with_job" else before)[job_key(lease.job)]
            assert isinstance(job, Job)
            if name in ("claim", "grant_at_once", "grant_with_job", "hello", "settle"):
                assert job.attempt == lease.attempt, f"{name} of an attempt that is over"
                assert Job in touched or name == "claim", f"{name} does not write the job"
            if name in ("claim", "grant_at_once", "grant_with_job", "hello"):
                assert not job.cancellation.cancelled_by, f"{name} for a cancelled job"
                assert not job.is_settled, f"{name} for a settled job"
            if name == "release" and lease.order:
                turn = [row for row in seen_leases(before) if row.job == lease.job]
                ahead = [row for row in turn if row.attempt == lease.attempt and str(row.state) == "releasing"]
                assert not [row for row in ahead if row.order == 0 or row.order > lease.order], "out of turn"

    def _check_promises(self) -> None:
        """[SLOT-1] [SLOT-3] [JOB-1]: what properties.pml checks after a step."""
        slots = {(row.pool, row.name): row for row in self.rows.values() if isinstance(row, Slot)}
        held = [row for row in seen_leases(self.rows) if str(row.state) in HOLDING]
        assert len({(row.pool, row.slot) for row in held}) == len(held), "a slot has two holders"
        for lease in held:
            slot, unit = slots[lease.pool, str(lease.slot)], self.rows[unit_key(str(lease.unit))]
            assert (str(slot.state), slot.fence, slot.unit) == ("held", lease.fence, lease.unit)
            assert isinstance(unit, Unit)
            assert (str(lease.state) == "releasing") == (str(unit.state) == "dirty")
        for key, slot in slots.items():
            assert slot.fence >= self.fences.get(key, 0), "a fence went back"
            self.fences[key] = slot.fence
        jobs = [row for row in self.rows.values() if isinstance(row, Job)]
        assert all(job.is_settled for job in jobs if job.key in self.settled), "a settled job rose"
        self.settled |= {job.key for job in jobs if job.is_settled}
        self._check_alone(jobs)

    def _check_alone(self, jobs: Iterable[Job]) -> None:
        """[JOB-2] No attempt has leases while the worker of the one before is not put back."""
        for job in jobs:
            begun = [row for row in self.rows.values() if isinstance(row, Lease) and row.job == job.id]
            if job.attempt > 1 and any(row.attempt == job.attempt for row in begun):
                place = Key(f"job#{job.id}", f"{lease_prefix(job.attempt - 1)}00")
                before = _seen(self.rows, place)
                assert before is None or str(before.state) == "released"


def _rows(changes: Sequence[Change]) -> list[Row]:
    return [change.was if isinstance(change, Delete | Check) else change.row for change in changes]
