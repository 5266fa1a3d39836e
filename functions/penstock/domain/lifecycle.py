"""A unit's states and moves, as data: who moves it on, what its due time means, and where it may go.

`worker show` and `resource show` tell it of one unit, docs/internals/unit-lifecycle.md of all, and the tests hold every
commit to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.domain.units import UnitState as State


@dataclass(frozen=True)
class Stage:
    """One state. `by` moves a unit on from it; `due` is what its due time stands for, after which the sweep asks again.

    `to` are the states that may follow, with what leads there.
    """

    by: str
    due: str
    to: Mapping[State, str]


LIFE: Mapping[State, Stage] = {
    State.CREATING: Stage(
        "its driver; then, of a worker, its agent's hello",
        "the driver's next step; then the boot deadline, after which its attempt is lost",
        {
            State.READY: "its well has made it, or its agent said hello",
            State.DIRTY: "its lease ended before it was there",
        },
    ),
    State.READY: Stage(
        "the end of its lease",
        "a worker's next word, after which its attempt is lost; when a resource's well is asked anew, for what it said "
        "ends by itself: else a resource has none, its job's row has",
        {
            State.CLEANING: "its lease ended well, and its pool keeps units",
            State.DIRTY: "its lease ended",
        },
    ),
    State.CLEANING: Stage(
        "its well or its agent, who clean it",
        "when the agent is given up, or the well is asked again",
        {
            State.IDLE: "it is clean, and kept",
            State.DIRTY: "it did not get clean in time, is broken, one too many, too old or drained",
        },
    ),
    State.IDLE: Stage(
        "the next grant",
        "a worker's next word; the end of its idle time",
        {
            State.CREATING: "it was granted again",
            State.DIRTY: "nobody wanted it for too long, it was in the way, silent, vanished or drained",
        },
    ),
    State.DIRTY: Stage(
        "its driver, in its turn",
        "the driver's next try, or the next look whether it is its turn",
        {
            State.GONE: "its driver destroyed it, and proved it",
            State.QUARANTINED: "its driver cannot, which time does not mend; or it is broken, and is not made anew",
        },
    ),
    State.QUARANTINED: Stage(
        "an operator",
        "a reminder, each day",
        {
            State.DIRTY: "an operator released or recycled it",
            State.GONE: "an operator removed it by hand, and said what they checked",
        },
    ),
    State.GONE: Stage("nobody: it is final", "none", {}),
}
"""Every state, in the order of a unit's life."""

HELD = (
    "a hold keeps a unit in `cleaning`, `idle` or `dirty` until its operator releases it; its due time is the end of it"
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
