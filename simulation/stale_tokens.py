"""An agent, or a script that read its files, that shows what is worth nothing any more. [SEC-2]"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.domain.commands import Hello
from penstock.domain.replies import Idle
from penstock.domain.units.units import Unit, UnitState, unit_key
from penstock.kernel.errors import Refused
from penstock.usecases.workers import agents
from simulation.interfaces import Agent, Run

Try = tuple[str, Callable[[], Any]]

FALSE = "t" * 43


def try_old_tokens(engine: Run, machine: Agent) -> None:
    """Try one of the things that a worker must be refused from its first job's end on: now and then, but above all when
    it was granted to its next job, and its agent has not come yet.
    """
    unit = engine.store.rows.get(unit_key(machine.id))
    if not (isinstance(unit, Unit) and unit.state is UnitState.CREATING) and engine.dice.random() < 0.8:
        return
    what, call = engine.dice.choice([*_hellos(engine, machine), *_acts(engine, machine)])
    engine.begin(f"intruder: {machine.id} {what}", call, lambda _: None, intruder=True)


def _hellos(engine: Run, machine: Agent) -> list[Try]:
    """Its bootstrap key, and the token of a job before its last."""
    asks = [("shows its bootstrap key", Hello(machine.id, machine.key, FALSE))]
    asks.append(("shows its bootstrap key and its first token", Hello(machine.id, machine.key, machine.token_of(0))))
    if len(machine.past) > 1:
        old = machine.past[-2][1]
        asks.append(("shows the token before its last", Hello(machine.id, machine.key, FALSE, "", old, "clean")))
    return [(what, _hello(engine, ask)) for what, ask in asks]


def _hello(engine: Run, ask: Hello) -> Callable[[], Any]:
    """Who has the key and the token that it was exchanged for is the agent: of a held machine it is told so."""

    def call() -> Any:
        told = agents.hello(engine.on, ask)
        if ask.token != FALSE and isinstance(told, Idle) and told.held_seconds is not None:
            raise Refused(410, "held", "there is no job for it, and its machine is to stay")
        return told

    return call


def _acts(engine: Run, machine: Agent) -> list[Try]:
    """The token of one of its jobs for another of them. Until it is told of the next, the last may not be settled."""
    job, token = machine.past[-1]
    if machine.state != "running" or job == machine.job:
        return []
    return [
        ("acts for its last job with its last token", _act(engine, job, token)),
        ("acts for its present job with its last token", _act(engine, machine.job, token)),
        ("acts for its last job with its present token", _act(engine, job, machine.token)),
    ]


def _act(engine: Run, job: str, token: str) -> Callable[[], Any]:
    return lambda: agents.authenticate(engine.on, job, token)
