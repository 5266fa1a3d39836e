"""What a host's agent gets when it polls: to wait, work, clean up, or forget its last worker. [JOB-2]

Each part of a host that jobs share polls as a host by itself once it has a worker, with the session of the host. A
worker that has several parts is that of the first. Until then only the host polls, and hears which parts have one.

A host polls with what it has: no worker, one that works, one whose agent has ended, or one that it has cleaned up
after. Every answer follows from that and from the rows, so polling twice is safe.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from penstock.domain.commands import AgentHost
from penstock.domain.replies import Container, HostInstruction
from penstock.domain.site import sharing
from penstock.domain.site.site import Limits, Site, Target
from penstock.domain.units import hosts, retries
from penstock.domain.units.hosts import Host
from penstock.domain.units.units import CleanProof, Unit, UnitState
from penstock.domain.users import users
from penstock.domain.users.users import HOST, User
from penstock.kernel.errors import Refused, not_found
from penstock.system import System, current_site
from penstock.usecases.jobs import settle
from penstock.usecases.units import bells, driver_calls, release
from penstock.usecases.units.drivers import bootstrap_key
from penstock.usecases.workers import agents, presence
from penstock.usecases.workers.presence import HostSession

MIB = 1024**2

SETTLING_SECONDS = 1
"""How many seconds a host waits after its worker's job ended, while the end is being written."""


def poll(on: System, user: User, name: str, status: AgentHost) -> HostInstruction:
    """Answer a host. Raises Refused 403 for who may not speak for it, 404 and 409 as `presence`, 422. [SEC-2]"""
    if not hosts.is_name(name):
        raise not_found("host", name[:64])
    if not user.may(hosts.privilege(name)):
        raise Refused(403, "privilege-missing", f"this needs the privilege {hosts.privilege(name)!r}")
    if not users.is_strong(status.session):
        raise Refused(422, "weak-session", "the session must be 43 to 128 characters of A-Z a-z 0-9 - _")
    site = current_site(on)
    target = _target_for(on, user, name, site)
    digest = users.digest(status.session)
    session = HostSession(name, target.pool if target else None, digest, status.machine, status.leaving)
    host = presence.check_in(on, session, timedelta(seconds=site.limits.lease))
    parts = target.share.parts if target and target.share else None
    busy = presence.busy_parts(on, host) if not status.part else ()
    answer = replace(_instruct(on, host, status, site), parts=parts, busy=busy or None)
    if target is None and answer.worker is None and not busy:
        raise not_found("host", name)
    if status.leaving:
        presence.sign_off(on, host)
    return answer


def _target_for(on: System, user: User, name: str, site: Site) -> Target | None:
    """The target that a host serves, and None if there is none any more. Raises Refused 403 for another's token.

    The token of the target that it had goes on until nobody has anything of the host there: it serves none with that.
    [SEC-2] [UNIT-1]
    """
    target = site.of_host(name)
    pool = target.pool if target else presence.last_pool(on, name)
    if user.covers(HOST.scope, f"{pool}/{name}"):
        return target
    if user.covers(HOST.scope, f"{presence.pool_in_use(on, name)}/{name}"):
        return None
    needed = f"it needs the scope host:{pool}/{name}" if pool else "the site has no such host"
    raise Refused(403, "scope-missing", f"this token is not for that host: {needed}")


def _instruct(on: System, host: Host, status: AgentHost, site: Site) -> HostInstruction:
    unit, bounds = presence.worker_on(on, host, status.part), site.limits
    if status.worker and (unit is None or unit.id != status.worker):
        return HostInstruction("forget", 0, bounds.lease, status.worker)
    if unit is None:
        return _without_work(on, host, status.part, bounds)
    if unit.state is UnitState.QUARANTINED:  # an operator decides; the host has nothing to do
        return HostInstruction("wait", bounds.heartbeat, bounds.lease, unit.id)
    if not status.worker:
        return _without_worker(on, unit, status, site)
    if status.stage != "working":
        return _after_worker(on, host, unit, status, site)
    if _is_hung(on, unit, bounds):
        return _clean_up(on, unit, bounds)
    return HostInstruction("wait", bounds.heartbeat, bounds.lease, unit.id)


