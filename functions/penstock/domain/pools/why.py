"""Why a job waits: for a slot, for a unit that is being made, or for other jobs and files. As sentences and numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from penstock.domain.artifacts.inputs import Input
from penstock.domain.budgets import Account
from penstock.domain.jobs import deadlines
from penstock.domain.jobs.dependencies import Dependency, On
from penstock.domain.jobs.jobs import Job, State
from penstock.domain.jobs.prerequisites import Verdict
from penstock.domain.jobs.reviews import Review
from penstock.domain.pools import packing
from penstock.domain.pools.delays import Delay
from penstock.domain.pools.forecast import NO_DELAYS, Action, Forecast, Unblock, combined_start, format_duration
from penstock.domain.pools.matching import Chosen
from penstock.domain.pools.pools import WORKER, Claim, Lease, LeaseState, Pool, Slot, SlotState
from penstock.domain.pools.stops import ByHand
from penstock.domain.site.site import Environment
from penstock.domain.units.units import format_time
from penstock.kernel.frozen import dataclass

MAX_NAMED = 5
"""How many things a sentence lists."""

MAX_HOLDERS = 3
"""How many holders it names."""


@dataclass(frozen=True)
class Holder:
    """Who holds a slot that the job waits for."""

    slot: str
    job: str
    since: datetime


@dataclass(frozen=True)
class Kept:
    """A slot whose unit is kept by what `delay` says."""

    slot: str
    delay: Delay


@dataclass(frozen=True)
class AwayHost:
    """A host that is not connected, and since when; None if it never was. `power`: how it is switched."""

    host: str
    since: datetime | None
    power: str | None = None

    def __str__(self) -> str:
        said = (
            f"{self.host} since {format_time(self.since)}" if self.since else f"{self.host}, which was never heard of"
        )
        return f"{said} ({self.power})" if self.power else said


@dataclass(frozen=True)
class MissingPool:
    """A pool that is not there. `is_coming`: the site has it, and the rollout that makes it is under way."""

    name: str
    is_coming: bool

    def __str__(self) -> str:
        if self.is_coming:
            return f"{self.name}, which is new in the site's configuration and comes within minutes"
        return f"{self.name}, which the site no longer has"


@dataclass(frozen=True)
class ClaimAhead:
    """A claim that comes first."""

    job: str
    since: datetime


@dataclass(frozen=True)
class Block:
    """The pool that a job waits for. `position` counts from 1; it is 0 in a job's log, where nobody counts who waits.
    `aside`: slots that an operator holds, and no job.

    `kept`: slots whose units are held, in quarantine or not clean; `away`: the pool's hosts that are not connected.
    Of what a job has ended with only `kept` tells, and no longer `held_by`. `pause` and `resized` say who paused the
    pool or set its limit, where that is known; a job's log does not. `choice` is what the job chooses among the pool's
    things, and `fitting` are those that fit it: `held_by` and `kept` are of these only. Where it takes any, both are
    empty. `wants`: what it takes of a host, where jobs share hosts.
    """

    pool: str
    kind: str
    position: int
    ahead: tuple[ClaimAhead, ...]
    held_by: tuple[Holder, ...]
    limit: int
    held: int
    free: int
    paused: bool
    aside: int = 0
    kept: tuple[Kept, ...] = ()
    away: tuple[AwayHost, ...] = ()
    pause: ByHand | None = None
    resized: ByHand | None = None
    choice: str = ""
    fitting: tuple[str, ...] = ()
    wants: str = ""


@dataclass(frozen=True)
class Why:
    """What a job waits for, who has it, and since when.

    `expected_start`: when it may have everything that it needs; `basis`: what that is estimated from. The job goes on
    when everything in `unblocks` has happened, in this order. `warning`: what keeps no job waiting yet, or not only it.
    `chosen`: why it runs on its target, if that was chosen among several.
    """

    job: str
    state: State
    summary: str
    blocked_on: Block | None
    waiting_for: str | None
    since: datetime
    expected_start: datetime | None = None
    basis: str | None = None
    unblocks: tuple[Unblock, ...] = ()
    warning: str | None = None
    chosen: str | None = None

    @property
    def next_steps(self) -> str | None:
        """What would unblock the job, as a sentence."""
        shown = [str(act) for act in self.unblocks[:MAX_NAMED]]
        more = len(self.unblocks) - MAX_NAMED
        return ("; then ".join(shown) + (f"; and {more} more after that" if more > 0 else "")) or None


def for_strangers(found: Why) -> Why:
    """What of an explanation everybody may read, where the job is public: nothing of other jobs, or of people. [SEC-2]

    What drivers and operators said may name either, so only the pool, the place in its queue, and counts are left.
    """
    if found.state in (State.RUNNING, State.SETTLED):
        return found
    pool = found.blocked_on
    summary = "the job waits for its worker and its resources"
    if pool:
        summary = f"the job waits for {pool.pool}; position {pool.position} in the queue"
    elif found.state is State.WAITING:
        summary = "the job waits for its inputs, for other jobs, or for a review"
    if pool:
        pool = replace(pool, ahead=(), held_by=(), kept=(), away=(), pause=None, resized=None, choice="", fitting=())
    return Why(found.job, found.state, summary, pool, None, found.since, found.expected_start)


@dataclass(frozen=True)
class Stopped:
    """A cool-down that keeps a unit from being made: as a sentence, its cause, and when it ends.

    `probe` is the other unit that tries now, if one does.
    """

    said: str
    why: str
    until: datetime
    probe: str = ""


def block(
    pool: Pool,
    slots: Sequence[Slot],
    claims: Sequence[Claim],
    job: str,
    delays: Mapping[str, Delay] = NO_DELAYS,
    away: Sequence[AwayHost] = (),
) -> Block | None:
    """Why a pool cannot grant a job's claim; None if the job has no claim there."""
    place = next((number for number, claim in enumerate(claims) if claim.job == job), None)
    if place is None:
        return None
    held = [slot for slot in slots if slot.state is SlotState.HELD]
    chosen = Chosen.of(pool, claims[place])
    found = [(slot, delays.get(slot.unit or "")) for slot in held if chosen.has(slot)]
    had = [slot for slot, delay in found if delay is None or not delay.has_ended]
    return Block(
        pool=pool.name,
        kind=pool.sort,
        position=place + 1,
        ahead=tuple(ClaimAhead(claim.job, claim.since) for claim in claims[:place]),
        held_by=tuple(Holder(slot.name, slot.job, slot.since) for slot in had if slot.job is not None and slot.since),
        limit=pool.limit,
        held=pool.used if pool.is_amount else len(held),
        free=pool.limit - pool.used if pool.is_amount else sum(slot.state is SlotState.FREE for slot in slots),
        paused=pool.is_paused,
        aside=sum(slot.count for slot in had if slot.job is None),
        kept=tuple(Kept(slot.name, delay) for slot, delay in found if delay),
        away=tuple(host for host in away if chosen.has_thing(host.host)),
        pause=pool.paused_by,
        resized=pool.resized,
        choice=chosen.said,
        fitting=chosen.named,
        wants=packing.wants(pool, claims[place]),
    )


