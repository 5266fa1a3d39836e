"""Waiting: why a job waits, what would happen to a job, and who waits for whom."""

from __future__ import annotations

from dataclasses import field
from typing import Annotated, Literal

from penstock.api.app import Operator, Router
from penstock.api.pools import ByHandView, KeptView, show_kept
from penstock.api.readers import Reader
from penstock.api.shapes import JobName, JobOwner, JobState, PoolKind, view
from penstock.domain.jobs import states
from penstock.domain.jobs.plans import Plan
from penstock.domain.pools.graph import Graph, Node
from penstock.domain.pools.why import Block, ClaimAhead, Holder, Why
from penstock.domain.users.users import READ
from penstock.kernel.frozen import dataclass
from penstock.system import System
from penstock.usecases.jobs import readers
from penstock.usecases.jobs.names import Named, name_of, names_of
from penstock.usecases.pools import forecast

router = Router("waiting")


@dataclass(frozen=True)
class HolderView:
    """A slot that a job holds."""

    slot: Annotated[str, "The slot."]
    job: Annotated[str, "The id of the job that holds it."]
    since: Annotated[str, "Since when, as RFC 3339."]
    job_name: JobName = None
    job_owner: JobOwner = None


@dataclass(frozen=True)
class AheadView:
    """A job that is ahead in the queue."""

    job: Annotated[str, "The job's id."]
    since: Annotated[str, "Since when it waits, as RFC 3339."]
    job_name: JobName = None
    job_owner: JobOwner = None


@dataclass(frozen=True)
class AwayView:
    """A host that is away."""

    host: Annotated[str, "The host's name."]
    since: Annotated[str | None, "Since when, as RFC 3339; null if it never called."]
    power: Annotated[str | None, "Whether it is being switched on or off, in a sentence; null if it is not."] = None


@dataclass(frozen=True)
class BlockView:
    """The pool that a job waits for."""

    pool: Annotated[str, "The pool's name."]
    kind: Annotated[PoolKind, "Whether its slots are numbered or named, or it is an amount, such as a quota."]
    position: Annotated[int, "The job's place in the queue. Places count from 1."]
    ahead: Annotated[list[AheadView], "The jobs ahead of it."]
    held_by: Annotated[list[HolderView], "The slots, and the jobs that hold them."]
    limit: Annotated[int, "How many slots the pool has."]
    held: Annotated[int, "How many of them are held."]
    free: Annotated[int, "How many of them are free."]
    paused: Annotated[bool, "Whether an operator has paused the pool."]
    away: Annotated[list[AwayView], "Its hosts that are away."] = field(default_factory=list)
    kept: Annotated[list[KeptView], "Its units that are not given back, and why."] = field(default_factory=list)
    pause: Annotated[ByHandView | None, "Who paused it; null while it is open, and if that is not known."] = None
    resized: Annotated[ByHandView | None, "Who set its limit; null if the site's configuration did."] = None
    choice: Annotated[str, "What the job chooses among the pool's things; empty if it takes any."] = ""
    fitting: Annotated[list[str], "The things that fit this choice: `held_by` and `kept` are of these."] = field(
        default_factory=list
    )
    wants: Annotated[str, "What the job takes of a host, where jobs share hosts; else empty."] = ""


@dataclass(frozen=True)
class WhyView:
    """Why a job is where it is."""

    job: Annotated[str, "The job's id."]
    state: Annotated[JobState, "Its state."]
    summary: Annotated[str, "The answer in a sentence."]
    blocked_on: Annotated[BlockView | None, "The pool that it waits for; null if it waits for none."]
    waiting_for: Annotated[str | None, "What else it waits for, such as an input or a machine that boots."]
    since: Annotated[str, "Since when, as RFC 3339."]
    expected_start: Annotated[str | None, "When it may have all that it needs, as RFC 3339; null if unknown."]
    basis: Annotated[str | None, "What that estimate is based on."]
    unblocks: Annotated[str | None, "What has to happen before it goes on."]
    warning: Annotated[
        str | None, "That its owner's budget is nearly spent, or is spent, in a sentence; null otherwise."
    ] = None
    chosen: Annotated[
        str | None, "Why it runs on its target, in a sentence; null if that was not chosen among several."
    ] = None


@dataclass(frozen=True)
class AcquireView:
    """What one step takes of one pool."""

    pool: Annotated[str, "The pool's name."]
    type: Annotated[str, "The target, resource type or quota."]
    count: Annotated[int, "How many slots, or how much of an amount."]


@dataclass(frozen=True)
class PlanStepView:
    """What is acquired together: all of it or nothing."""

    step: Annotated[int, "The step's number. Steps count from 1; the last acquires the worker."]
    acquires: Annotated[list[AcquireView], "What it takes."]


