"""What users do, one function per scenario. Whatever goes wrong once, each ends as it does when nothing does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from penstock.domain.jobs.jobs import State
from tests.crash.life import Life, Script
from tests.crash.sitefile import LABELLED, SITE

Steps = Iterator[Callable[[], bool]]


@dataclass(frozen=True)
class Scenario:
    """What users do, and how many minutes pass until all is over when nothing goes wrong."""

    script: Script
    minutes: int


SCENARIOS: dict[str, Scenario] = {}
"""Every scenario by its name."""


def scenario(minutes: int = 0) -> Callable[[Script], Script]:
    """List a scenario."""

    def listed(script: Script) -> Script:
        SCENARIOS[script.__name__.replace("_", "-")] = Scenario(script, minutes)
        return script

    return listed


@scenario()
def submit(life: Life) -> Steps:
    """A job that needs a worker and nothing else."""
    job = life.submit()
    yield life.is_(job)


@scenario()
def acquire(life: Life) -> Steps:
    """Two resources and a worker."""
    job = life.submit(resources=["licence", "bench"])
    yield life.is_(job)


@scenario()
def acquire_two_of_a_kind(life: Life) -> Steps:
    """Two of one resource, granted together."""
    job = life.submit(resources={"first": {"type": "licence"}, "second": {"type": "licence"}})
    yield life.is_(job)


@scenario()
def hand_over(life: Life) -> Steps:
    """A job waits for what another holds, and is handed it."""
    first = life.submit_held("first", resources=["bench"])
    yield life.is_(first, State.RUNNING)
    second = life.submit(resources=["bench"])
    yield life.waits(second)
    life.let_go(first)
    yield life.is_(second)


@scenario()
def cancel_while_waiting(life: Life) -> Steps:
    """A job is cancelled in a pool's queue, and another behind it is not."""
    first = life.submit_held("first", resources=["bench"])
    yield life.is_(first, State.RUNNING)
    second = life.submit(resources=["bench"])
    third = life.submit(resources=["bench"])
    yield life.waits(third)
    life.cancel(second)
    yield life.is_(second)
    life.let_go(first)
    yield life.is_(third)


@scenario()
def cancel_while_creating(life: Life) -> Steps:
    """A job is cancelled between its machine's order and its agent's hello."""
    life.mute.add(0)
    job = life.submit(resources=["bench"])
    yield life.made(job)
    life.cancel(job)
    yield life.is_(job)


@scenario(minutes=1)
def cancel_while_running(life: Life) -> Steps:
    """A job is cancelled while its script runs; its agent hears of it and ends it."""
    job = life.submit_held("job", resources=["bench"])
    yield life.is_(job, State.RUNNING)
    life.cancel(job)
    yield life.is_(job)


@scenario(minutes=2)
def lost_worker(life: Life) -> Steps:
    """A worker is never heard of again after its hello; the next attempt runs on another."""
    life.silent.add(0)
    job = life.submit(resources=["bench"])
    yield life.is_(job)


@scenario(minutes=10)
def no_hello(life: Life) -> Steps:
    """A worker never says hello."""
    life.mute.add(0)
    job = life.submit()
    yield life.is_(job)


@scenario(minutes=1)
def release(life: Life) -> Steps:
    """A job sends an output, and its things are given back by makers that take their time."""
    life.writes_outputs = True
    job = life.submit_held("job", resources=["bench"])
    yield life.is_(job, State.RUNNING)
    for hand in life.site.drivers.hands.values():
        hand.slow = 1
    life.let_go(job)
    yield life.is_(job)


@scenario(minutes=2)
def slow_makers(life: Life) -> Steps:
    """A well and a factory that are not done at once."""
    for hand in life.site.drivers.hands.values():
        hand.slow = 1
    job = life.submit(resources=["bench"])
    yield life.is_(job)


@scenario()
def resize(life: Life) -> Steps:
    """A pool shrinks while all of it is held, and grows while somebody waits."""
    first, second = life.submit_held("first"), life.submit_held("second")
    yield life.is_(second, State.RUNNING)
    yield life.is_(first, State.RUNNING)
    life.resize("target/linux", 1)
    third = life.submit()
    yield life.waits(third)
    life.let_go(first)
    yield life.is_(first)
    life.resize("target/linux", 3)
    yield life.is_(third)
    life.let_go(second)
    yield life.is_(second)


