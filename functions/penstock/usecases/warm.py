"""A worker between two jobs: it has cleaned up, says so, and asks again until it is given the next job or sent home."""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from datetime import timedelta

from penstock.domain import units
from penstock.domain.rows import Change, Replace
from penstock.domain.site import Limits
from penstock.domain.units import CleanProof, Unit, UnitKind, UnitState, unit_key
from penstock.system import System
from penstock.usecases import keeping, race

ASK_AGAIN = 5
"""How many seconds an idle worker's agent waits before it asks again, if its site's heartbeat is not shorter."""


def wait(on: System, worker: str, shown: str, cleaned: str, bounds: Limits) -> bool:
    """Whether a worker that shows the token of its last job (hashed) is to ask again, for there is no next job yet."""
    unit = on.store.get(unit_key(worker), Unit)
    if unit is None or unit.is_a is not UnitKind.WORKER or not unit.is_kept:
        return False
    if unit.state is UnitState.READY and unit.token_hash and hmac.compare_digest(unit.token_hash, shown):
        return True  # its report was heard; its attempt is not settled yet
    if unit.past_hash is None or not hmac.compare_digest(unit.past_hash, shown):
        return False
    lease = timedelta(seconds=bounds.lease)
    if unit.state is UnitState.CLEANING:
        proof = CleanProof(by=f"the agent of {worker}", time=on.world.now(), checked=cleaned)
        keeping.keep(on, worker, proof, lease)
    return race.run(on, lambda: _hear(on, worker, lease))


def _hear(on: System, worker: str, lease: timedelta) -> tuple[Sequence[Change], bool]:
    """Note that an idle worker is there; half a lease is soon enough to write it again."""
    unit = on.store.get(unit_key(worker), Unit)
    if unit is None or unit.state is not UnitState.IDLE:
        return [], False
    now = on.world.now()
    heard = units.heard(unit, now, lease)
    is_fresh = unit.due is not None and heard.due is not None and heard.due - unit.due < lease / 2
    return ([] if is_fresh else [Replace(unit, heard)]), True