@dataclass(frozen=True)
class PlanWaitView:
    """A pool that the job would wait for."""

    pool: Annotated[str, "The pool's name."]
    position: Annotated[int, "The job's place in its queue. Places count from 1."]
    expected_seconds: Annotated[float | None, "For how many seconds it would wait; null if unknown."]
    basis: Annotated[str | None, "What that estimate is based on."]


@dataclass(frozen=True)
class PlanView:
    """What would happen to a job if it were submitted now."""

    target: Annotated[str, "The target that it asks for."]
    target_resolved: Annotated[str, "The target that it would run on: where redirects lead, or one of a family."]
    steps: Annotated[list[PlanStepView], "What it would acquire, step by step."]
    privileges: Annotated[list[str], "The privileges that it needs: you have them, or its environment gives them."]
    would_wait: Annotated[bool, "Whether it would wait for anything."]
    waits_for: Annotated[list[PlanWaitView], "The pools that it would wait for."]
    expected_seconds: Annotated[
        float | None, "In how many seconds it would have all that it needs: 0 for at once, null if unknown."
    ]
    sentences: Annotated[list[str], "The plan in sentences."]


@dataclass(frozen=True)
class NodeView:
    """A job or a pool."""

    id: Annotated[str, "The job's id, or the pool's name."]
    kind: Annotated[Literal["job", "pool"], "Which of both it is."]
    label: Annotated[str, "What to call it."]
    job_name: JobName = None
    job_owner: JobOwner = None


@dataclass(frozen=True)
class EdgeView:
    """From a job to a pool that it waits for, or from a pool to a job that holds some of it."""

    from_: Annotated[str, "The node where it begins."]
    to: Annotated[str, "The node where it ends."]
    kind: Annotated[Literal["waits", "holds"], "Whether the job waits for the pool, or holds some of it."]
    choice: Annotated[str, "Which of the pool's things the job waits for; empty for any."] = ""


@dataclass(frozen=True)
class GraphView:
    """Which jobs wait for which pools, and which jobs hold them."""

    nodes: Annotated[list[NodeView], "The jobs and pools."]
    edges: Annotated[list[EdgeView], "Which waits for which, and which is held by which."]
    cycle: Annotated[list[str], "Nodes that wait for each other. It is empty: deadlocks cannot happen."]
    left_out: Annotated[int, "How many nodes were left out, because there are too many."]


@router.get("/v1/jobs/{job}/why", "Show why a job is where it is", READ)
def explain_job(on: System, user: Reader, job: str) -> WhyView:
    return show_why(on, readers.explain(on, user, readers.find(on, user, job)))


@router.get("/v1/graph", "Show which jobs wait for what, and which hold it", READ)
def get_graph(on: System, user: Operator) -> GraphView:
    return show_graph(on, forecast.wait_graph(on))


def show_why(on: System, found: Why) -> WhyView:
    """An explanation. Who waits sees who has what it waits for, and who comes first. [SEC-2]"""
    block = found.blocked_on
    state = states.shown(found.state, is_in_queue=block is not None)
    return view(
        WhyView, found, state=state, unblocks=found.next_steps, blocked_on=_show_block(on, block) if block else None
    )


def _show_block(on: System, block: Block) -> BlockView:
    known = names_of(on, [*(each.job for each in block.held_by), *(each.job for each in block.ahead)])
    return view(
        BlockView,
        block,
        held_by=[_show_holder(each, name_of(known, each.job)) for each in block.held_by],
        ahead=[_show_ahead(each, name_of(known, each.job)) for each in block.ahead],
        kept=[show_kept(each.slot, each.delay) for each in block.kept],
    )


def _show_holder(row: Holder, named: Named) -> HolderView:
    return view(HolderView, row, named)


def _show_ahead(row: ClaimAhead, named: Named) -> AheadView:
    return view(AheadView, row, named)


def show_plan(found: Plan) -> PlanView:
    """What would happen to a job."""
    return view(
        PlanView,
        found,
        steps=[
            PlanStepView(number, [view(AcquireView, one) for one in step]) for number, step in enumerate(found.steps, 1)
        ],
        would_wait=bool(found.waits) or found.depends,
        waits_for=[view(PlanWaitView, wait, expected_seconds=wait.seconds) for wait in found.waits],
        expected_seconds=found.seconds,
    )


def show_graph(on: System, found: Graph) -> GraphView:
    """Who waits for whom."""
    edges = [view(EdgeView, edge, from_=edge.start, to=edge.end, kind=edge.tie) for edge in found.edges]
    known = names_of(on, (node.id for node in found.nodes if node.kind == "job"))
    nodes = [_show_node(node, name_of(known, node.id)) for node in found.nodes]
    return view(GraphView, found, nodes=nodes, edges=edges)


def _show_node(row: Node, named: Named) -> NodeView:
    return view(NodeView, row, named)