@scenario()
def pause(life: Life) -> Steps:
    """A pool is paused while a job comes, and goes on."""
    life.pause("resource/bench", "pause")
    job = life.submit(resources=["bench"])
    yield life.waits(job)
    life.pause("resource/bench", "resume")
    yield life.is_(job)


@scenario()
def lease(life: Life) -> Steps:
    """A lease without a job is renewed and released; a job and another lease wait for what it has."""
    first = life.lease("licence", "bench")
    yield life.is_(first, State.RUNNING)
    life.renew(first, 7200)
    job = life.submit(resources=["bench"])
    yield life.waits(job)
    second = life.lease("bench")
    yield life.waits(second)
    life.give_back(first)
    yield life.is_(job)
    yield life.is_(second, State.RUNNING)
    life.give_back(second)
    yield life.is_(second)


@scenario(minutes=2)
def forgotten_lease(life: Life) -> Steps:
    """Nobody releases a lease: it ends by itself, and what it had goes to who waits."""
    first = life.lease("bench", seconds=90)
    yield life.is_(first, State.RUNNING)
    second = life.lease("bench")
    yield life.is_(second, State.RUNNING)
    life.give_back(second)
    yield life.is_(second)


@scenario()
def choice(life: Life) -> Steps:
    """A job has a part of a rig, and another waits for all of it, while a third gets the other rig; then the site says
    that each rig serves one lease more.
    """
    life.configure(LABELLED)
    beside = life.submit_held("beside", resources={"rig": {"thing": "rig-2"}})
    yield life.is_(beside, State.RUNNING)
    alone = life.submit_held("alone", resources={"rig": {"labels": "rack == 2", "exclusive": True}})
    yield life.waits(alone)
    other = life.submit_held("other", resources={"rig": {"labels": "rack != 2"}})
    yield life.is_(other, State.RUNNING)
    life.let_go(other)
    yield life.is_(other)
    life.configure(LABELLED.replace("leases = 2", "leases = 3"))
    life.let_go(beside)
    yield life.is_(alone, State.RUNNING)
    life.let_go(alone)
    yield life.is_(alone)


@scenario(minutes=1)
def stop(life: Life) -> Steps:
    """The site is paused while a job runs and another comes; then the factory is drained, which ends no job."""
    first = life.submit_held("first")
    yield life.is_(first, State.RUNNING)
    life.stop("site", "pause")
    second = life.submit_held("second", resources=["bench"])
    yield life.waits(second)
    life.let_go(first)
    yield life.is_(first)
    life.stop("site", "resume")
    yield life.is_(second, State.RUNNING)
    life.stop("factories/hand", "drain")
    life.let_go(second)
    yield life.is_(second)
    life.stop("factories/hand", "enable")


@scenario(minutes=1)
def queue_deadline(life: Life) -> Steps:
    """A job waits longer than it may."""
    life.configure(SITE + "[limits]\nqueue = 60\n")
    life.pause("resource/bench", "pause")
    job = life.submit(resources=["bench"])
    yield life.is_(job)


@scenario()
def abort(life: Life) -> Steps:
    """A flow is stopped from outside while it waits for its worker's hello: afterwards it is over (decision 0047)."""
    life.mute.add(0)
    job = life.submit(resources=["bench"])
    yield life.made(job)
    life.abort(job)
    yield life.is_(job)


@scenario()
def configure(life: Life) -> Steps:
    """A new site with another pool is applied while a job runs on the old one."""
    job = life.submit_held("job")
    yield life.is_(job, State.RUNNING)
    life.configure(SITE.replace("licence", "seat"))
    second = life.submit(resources=["seat"])
    yield life.is_(second)
    life.let_go(job)
    yield life.is_(job)


@scenario()
def hand_over_a_quota(life: Life) -> Steps:
    """A job has its slot free and waits for an amount that another uses."""
    first = life.submit_held("first", target="big")
    yield life.is_(first, State.RUNNING)
    second = life.submit(target="big")
    yield life.waits(second)
    life.let_go(first)
    yield life.is_(second)


@scenario(minutes=8)
def overrun(life: Life) -> Steps:
    """A script runs longer than it may, and its agent does nothing about it; so does the next attempt's."""
    job = life.submit_held("job", timeout=60)
    yield life.is_(job)


@scenario()
def quarantine(life: Life) -> Steps:
    """A machine is broken: its job goes on with another, and an operator lets it out when that was mended."""
    life.broken.add(0)
    job = life.submit(resources=["bench"])
    yield life.is_(job)
    yield lambda: bool(life.apart())
    for unit in life.apart():
        life.release(unit)
    yield life.empty
