"""Scenarios of what is kept for the next job, and of what is made ahead of it."""

from __future__ import annotations

from penstock.domain.jobs.jobs import State
from tests.crash.life import Life
from tests.crash.scenarios import Steps, scenario
from tests.crash.sitefile import AHEAD, COLD


@scenario()
def reuse(life: Life) -> Steps:
    """A worker cleans up, is idle, and is handed to the next job; then nothing is kept any more."""
    first = life.submit(target="kept")
    yield life.is_(first)
    yield life.rest
    second = life.submit(target="kept")
    yield life.is_(second)
    yield life.rest
    life.configure(COLD)
    yield life.empty


@scenario()
def evict(life: Life) -> Steps:
    """An idle worker makes room for a job that waits for the quota that it takes."""
    first = life.submit(target="kept")
    yield life.is_(first)
    yield life.rest
    second = life.submit(target="big")
    yield life.is_(second)


@scenario(minutes=2)
def retire(life: Life) -> Steps:
    """A worker is idle for too long."""
    first = life.submit(target="kept")
    yield life.is_(first)
    yield life.rest
    yield life.empty
    second = life.submit(target="kept")
    yield life.is_(second)
    life.configure(COLD)


@scenario(minutes=1)
def clean(life: Life) -> Steps:
    """A resource is cleaned by its well, which takes its time, and handed to a job that waits for it."""
    first = life.submit_held("first", resources=["sandbox"])
    yield life.is_(first, State.RUNNING)
    second = life.submit(resources=["sandbox"])
    yield life.waits(second)
    life.site.drivers.hands["well"].slow = 1
    life.let_go(first)
    yield life.is_(first)
    yield life.is_(second)
    yield life.rest
    life.configure(COLD)
    yield life.empty


@scenario()
def ahead(life: Life) -> Steps:
    """A worker and a resource are made before anybody asks, lent, and made again; then nothing is wanted any more."""
    life.configure(AHEAD)
    yield life.ready
    first = life.submit(target="kept", resources=["sandbox"])
    yield life.is_(first)
    yield life.rest
    life.configure(COLD)
    yield life.empty


@scenario()
def ahead_of_another(life: Life) -> Steps:
    """What was made ahead of need makes room for jobs that wait for its quota."""
    life.configure(AHEAD)
    yield life.ready
    first = life.submit(target="big")
    yield life.is_(first)
    life.configure(COLD)
    yield life.empty
