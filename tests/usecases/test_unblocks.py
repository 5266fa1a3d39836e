"""What `why` names as unblocking a job is what unblocks it: done in that order, and not before the last of it."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.domain.jobs.jobs import Result, State
from penstock.domain.pools.forecast import Action, Unblock
from penstock.domain.pools.pools import LeaseState, Pool, pool_key
from penstock.domain.site.site import Shape
from penstock.domain.users.users import User
from penstock.testing.site import site_toml
from penstock.testing.twin import START, Twin
from penstock.usecases.jobs import cancel, flow, jobs
from penstock.usecases.site import apply
from tests.usecases.steps import finish, hello, job_of, submit

SITE = site_toml(
    targets={
        "small": {"limit": 3, "uses": {"vcpus": 2}},
        "big": {"limit": 2, "uses": {"vcpus": 6}},
        "wide": {"limit": 40},
    },
    quotas={"vcpus": 8},
    wells={"locks": "lock"},
    resources={"bench": {"well": "locks", "names": ["bench-1", "bench-2"]}, "licence": {"well": "locks", "limit": 3}},
)
ROOT = User(name="root", privileges=("admin",), created=START, version=1)
TWO = {"x": {"type": "licence"}, "y": {"type": "licence"}}
WANTS: dict[str, list[dict[str, Any]]] = {
    "workers": [{"target": "small"}, {"target": "big"}],
    "resources": [
        {"target": "wide", "resources": ["bench"]},
        {"target": "wide", "resources": ["licence"]},
        {"target": "wide", "resources": TWO},
    ],
}
LIMITS = {"target/small": 3, "target/big": 2, "quota/vcpus": 8, "resource/licence": 3, "resource/bench": 2}
SETTINGS = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def site() -> Twin:
    twin = Twin()
    apply.apply(twin.on, "root", SITE, "site.toml")
    twin.run()
    return twin


def lower(twin: Twin, pool: str, limit: int) -> None:
    was = twin.store.get(pool_key(pool), Pool)
    assert was
    names = was.names[:limit] if was.names else None
    apply.set_pool(twin.on, pool, Shape(limit, names, was.is_amount))
    twin.run()


def make_so(twin: Twin, act: Unblock) -> None:
    """Do exactly what is named."""
    if act.way is Action.RESUME:
        apply.pause(twin.on, act.pool, paused=False)
    elif act.way is Action.RAISE and act.is_named:
        names = tuple(f"bench-{number}" for number in range(1, act.limit + 1))
        apply.set_pool(twin.on, act.pool, Shape(act.limit, names))
    elif act.way is Action.RAISE:
        apply.resize(twin.on, act.pool, act.limit)
    elif act.way is Action.GIVE_BACK:
        end(twin, act.job)
    elif act.way is Action.HELLO:
        hello(twin, act.job)
    twin.run()


def end(twin: Twin, job: str) -> None:
    if job_of(twin, job).state is State.RUNNING:
        finish(twin, job, Result.SUCCEEDED)
    else:
        cancel.cancel(twin.on, ROOT, job)


def waits(twin: Twin, job: str) -> bool:
    held = flow.leases_of(twin.on, job_of(twin, job))
    return any(lease.state is LeaseState.WAITING for lease in held)


@SETTINGS
@given(data=st.data())
def test_what_is_named_unblocks_the_job(data: st.DataObject) -> None:
    twin = site()
    wants = st.sampled_from(WANTS[data.draw(st.sampled_from(sorted(WANTS)))])
    made = []
    for _ in range(data.draw(st.integers(3, 12))):
        made.append(submit(twin, ROOT, priority=data.draw(st.integers(-1, 1)), **data.draw(wants)))
        if data.draw(st.booleans()):
            twin.run()
        if (
            data.draw(st.integers(0, 3)) == 0
            and job_of(twin, made[-1]).state is State.ACQUIRING
            and not waits(twin, made[-1])
        ):
            twin.run()
            hello(twin, made[-1])
        twin.pass_time(data.draw(st.integers(0, 600)))
        if data.draw(st.integers(0, 4)) == 0:
            end(twin, made.pop(0))
            twin.run()
    twin.run()
    for pool in data.draw(st.lists(st.sampled_from(sorted(LIMITS)), max_size=2, unique=True)):
        lower(twin, pool, data.draw(st.integers(0, LIMITS[pool])))
    for pool in data.draw(st.lists(st.sampled_from(sorted(LIMITS)), max_size=1)):
        apply.pause(twin.on, pool, paused=True)
    blocked = [job for job in made if waits(twin, job)]
    if not blocked:
        return
    job = data.draw(st.sampled_from(blocked))
    acts = jobs.explain(twin.on, job_of(twin, job)).unblocks
    assert acts
    for act in acts:
        assert waits(twin, job), (act, acts)
        make_so(twin, act)
    assert not waits(twin, job), acts