def short_block(pool: Pool, slots: Sequence[Slot], claim: Claim) -> Block:
    """What a job's log says of the pool that it waits for, of whose held slots one more is read than is told."""
    chosen = Chosen.of(pool, claim)
    held = [slot for slot in slots if chosen.has(slot)]
    return Block(
        pool=pool.name,
        kind=pool.sort,
        position=0,
        ahead=(),
        held_by=tuple(Holder(slot.name, slot.job, slot.since) for slot in held if slot.job is not None and slot.since),
        limit=pool.limit,
        held=len(held),
        free=0,
        paused=pool.is_paused,
        aside=sum(slot.count for slot in held if slot.job is None),
        choice=chosen.said,
        fitting=chosen.named,
        wants=packing.wants(pool, claim),
    )


def is_granted(slots: Sequence[Slot], job: Job, step: int) -> bool:
    """Whether a step got its slot while its queue was read: then it waits for nobody."""
    mine = {need.order for need in job.request.needs if need.step == step}
    return any((slot.job, slot.attempt) == (job.id, job.attempt) and slot.order in mine for slot in slots)


def explain(
    job: Job,
    leases: Sequence[Lease],
    blocked: Block | None,
    unit_reason: str | None = None,
    forecasts: Sequence[Forecast] = (),
    now: datetime | None = None,
    stopped: Sequence[Stopped] = (),
    kept: Delay | None = None,
    *,
    is_made: bool = True,
    missing: MissingPool | None = None,
) -> Why:
    """Why a job is where it is, given the leases of its present attempt and the block of the waiting one.

    `forecasts`: of the waiting step and those after it; `stopped`: the cool-downs of its unit, the first to end first;
    `kept`: what keeps the unit that the job waits for, or its last attempt's worker; `is_made`: whether that unit is.
    `missing`: the pool that a waiting step needs and that is not there.
    """
    since = job.times.settled or job.times.started or job.times.ready or job.times.submitted
    current = next((lease for lease in leases if lease.state in (LeaseState.WAITING, LeaseState.GRANTED)), None)
    if job.is_settled:
        summary = f"the {job.noun} is settled: {job.end.outcome}: {job.end.reason}"
        return Why(job.id, job.state, summary, None, None, since)
    if job.state is State.RUNNING:
        return Why(job.id, job.state, _running(job), None, None, since)
    if current and blocked:
        return _in_a_queue(job, current, blocked, forecasts, now)
    if current and missing and current.state is LeaseState.WAITING:
        return Why(job.id, job.state, f"the {job.noun} waits for {missing}", None, current.type, current.since)
    if current:
        made = is_made and current.order == WORKER
        return _being_made(job, current, _note(unit_reason, stopped), _making(job, current, stopped, now, made), kept)
    if job.history.attempts and job.state is State.QUEUED:
        return _between_attempts(job, since, kept)
    return Why(job.id, job.state, f"the {job.noun} is about to take its next step", None, None, since)


