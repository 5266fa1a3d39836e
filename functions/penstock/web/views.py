"""What callers are shown of the rows: from the domain's values to those of `wire`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from penstock import wire
from penstock.domain.artifacts.inputs import Input
from penstock.domain.artifacts.outputs import Output
from penstock.domain.jobs import unused
from penstock.domain.jobs.failures import MEANINGS, Failure
from penstock.domain.jobs.holds import Held
from penstock.domain.jobs.jobs import Job, Keep, Times
from penstock.domain.jobs.plans import Plan
from penstock.domain.logs.logs import Event
from penstock.domain.pools.graph import Graph
from penstock.domain.pools.leases import WORKER, Lease
from penstock.domain.pools.pools import Claim, Pool, Slot, SlotState
from penstock.domain.pools.why import Why
from penstock.domain.site.site import Site
from penstock.domain.units.hosts import Host
from penstock.domain.units.units import Unit
from penstock.domain.users.audit import Entry
from penstock.domain.users.users import User
from penstock.ports import Option
from penstock.web import unitviews
from penstock.web.times import present, stamp


def job(row: Job, leases: Sequence[Lease], kept: Held | None = None) -> wire.JobView:
    """A job with the resources of its present attempt, and what of it is held."""
    states = {lease.order: lease for lease in leases}
    resources = []
    for need in row.needs:
        lease = states.get(need.order)
        if need.order != WORKER:
            state: Any = lease.state.value if lease else "wanted"
            resources.append(wire.JobResource(need.name, need.type, state, lease.slot if lease else None))
    return wire.JobView(
        id=row.id,
        name=row.name,
        owner=row.owner,
        state=row.state.value,
        outcome=row.outcome.value if row.outcome else None,
        reason=row.reason,
        attempt=row.attempt,
        target=row.target,
        target_resolved=row.target_resolved,
        resources=resources,
        times=times(row.times),
        worker=row.worker,
        exit_code=row.exit_code,
        tags=dict(row.tags),
        priority=row.priority,
        timeout=row.timeout,
        attempts=[
            wire.JobAttempt(past.attempt, past.outcome, past.reason, past.failure and past.failure.value)
            for past in row.attempts
        ],
        failure=failure(row.failure) if row.is_settled and row.failure else None,
        held=held(row.keep, kept) if row.keep and kept else None,
        dependencies=[
            wire.JobDependency(each.name, each.job, each.on.value, each.copy_outputs) for each in row.dependencies
        ],
        outputs_gone=stamp(row.outputs_gone),
        cache_scope=row.cache_scope or None,
    )


def failure(found: Failure) -> wire.JobFailure:
    """Why a job did not succeed."""
    meaning = MEANINGS[found.kind]
    return wire.JobFailure(
        kind=found.kind.value,
        what=meaning.what,
        advice=meaning.advice,
        evidence=dict(found.evidence),
        task=None if found.task is None else wire.FailedTask(found.task, found.task_name),
        lines=list(found.lines),
        lines_of="console" if found.is_console else "job",
    )


def held(keep: Keep, found: Held) -> wire.HeldJob:
    """What of a job is held."""
    units = [wire.HeldUnit(unit.is_a.value, unit.id, unit.pool, unit.slot) for unit in found.units]
    return wire.HeldJob(keep.by, keep.reason, present(found.until), found.unit_seconds, units)


def times(given: Times) -> wire.JobTimes:
    """A job's stations."""
    return wire.JobTimes(
        present(given.submitted),
        stamp(given.ready),
        stamp(given.acquired),
        stamp(given.started),
        stamp(given.settled),
    )


def timings(row: Job, leases: Sequence[Lease], now: datetime) -> wire.TimingsView:
    """A job's stations and the seconds between them, and what it held; what is not over yet is counted up to now."""
    end = row.times.settled or now
    ready, started = row.times.ready or end, row.times.started
    seconds = {
        "waiting": ready - row.times.submitted,
        "acquiring": (started or end) - ready,
        "running": (end - started) if started else end - end,
        "total": end - row.times.submitted,
    }
    held = [
        wire.HeldView(one.attempt, one.name, one.type, one.held.total_seconds(), one.unused.total_seconds())
        for one in unused.of(leases, now)
    ]
    return wire.TimingsView(times(row.times), {name: span.total_seconds() for name, span in seconds.items()}, held)


def why(found: Why) -> wire.WhyView:
    """An explanation."""
    block = found.blocked_on
    shown = None
    if block:
        sort: Any = block.kind
        shown = wire.BlockView(
            pool=block.pool,
            kind=sort,
            position=block.position,
            ahead=[wire.AheadView(one.job, present(one.since)) for one in block.ahead],
            held_by=[wire.HolderView(one.slot, one.job, present(one.since)) for one in block.held_by],
            limit=block.limit,
            held=block.held,
            free=block.free,
            paused=block.paused,
            away=[wire.AwayView(one.host, stamp(one.since)) for one in block.away],
        )
    return wire.WhyView(
        job=found.job,
        state=found.state.value,
        summary=found.summary,
        blocked_on=shown,
        waiting_for=found.waiting_for,
        since=present(found.since),
        expected_start=stamp(found.expected_start),
        basis=found.basis,
        unblocks=found.next_steps,
    )


