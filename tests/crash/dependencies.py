"""Scenarios of what jobs need of each other, and exchange with their users."""

from __future__ import annotations

from penstock.domain.jobs.jobs import State
from tests.crash.life import Life
from tests.crash.scenarios import Steps, scenario
from tests.crash.sitefile import BRIEF


@scenario(minutes=2)
def outputs_go(life: Life) -> Steps:
    """A job sends an output, which is kept for a minute after its end, and then is gone with all that said so."""
    life.configure(BRIEF)
    life.writes_outputs = True
    job = life.submit()
    yield life.is_(job)
    yield life.nothing_is_kept(job)


@scenario()
def depend(life: Life) -> Steps:
    """A job waits for another and gets what that kept; a third waits for its failure, which never comes."""
    life.writes_outputs = True
    first = life.submit_held("first")
    yield life.is_(first, State.RUNNING)
    second = life.submit(dependencies={"first": {"job": first}})
    third = life.submit(dependencies={"second": {"job": second, "on": "failure"}})
    yield life.is_(third, State.WAITING)
    life.let_go(first)
    yield life.is_(second)
    yield life.is_(third)


@scenario()
def cancel_what_depends(life: Life) -> Steps:
    """A job that waits for another is cancelled, and with it fails the one that waits for it."""
    first = life.submit_held("first")
    yield life.is_(first, State.RUNNING)
    second = life.submit(dependencies={"first": {"job": first}})
    third = life.submit(dependencies={"second": {"job": second}})
    yield life.is_(third, State.WAITING)
    life.cancel(second)
    yield life.is_(third)
    life.let_go(first)
    yield life.is_(first)


@scenario()
def exchange(life: Life) -> Steps:
    """A user and a job put values into its store, secret ones too, which go when it settles."""
    life.exchanges = True
    job = life.submit(resources=["bench"])
    life.put(job, "token", "hunter2")
    yield life.is_(job)