def _running(job: Job) -> str:
    ends = deadlines.ends(job)
    said = (
        f"{job.owner} has it until {format_time(ends)}"
        if job.is_lease and ends
        else f"the job runs on {job.run.worker}"
    )
    return f"{said} and is being cancelled" if job.cancellation.cancelled_by else said


def _in_a_queue(job: Job, lease: Lease, blocked: Block, forecasts: Sequence[Forecast], now: datetime | None) -> Why:
    seconds, basis = combined_start(forecasts)
    start = now + timedelta(seconds=seconds) if now and seconds is not None else None
    unblocks = forecasts[0].unblocks if forecasts else ()
    return Why(
        job.id, job.state, _waiting(job, lease, blocked), blocked, lease.type, lease.since, start, basis, unblocks
    )


def _being_made(job: Job, lease: Lease, note: str, making: Making, kept: Delay | None) -> Why:
    made = "its worker to say hello" if lease.order == WORKER else f"{lease.type} to be made ready"
    summary = f"the {job.noun} waits for {made}{f' ({kept.says})' if kept else note}"
    if kept:
        unblocks = (_let_go(kept, lease.pool), *making.unblocks)
        return Why(job.id, job.state, summary, None, lease.type, lease.since, kept.until, kept.says, unblocks)
    basis = "its maker is asked again then; whether it has some is not known" if making.again else None
    return Why(job.id, job.state, summary, None, lease.type, lease.since, making.again, basis, making.unblocks)


@dataclass(frozen=True)
class Making:
    """How a unit is made: when its maker is asked again, and what has to happen."""

    again: datetime | None
    unblocks: tuple[Unblock, ...]


def _making(job: Job, lease: Lease, stopped: Sequence[Stopped], now: datetime | None, is_made: bool) -> Making:
    """How the unit of a granted lease is made. `is_made`: there is a machine, whose agent has to say hello."""
    again = next((one.until for one in stopped if now is None or one.until > now), None)
    probe = next((one.probe for one in stopped if one.probe), "")
    is_worker = lease.order == WORKER
    hello = Unblock(Action.HELLO, lease.pool, lease.type, job.id)
    what = "its worker" if is_worker else lease.type
    make = Unblock(Action.MAKE, lease.pool, what, job.id, unit=probe, said=_when(again, probe))
    return Making(again, (*([] if is_made else [make]), *([hello] if is_worker else [])))


def _when(again: datetime | None, probe: str) -> str:
    if probe:
        return f", once {probe} is, which is tried first"
    return f": its maker is asked again at {format_time(again)}" if again else ""


def _let_go(kept: Delay, pool: str = "") -> Unblock:
    return Unblock(Action.LET_GO, pool, unit=kept.unit, said=kept.act)


def _between_attempts(job: Job, since: datetime, kept: Delay | None) -> Why:
    last = job.history.attempts[-1]
    summary = f"attempt {job.attempt} starts when what attempt {last.attempt} used is put back ({last.reason})"
    if kept:
        said = f"{summary}; {kept.says}"
        return Why(job.id, job.state, said, None, None, since, kept.until, unblocks=(_let_go(kept),))
    if job.flow.parked_until:
        until = job.flow.parked_until
        said = f"the job gave back what it held ({last.reason}), and queues again at {format_time(until)}"
        return Why(job.id, job.state, said, None, None, since)
    back = Unblock(Action.PUT_BACK, what=str(last.attempt), job=job.id)
    return Why(job.id, job.state, summary, None, None, since, unblocks=(back,))


