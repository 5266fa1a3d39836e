"""A worker between two jobs: it has cleaned up, says so, and asks again until it is given the next job or sent home."""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from datetime import timedelta

from penstock import transaction
from penstock.domain.site.site import Limits
from penstock.domain.units import reuse, units
from penstock.domain.units.units import CleanProof, Unit, UnitKind, UnitState, unit_key
from penstock.kernel.rows import Change, Replace
from penstock.system import System
from penstock.usecases import keeping

ASK_AGAIN = 5
"""How many seconds an idle worker's agent waits before it asks again, if its site's heartbeat is not shorter."""


def wait(on: System, worker: str, shown: str, cleaned: str, bounds: Limits) -> bool:
    """Whether a worker that shows the token of its last job (hashed) is to ask again, for there is no next job yet.

    One that is held touches nothing meanwhile; it cleans up when it is told that it is not held any more. [UNIT-3]
    """
    unit = on.store.get(unit_key(worker), Unit)
    if unit is None or unit.is_a is not UnitKind.WORKER:
        return False
    if unit.state is UnitState.READY and unit.token_hash and hmac.compare_digest(unit.token_hash, shown):
        return True  # its report was heard; its attempt is not settled yet
    if unit.past_hash is None or not hmac.compare_digest(unit.past_hash, shown):
        return False
    if units.is_held(unit, on.world.now()) or (unit.state is UnitState.CLEANING and not cleaned):
        return True
    lease = timedelta(seconds=bounds.lease)
    if unit.state is UnitState.CLEANING:
        proof = CleanProof(by=f"the agent of {worker}", time=on.world.now(), checked=cleaned)
        keeping.keep(on, worker, proof, lease)
    return transaction.run(on, lambda: _hear(on, worker, lease))


def held_seconds(on: System, unit: Unit | None) -> dict[str, int]:
    """What the agent of a unit is told of its hold: for how many seconds it is to leave its machine as it is. [UNIT-3]

    Nothing, when it is not held.
    """
    now = on.world.now()
    if unit is None or unit.hold is None or not units.is_held(unit, now):
        return {}
    return {"held_seconds": max(1, int((unit.hold.until - now).total_seconds()))}


def _hear(on: System, worker: str, lease: timedelta) -> tuple[Sequence[Change], bool]:
    """Note that an idle worker is there; half a lease is soon enough to write it again."""
    unit = on.store.get(unit_key(worker), Unit)
    if unit is None or unit.state is not UnitState.IDLE:
        return [], False
    return still_there(on, unit, lease), True


def still_there(on: System, unit: Unit, lease: timedelta) -> list[Change]:
    """What is written of an idle worker that asked again. One that is held is due when its hold ends, heard or not."""
    now = on.world.now()
    heard = reuse.heard(unit, now, lease)
    is_fresh = unit.due is not None and heard.due is not None and heard.due - unit.due < lease / 2
    return [] if is_fresh or units.is_held(unit, now) else [Replace(unit, heard)]
