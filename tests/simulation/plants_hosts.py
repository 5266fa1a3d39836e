"""Bugs in lending hosts, for the simulation to find."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.domain.units.units import CleanProof, Unit
from penstock.usecases.units import release
from penstock.usecases.workers import hosts, presence


def free_once_its_agent_ended(patch: pytest.MonkeyPatch) -> None:
    """A host is free when its worker's agent has ended, cleaned or not."""
    after = hosts._after_worker

    def hasty(on: Any, host: Any, unit: Unit, status: Any, site: Any) -> Any:
        told = after(on, host, unit, status, site)
        proof = CleanProof(by="nobody", time=on.world.now(), checked=unit.id)
        release.unit_destroyed(on, unit, proof)
        return told

    patch.setattr(hosts, "_after_worker", hasty)


def lets_a_second_machine_in(patch: pytest.MonkeyPatch) -> None:
    """A second machine with a host's name is admitted while the first has a worker."""
    patch.setattr(presence, "_refuse_second_agent", lambda *_: None)


def lends_who_is_away(patch: pytest.MonkeyPatch) -> None:
    """Whether a host is there, is not asked."""
    patch.setattr(presence, "present_hosts", lambda on, pool: frozenset(presence._names(pool)))
