"""The life cycle of a unit, as data: who moves it on, what its due time means, and which states may follow.

`worker show` and `resource show` print the entry of one unit (`next_step`), docs/internals/unit-lifecycle.md prints all
of them (`table`), and tests check every commit against them.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from penstock.domain.units.units import Unit, UnitKind, UnitState, format_time, is_held
from penstock.domain.units.units import UnitState as State
from penstock.kernel.frozen import dataclass


@dataclass(frozen=True)
class Stage:
    """One state. `by` moves a unit on from it; `due` is the meaning of its due time.

    After its due time the sweep repeats the step. `to` are the states that may follow, with the reason for each.
    """

    by: str
    due: str
    to: Mapping[State, str]


STAGES: Mapping[State, Stage] = {
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

HOLD_SENTENCE = (
    "a hold keeps a unit in `cleaning`, `idle` or `dirty` until an operator releases it, at the latest until the hold "
    "expires, which is when the unit is due"
)


def may_move(was: State, now: State) -> bool:
    """Whether a unit may go from one state to another, or stay."""
    return was is now or now in STAGES[was].to


def table() -> str:
    """The life cycle as a Markdown table."""
    lines = ["| state | moved on by | due is | next |", "|---|---|---|---|"]
    for state, stage in STAGES.items():
        to = "; ".join(f"`{after}`: {why}" for after, why in stage.to.items()) or "nothing"
        lines.append(f"| `{state}` | {stage.by} | {stage.due} | {to} |")
    return "\n".join([*lines, "", f"{HOLD_SENTENCE[0].upper()}{HOLD_SENTENCE[1:]}.", ""])


AFTER_HOLD = {
    UnitState.CLEANING: "it is cleaned when",
    UnitState.IDLE: "nobody is lent it until",
    UnitState.DIRTY: "it is destroyed when",
}
"""What happens when a hold ends."""


def next_step(unit: Unit, now: datetime) -> str:
    """Who moves a unit on, and by when at the latest, as a sentence."""
    by = f" by {format_time(unit.due)}" if unit.due else ""
    held = format_time(unit.hold.until) if unit.hold and is_held(unit, now) else ""
    is_worker = unit.is_a is UnitKind.WORKER
    match unit.state:
        case UnitState.CREATING | UnitState.READY:
            return f"{_leased(unit, by, is_worker)}; then {_after(unit, held)}"
        case UnitState.CLEANING | UnitState.IDLE | UnitState.DIRTY if held:
            return f"{AFTER_HOLD[unit.state]} its hold ends, by {held}"
        case UnitState.CLEANING:
            return f"{'its agent' if is_worker else unit.maker} says that it is clean{by}, or it is destroyed"
        case UnitState.IDLE if unit.cleaning.until:
            return f"the next job is lent it, or it is destroyed by {format_time(unit.cleaning.until)}"
        case UnitState.IDLE:
            coming = (
                f"its agent says hello{by}, or it is destroyed" if unit.creation.made else f"{unit.maker} makes it{by}"
            )
            return f"{coming}; the next job is lent it, there or not"
        case UnitState.DIRTY if unit.cleaning.begun is None:
            return "it is destroyed when what its attempt gives back before it is back"
        case UnitState.DIRTY:
            return f"{unit.maker} destroys it; asked again{by}"
        case UnitState.QUARANTINED:
            told = f" (reminded {unit.health.reminders} times)" if unit.health.reminders else ""
            return f"an operator mends it and releases it, recycles it, or removes it by hand and proves it{told}"
        case _:
            return "nothing: it is gone"


def _leased(unit: Unit, by: str, is_worker: bool) -> str:
    if unit.drain and unit.drain.at_once:
        return "its attempt ends, for it is recycled"
    if unit.state is UnitState.READY:
        return f"its job ends, or is lost if nothing is heard of its agent{by}" if is_worker else "its job ends"
    if unit.creation.made:
        return f"its agent says hello{by}, or its attempt is lost"
    return f"{unit.maker} makes it; asked again{by}"


def _after(unit: Unit, held: str) -> str:
    end = (
        "is destroyed" if unit.drain or not unit.cleaning.is_kept else "is cleaned for the next, if its job ended well"
    )
    return f"it stays as it is until its hold ends, by {held}, and {end}" if held else f"it {end}"