def _note(unit_reason: str | None, stopped: Sequence[Stopped]) -> str:
    """Why a unit is not ready yet: the last message about it, unless a cool-down says it better."""
    is_told = any(unit_reason and (one.why in unit_reason or unit_reason == one.said) for one in stopped)
    notes = [unit_reason] if unit_reason and not is_told else []
    notes += [one.said for one in stopped[:MAX_NAMED]]
    return f" ({'; '.join(notes)})" if notes else ""


def _waiting(job: Job, lease: Lease, blocked: Block) -> str:
    what = f"the {job.noun} waits for {'' if lease.order else 'a worker of '}{lease.type}"
    told = _reasons(blocked)
    place = [f"position {blocked.position} in the queue"] if blocked.position else []
    return "; ".join([f"{what}: {told[0]}" if told else what, *told[1:], *place, *_turn(job)])


def _turn(job: Job) -> list[str]:
    """Why a job stands where it does in its queues, if that is not by its age."""
    if job.times.turn is None:
        return []
    later = format_duration((job.times.turn - job.times.submitted).total_seconds())
    return [f"its turn is {later} after it came, for what {job.owner} has used and asked for lately"]


def _reasons(blocked: Block) -> list[str]:
    if blocked.paused:
        return [f"{blocked.pool} is paused {blocked.pause or 'by an operator'}"]
    if not blocked.limit:
        resized = f", set {blocked.resized}" if blocked.resized else ""
        return [f"{blocked.pool} has a limit of 0{resized}, so nothing is granted until an operator raises it"]
    held = [f"{holder.slot} by {holder.job}" for holder in blocked.held_by[:MAX_HOLDERS]]
    holders = ", ".join([*held, *([f"{blocked.aside} kept by operators"] if blocked.aside else [])])
    more = len(blocked.held_by) - MAX_HOLDERS
    tail = (f" and {more} more" if blocked.position else " and others") if more > 0 else ""
    told = [*([f"it wants {blocked.wants}"] if blocked.wants else []), *_chosen(blocked)]
    told += [f"held are {holders}{tail}"] if holders else []
    told += [f"away {'are' if len(blocked.away) > 1 else 'is'} {_named(blocked.away)}"] if blocked.away else []
    return [*told, *_kept(blocked)]