def _is_hung(on: System, unit: Unit, bounds: Limits) -> bool:
    """Whether a worker's agent still lives that should have ended itself, a lease after it lost its job: then its host
    ends it. A job that may become root can stop it. [UNIT-1]
    """
    return unit.cleaning.begun is not None and on.world.now() >= unit.since + timedelta(seconds=bounds.lease)


def _without_work(on: System, host: Host, part: int, bounds: Limits) -> HostInstruction:
    """A host waits for its next worker: for a bell, once its slot is free, or that of the first part that is."""
    slot = presence.free_slot(on, host, part)
    bell = bells.url(on, bells.of_host(slot)) if slot else None
    seconds = min(bells.IDLE_SECONDS if slot else agents.POLL_SECONDS, bounds.heartbeat)
    return HostInstruction("wait", seconds, bounds.lease, bell=bell)


def _without_worker(on: System, unit: Unit, status: AgentHost, site: Site) -> HostInstruction:
    """A host without a worker gets the one that holds its slot; or cleans up after it, if it comes too late.

    If the rows say that the worker is at work, it was at this host before that lost its memory, or this call is an old
    one: the worker's own heartbeats tell which.
    """
    bounds = site.limits
    if unit.state is not UnitState.CREATING or status.leaving:
        return _clean_up(on, unit, bounds)
    container = _container(site, unit)
    if status.part and not container:
        return HostInstruction("wait", SETTLING_SECONDS, bounds.lease)
    key = bootstrap_key(on.signing_key(), unit.id)
    return HostInstruction("work", 0, bounds.lease, unit.id, key, container=container)


def _container(site: Site, unit: Unit) -> Container | None:
    """Where a worker runs that has parts of a host; None until its factory has said which image, and if jobs do not
    share the hosts of its target any more: then it ends as one that did not boot.
    """
    target, image = site.targets.get(unit.type), unit.creation.metadata.get("image")
    if not image or target is None or not target.share:
        return None
    taken = 1 + sum(pool == unit.lease.pool for pool, _ in unit.lease.also)
    mine = sharing.portion(target, taken)
    return Container(image, mine.cpus, mine.memory // MIB)


def _clean_up(on: System, unit: Unit, bounds: Limits) -> HostInstruction:
    """Have the host clean up, once it is too late for a hold; the host touches nothing before. [UNIT-3]"""
    if unit.cleaning.begun:
        return HostInstruction("clean", 0, bounds.lease, unit.id)
    held = agents.held_seconds(on, unit)
    seconds = SETTLING_SECONDS if held is None else bounds.heartbeat
    return HostInstruction("wait", seconds, bounds.lease, unit.id, held_seconds=held)


def _after_worker(on: System, host: Host, unit: Unit, status: AgentHost, site: Site) -> HostInstruction:
    """A host whose worker's agent has ended: an unreported attempt is lost; then the host cleans up and says so.

    If its factory has a controller, that cleans the host as well, and the host's own word frees no slot; but it cleans
    no part of a host. [UNIT-2]
    """
    bounds, maker = site.limits, site.factories.get(unit.maker)
    is_cleaned_outside = maker is not None and maker.has_controller and not status.part
    if unit.is_leased:
        said = f": {status.trouble}" if status.trouble else ""
        cause = f"worker {unit.id} was lost: its agent on {host.name} ended before it reported{said}"
        settle.lose(on, unit, cause, lambda _: True, cause)
    elif is_cleaned_outside and (status.stage == "clean" or status.trouble):
        return HostInstruction("wait", bounds.heartbeat, bounds.lease, unit.id)
    elif status.stage == "clean" and unit.cleaning.begun:
        proof = CleanProof(by=f"the agent of host {host.name}", time=on.world.now(), checked=status.cleaned)
        release.unit_destroyed(on, unit, proof)
        return HostInstruction("forget", 0, bounds.lease, unit.id)
    elif status.trouble:
        driver_calls.retry_later(
            on, unit, f"{host.name} cannot get clean: {status.trouble}", retries.MAX_MESSAGE_SECONDS
        )
    return _clean_up(on, unit, bounds)
