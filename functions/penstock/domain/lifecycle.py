"""A unit's states and moves, as data: who moves it on, what its due time means, and which states may follow.

`worker show` and `resource show` print it for one unit, docs/internals/unit-lifecycle.md for all, and tests check every
commit against it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.domain.units import UnitState as State


@dataclass(frozen=True)
class Stage:
    """One state. `by` moves a unit on from it; `due` is the meaning of its due time.

    After its due time the sweep repeats the step. `to` are the states that may follow, with the reason for each.
    """

    by: str
    due: str
    to: Mapping[State, str]


LIFE: Mapping[State, Stage] = {
    State.CREATING: Stage(
        "its driver; for a worker, then its agent's hello",
        "the driver's next step; then the boot deadline, after which its attempt is lost",
        {
            State.READY: "its well has made it, or its agent said hello",
            State.DIRTY: "its lease ended before it was ready",
        },
    ),
    State.READY: Stage(
        "the end of its lease",
        "a worker's next heartbeat, after which its attempt is lost; the renewal of a resource's credentials, if these "
        "expire; otherwise a resource has none, because its job's row has one",
        {
            State.CLEANING: "its lease ended well, and its pool keeps units",
            State.DIRTY: "its lease ended",
        },
    ),
    State.CLEANING: Stage(
        "its well or its agent, which cleans it",
        "when the agent counts as lost, or the well is called again",
        {
            State.IDLE: "it is clean and stays warm",
            State.DIRTY: "cleaning took too long; or it is broken, surplus, too old or drained",
        },
    ),
    State.IDLE: Stage(
        "the next grant",
        "a worker's next heartbeat; the end of its idle time",
        {
            State.CREATING: "it was granted again",
            State.DIRTY: "it was idle too long, blocked another claim, fell silent, vanished or was drained",
        },
    ),
    State.DIRTY: Stage(
        "its driver, in its turn",
        "the driver's next try, or the next check whether it is its turn",
        {
            State.GONE: "its driver destroyed it and returned a proof",
            State.QUARANTINED: "its driver cannot destroy it, and waiting does not help; "
            "or it is broken and cannot be made again",
        },
    ),
    State.QUARANTINED: Stage(
        "an operator",
        "a daily reminder",
        {
            State.DIRTY: "an operator released or recycled it",
            State.GONE: "an operator removed it by hand and recorded what they checked",
        },
    ),
    State.GONE: Stage("nobody: it is final", "none", {}),
}
"""Every state, in the order of a unit's life."""

HELD = (
    "a hold keeps a unit in `cleaning`, `idle` or `dirty` until an operator releases it or it expires, when it is due"
)


def may_move(was: State, now: State) -> bool:
    """Whether a unit may go from one state to another, or stay."""
    return was is now or now in LIFE[was].to


def table() -> str:
    """All of it as a table in Markdown."""
    lines = ["| state | moved on by | due is | next |", "|---|---|---|---|"]
    for state, stage in LIFE.items():
        to = "; ".join(f"`{after}`: {why}" for after, why in stage.to.items()) or "nothing"
        lines.append(f"| `{state}` | {stage.by} | {stage.due} | {to} |")
    return "\n".join([*lines, "", f"{HELD[0].upper()}{HELD[1:]}.", ""])