def _chosen(blocked: Block) -> list[str]:
    """Which of the pool's things the job may have, if not any."""
    if not blocked.choice:
        return []
    if not blocked.fitting:
        return [f"nothing of {blocked.pool} fits {blocked.choice} any more: it waits until the site changes"]
    more = len(blocked.fitting) - MAX_NAMED
    named = ", ".join(blocked.fitting[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")
    return [f"only {named} fit{'s' * (len(blocked.fitting) == 1)} {blocked.choice}"]


def _kept(blocked: Block) -> list[str]:
    """What keeps units of the pool, a sentence each."""
    says = list(dict.fromkeys(each.delay.says for each in blocked.kept))
    more = len(says) - MAX_NAMED
    return [*says[:MAX_NAMED], *([f"{more} more are kept so"] if more > 0 else [])]


def _named(away: Sequence[AwayHost]) -> str:
    more = len(away) - MAX_NAMED
    return ", ".join(map(str, away[:MAX_NAMED])) + (f" and {more} more" if more > 0 else "")


MAX_DEPTH = 5
"""How many jobs, each waiting for the next, an explanation follows."""

_VERBS = {On.SUCCESS: "succeed", On.FAILURE: "fail", On.ALWAYS: "end"}


def explain_dependencies(
    job: Job, verdict: Verdict, priors: Mapping[str, Job], next_: Why | None, reviewed: Environment | None = None
) -> Why:
    """Why a job still waits, given its dependencies; `next_` explains the first of those that it waits for, and
    `reviewed` is the environment for which somebody has to approve it, if the site still has it.

    Nobody knows when that ends: a job runs for as long as it takes.
    """
    told = [_jobs(job, verdict.waiting, priors)] if verdict.waiting else []
    told += [f"job {next_.job}: {next_.summary}"] if next_ else []
    told += [_files(verdict.inputs)] if verdict.inputs else []
    told += [_unreviewed(verdict.review, reviewed)] if verdict.review else []
    unblocks = [Unblock(Action.END, what=f"{_VERBS[each.on]}s", job=each.job) for each in verdict.waiting]
    unblocks += [Unblock(Action.ARRIVE, what=each.name) for each in verdict.inputs]
    unblocks += [Unblock(Action.APPROVE, what=_reviewers(reviewed), job=job.id)] if verdict.review else []
    of = [
        *(f"job {each.job}" for each in verdict.waiting),
        *(f"input {each.name}" for each in verdict.inputs),
        *([f"a review for {verdict.review.environment}"] if verdict.review else []),
        None,
    ][0]
    summary = "; ".join(told) or "the job waits for nothing any more, and is about to take its next step"
    return Why(job.id, job.state, summary, None, of, job.times.submitted, unblocks=tuple(unblocks))


def explain_backlog(job: Job, begun: int, most: int, before: int) -> Why:
    """Why a job stands in its owner's backlog: so many jobs are under way, and so many stand before it there."""
    them = "none of its other jobs stands" if not before else f"{before} of its jobs stand{'s' * (before == 1)}"
    summary = (
        f"the job waits until fewer jobs of {job.owner} are under way: {begun} are, and {most} may be "
        f"(limits.at_once); {them} before it"
    )
    fewer = Unblock(Action.FEWER, what=job.owner)
    return Why(job.id, job.state, summary, None, f"jobs of {job.owner}", job.times.submitted, unblocks=(fewer,))


def explain_budget(job: Job, spent: Account, before: int) -> Why:
    """Why a job stands in its owner's backlog although few enough are under way: the budget is spent."""
    them = "none of its other jobs stands" if not before else f"{before} of its jobs stand{'s' * (before == 1)}"
    summary = f"the job waits because the budget of {job.owner} is spent: {spent}; {them} before it"
    again = Unblock(Action.BUDGET, what=job.owner, said=format_time(spent.ends))
    return Why(job.id, job.state, summary, None, f"budget of {job.owner}", job.times.submitted, unblocks=(again,))


def _unreviewed(review: Review, reviewed: Environment | None) -> str:
    if reviewed is None:
        return f"the environment {review.environment}, for which the job waits to be approved, is no longer there"
    who, until = _reviewers(reviewed), format_time(review.until)
    return f"the job waits until {who} approves it for the environment {review.environment} (until {until})"


def _reviewers(reviewed: Environment | None) -> str:
    return reviewed.people if reviewed else "nobody"


def _files(missing: Sequence[Input]) -> str:
    named = ", ".join(f"{each.name} (until {format_time(each.until)})" for each in missing[:MAX_NAMED])
    more = f" and {len(missing) - MAX_NAMED} more" if len(missing) > MAX_NAMED else ""
    return f"the job waits for its user to send {named}{more}"


def _jobs(job: Job, waiting: Sequence[Dependency], priors: Mapping[str, Job]) -> str:
    named = [f"job {each.job} ({priors[each.job].name}) to {_VERBS[each.on]}" for each in waiting[:MAX_NAMED]]
    more = f" and {len(waiting) - MAX_NAMED} more" if len(waiting) > MAX_NAMED else ""
    every = len(job.request.dependencies)
    return f"the job waits for {len(waiting)} of the {every} that it depends on: {', '.join(named)}{more}"


def planned_waits(job: Job, priors: Mapping[str, Job]) -> list[str]:
    """What a job would wait for first, a sentence each. Of files that are uploaded later only the names are known."""
    files = [f"first it would wait for its user to send {', '.join(job.request.inputs)}"] if job.request.inputs else []
    jobs = (each for each in job.request.dependencies if _open(each, priors))
    asked = [f"first it would wait for a review for the environment {job.review.environment}"] if job.review else []
    return [*files, *(f"first it would wait for {_of(each, priors.get(each.job))}" for each in jobs), *asked]


def _open(dependency: Dependency, priors: Mapping[str, Job]) -> bool:
    prior = priors.get(dependency.job)
    return prior is None or not prior.is_settled


def _of(dependency: Dependency, prior: Job | None) -> str:
    verb = _VERBS[dependency.on]
    if prior is None:
        return f"the job of {dependency.job!r} to {verb}"
    return f"job {prior.id} ({prior.name}), which is {prior.state}, to {verb}"
