"""Bugs in keeping units for the next lease, for the simulation to find."""

from __future__ import annotations

import hmac
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from penstock.domain.commands import Hello
from penstock.domain.jobs.jobs import Job, job_key
from penstock.domain.pools import pools
from penstock.domain.pools.pools import Slot, Warm
from penstock.domain.units.units import CleanProof, Unit, UnitState, unit_key
from penstock.domain.users import users
from penstock.usecases.jobs import flow
from penstock.usecases.pools import serving
from penstock.usecases.units import reuse
from penstock.usecases.units.drivers import bootstrap_key
from penstock.usecases.workers import agents


def keep_without_cleaning(patch: pytest.MonkeyPatch) -> None:
    """A resource is kept as it is, and nobody asks its well."""

    def call(on: Any, unit: Unit) -> None:
        reuse.unit_cleaned(on, unit.id, CleanProof("nobody", on.world.now(), "nothing"), timedelta(0))

    patch.setattr(reuse, "_call_clean", call)


def called_by_two(patch: pytest.MonkeyPatch) -> None:
    """Two handlers make or clean a unit at the same time: the later of them may meet its next lease."""
    patch.setattr(reuse, "lock", lambda on, unit, **_: unit)


def idle_counts_for_nothing(patch: pytest.MonkeyPatch) -> None:
    """What an idle unit takes of an amount is not counted."""
    keep = pools.keep_warm

    def kept(slot: Slot, warm: Warm, *, is_own: bool, now: datetime) -> Slot:
        return replace(keep(slot, warm, is_own=is_own, now=now), count=slot.count if is_own else 0)

    patch.setattr(pools, "keep_warm", kept)


def serves_anybody(patch: pytest.MonkeyPatch) -> None:
    """A worker is handed over to whoever comes, whosever job it had."""
    patch.setattr(pools, "serves", lambda slot, claim: True)


def idle_makes_no_room(patch: pytest.MonkeyPatch) -> None:
    """Who waits for what an idle unit takes, waits until it has been idle for long enough."""
    patch.setattr(serving, "evict", lambda *_: None)


def key_opens_again(patch: pytest.MonkeyPatch) -> None:
    """The bootstrap key is good for every job of a worker, not only for its first."""
    is_known = agents._is_authentic

    def known(on: Any, unit: Unit, ask: Hello) -> bool:
        key = bootstrap_key(on.signing_key(), unit.id)
        return is_known(on, unit, ask) or hmac.compare_digest(key, ask.key)

    patch.setattr(agents, "_is_authentic", known)


def any_job_of_the_worker(patch: pytest.MonkeyPatch) -> None:
    """A worker's token is good for every job that it had, if only the attempts' numbers are the same."""

    def authenticate(on: Any, job_id: str, token: str) -> agents.Caller:
        job = on.store.get(job_key(job_id), Job)
        unit = on.store.get(unit_key(job.run.worker), Unit) if job and job.run.worker else None
        if unit is None or unit.state is not UnitState.READY or unit.lease.attempt != job.attempt:
            raise flow.LeaseGone
        if unit.session.token_hash != users.digest(token):
            raise flow.LeaseGone
        return agents.Caller(unit, job)

    patch.setattr(agents, "authenticate", authenticate)