def plan(found: Plan) -> wire.PlanView:
    """What would become of a job."""
    return wire.PlanView(
        target=found.target,
        target_resolved=found.target_resolved,
        steps=[
            wire.PlanStepView(number, [wire.AcquireView(one.pool, one.type, one.count) for one in step])
            for number, step in enumerate(found.steps, 1)
        ],
        privileges=list(found.privileges),
        would_wait=bool(found.waits) or found.depends,
        waits_for=[wire.PlanWaitView(one.pool, one.position, one.seconds, one.basis) for one in found.waits],
        expected_seconds=found.seconds,
        sentences=list(found.sentences),
    )


def graph(found: Graph) -> wire.GraphView:
    """Who waits for whom."""
    nodes = [wire.NodeView(node.id, node.kind, node.label) for node in found.nodes]
    edges = [wire.EdgeView(edge.start, edge.end, edge.tie.value) for edge in found.edges]
    return wire.GraphView(nodes, edges, list(found.cycle), found.left_out)


def event(found: Event) -> wire.EventView:
    """A line of a log."""
    line = found.line
    return wire.EventView(found.seq, present(line.time), line.stream, line.task, found.attempt, line.payload)


def input(row: Input) -> wire.InputView:
    """A file that is sent with a job."""
    there = row.is_committed
    return wire.InputView(
        row.name, there, row.size if there else None, row.sha256 if there else None, present(row.until)
    )


def output(row: Output) -> wire.OutputView:
    """A file."""
    return wire.OutputView(row.id, row.path, row.size, row.sha256, present(row.time))


def pool(
    row: Pool,
    slots: Sequence[Slot],
    claims: Sequence[Claim],
    apart: Sequence[Unit] = (),
    known: Mapping[str, Host | None] | None = None,
    *,
    whole: bool,
) -> wire.PoolView:
    """A pool; `whole` with its slots and its queue. `apart` are the units in quarantine, `known` its hosts."""
    views = {unit.id: unitviews.quarantine(unit) for unit in apart}
    shown = [slot for slot in slots if slot.state is not SlotState.OFF]
    sort: Any = row.sort
    setback = row.setback
    queue = [
        wire.QueuedView(number, claim.job, claim.attempt, present(claim.since), claim.priority)
        for number, claim in enumerate(claims, 1)
    ]
    return wire.PoolView(
        pool=row.name,
        kind=sort,
        limit=row.limit,
        held=row.used if row.is_amount else sum(slot.state in (SlotState.HELD, SlotState.IDLE) for slot in shown),
        free=row.limit - row.used if row.is_amount else sum(slot.state is SlotState.FREE for slot in slots),
        warm=sum(slot.state is SlotState.FREE and slot.unit is not None for slot in slots),
        coming=sum(_is_coming(slot) for slot in slots),
        setback=wire.SetbackView(setback.count, present(setback.until), setback.why) if setback else None,
        away=sum(slot.state is SlotState.AWAY for slot in slots),
        waiting=len(claims),
        paused=row.paused,
        slots=[_slot(slot, views.get(slot.unit or ""), known or {}) for slot in shown] if whole else None,
        queue=queue if whole else None,
    )


def _is_coming(row: Slot) -> bool:
    return row.state is SlotState.FREE and row.unit is not None and row.since is None


def _slot(row: Slot, apart: wire.QuarantineView | None, known: Mapping[str, Host | None]) -> wire.SlotView:
    warm = None if row.state is not SlotState.FREE or row.unit is None else "coming" if _is_coming(row) else "warm"
    state: Any = "withdrawn" if row.withdrawn else warm or row.state.value
    machine = _host(known[row.name]) if row.name in known else None
    return wire.SlotView(row.name, state, row.job, row.attempt, stamp(row.since), row.fence, row.unit, apart, machine)


def _host(row: Host | None) -> wire.HostView:
    if row is None:
        return wire.HostView(False, None)
    return wire.HostView(row.away is None, stamp(row.away or row.since))


def user(row: User) -> wire.UserView:
    """A user."""
    return wire.UserView(row.name, list(row.privileges), present(row.created))


def audited(entry: Entry) -> wire.AuditView:
    """What was done."""
    return wire.AuditView(entry.id, present(entry.at), entry.by, entry.did, entry.what, entry.detail)


def option(known: Option) -> wire.OptionView:
    """What a job may choose of a resource."""
    return wire.OptionView(known.name, known.kind, known.meaning, known.default, list(known.allowed))


def entries(site: Site, sort: str, *, whole: bool) -> list[wire.Entry]:
    """The targets, resource types, factories or wells of a site.

    Only `whole`, for operators, with what drivers are told: of a resource that is what its job alone may know. [SEC-1]
    """
    table: Mapping[str, Any] = getattr(site, "resources" if sort == "resource-types" else sort)
    left_out = {"name"} if whole else {"name", "settings"}
    return [
        wire.Entry(name, {key: value for key, value in asdict(entry).items() if key not in left_out})
        for name, entry in sorted(table.items())
    ]
