"""What a host's agent is told when it asks: to wait, to work, to clean up, or that it is done with its last worker.

A host asks again and again, and says what it has: no worker, or one that it is at, whose agent has ended, or that it
has cleaned up after. Every answer follows from that and the rows, so asking twice is asking once. [JOB-2]
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from penstock.domain.commands import AgentHost
from penstock.domain.site.site import Limits
from penstock.domain.units import hosts, retries
from penstock.domain.units.hosts import Host
from penstock.domain.units.maintenance import LEASED
from penstock.domain.units.units import CleanProof, Unit, UnitState
from penstock.domain.users import users
from penstock.domain.users.users import User
from penstock.kernel.errors import Refused, not_found
from penstock.system import System
from penstock.usecases.jobs import settle
from penstock.usecases.site import configuration
from penstock.usecases.units import driver_calls, release
from penstock.usecases.units.secrets import bootstrap_key
from penstock.usecases.workers import agents, presence
from penstock.usecases.workers.presence import HostSession

SETTLING_SECONDS = 1
"""How many seconds a host waits that has ended its worker's job, while the end is being written."""


def poll(on: System, user: User, name: str, said: AgentHost) -> dict[str, Any]:
    """Answer a host. Raises Refused 403 for who may not speak for it, 404 and 409 as `presence`, 422. [SEC-2]"""
    if not hosts.is_name(name):
        raise not_found("host", name[:64])
    if not user.may(hosts.privilege(name)):
        raise Refused(403, "privilege-missing", f"this needs the privilege {hosts.privilege(name)!r}")
    if not users.is_strong(said.session):
        raise Refused(422, "weak-session", "the session must be 43 to 128 characters of A-Z a-z 0-9 - _")
    site = configuration.current(on)
    target = site.of_host(name)
    came = HostSession(name, target.pool if target else None, users.digest(said.session), said.machine)
    host = presence.check_in(on, came, timedelta(seconds=site.limits.lease))
    answer = _instruct(on, host, said, site.limits)
    if target is None and "worker" not in answer:
        raise not_found("host", name)
    if said.leaving:
        presence.sign_off(on, host)
    return answer


def _instruct(on: System, host: Host, said: AgentHost, bounds: Limits) -> dict[str, Any]:
    unit = presence.worker_on(on, host)
    if said.worker and (unit is None or unit.id != said.worker):
        return _instruction("forget", 0, bounds, said.worker)
    if unit is None:
        return _instruction("wait", min(agents.POLL_SECONDS, bounds.heartbeat), bounds)
    if unit.state is UnitState.QUARANTINED:  # its operator has the next word, and the host nothing to do
        return _instruction("wait", bounds.heartbeat, bounds, unit.id)
    if not said.worker:
        return _without_worker(on, unit, said, bounds)
    if said.stage == "working":
        return _instruction("wait", bounds.heartbeat, bounds, unit.id)
    return _after_worker(on, host, unit, said, bounds)


def _without_worker(on: System, unit: Unit, said: AgentHost, bounds: Limits) -> dict[str, Any]:
    """A host that has no worker gets the one that holds its slot; or cleans up after it, if it comes too late.

    One that is at work already, as the rows say, was at this very host before it lost its memory, or this call is an
    old one: the worker's own heartbeats tell which.
    """
    if unit.state is UnitState.CREATING and not said.leaving:
        key = bootstrap_key(on.signing_key(), unit.id)
        return _instruction("work", 0, bounds, unit.id) | {"key": key}
    return _clean_up(on, unit, bounds)


def _after_worker(on: System, host: Host, unit: Unit, said: AgentHost, bounds: Limits) -> dict[str, Any]:
    """A host whose worker's agent has ended: what it did not report is lost; then it cleans up, and says so."""
    if unit.state in LEASED:
        cause = f"worker {unit.id} was lost: its agent on {host.name} ended before it reported"
        settle.lose(on, unit, cause, lambda _: True, cause)
    elif said.stage == "clean" and unit.begun:
        proof = CleanProof(by=f"the agent of host {host.name}", time=on.world.now(), checked=said.cleaned)
        release.unit_destroyed(on, unit, proof)
        return _instruction("forget", 0, bounds, unit.id)
    elif said.trouble:
        driver_calls.retry_later(on, unit, f"{host.name} cannot get clean: {said.trouble}", retries.MAX_MESSAGE_SECONDS)
    return _clean_up(on, unit, bounds)


def _clean_up(on: System, unit: Unit, bounds: Limits) -> dict[str, Any]:
    """To clean up after a worker, from when it is too late to hold it; the host touches nothing before. [UNIT-3]"""
    if unit.begun:
        return _instruction("clean", 0, bounds, unit.id)
    held = agents.held_seconds(on, unit)
    return _instruction("wait", bounds.heartbeat if held else SETTLING_SECONDS, bounds, unit.id) | held


def _instruction(do: str, seconds: int, bounds: Limits, worker: str | None = None) -> dict[str, Any]:
    told = {"do": do, "seconds": seconds, "lease_seconds": bounds.lease}
    return told | ({"worker": worker} if worker else {})
