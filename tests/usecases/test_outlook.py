"""What jobs have before them, over the real use cases: estimates, plans, and the graph of the site."""

from __future__ import annotations

from datetime import timedelta

import pytest

from penstock.domain.commands import SubmitJob
from penstock.domain.jobs import plans
from penstock.domain.jobs.jobs import State
from penstock.domain.pools import graph
from penstock.domain.pools.graph import Edge, EdgeKind
from penstock.domain.pools.pools import HoldTimes, pool_key
from penstock.domain.users.users import User
from penstock.kernel.errors import Refused
from penstock.testing.twin import Twin
from penstock.usecases.jobs import jobs
from penstock.usecases.jobs import submit as jobs_submit
from penstock.usecases.pools import forecast
from penstock.usecases.site import apply
from tests.usecases.races import before_the_next_read
from tests.usecases.steps import SCRIPT, finish, hello, job_of, run_to_end, submit, told


def plan(twin: Twin, user: User, **ask: object) -> plans.Plan:
    return jobs_submit.plan(twin.on, user, SubmitJob(SCRIPT, **ask))  # type: ignore[arg-type]


def hold(twin: Twin, user: User, seconds: float) -> None:
    """Somebody has the bench for a while."""
    job = submit(twin, user, resources=["bench"])
    twin.run()
    hello(twin, job)
    twin.pass_time(seconds)
    finish(twin, job)


def test_the_start_is_expected_from_what_holders_did_before(twin: Twin, ada: User) -> None:
    for seconds in (300, 500):
        hold(twin, ada, seconds)
    row = twin.store.get(HoldTimes(pool="resource/bench").key, HoldTimes)
    assert row
    assert (row.holds, round(row.mean_hold)) == (2, 400)
    first, second = (submit(twin, ada, resources=["bench"]) for _ in range(2))
    twin.run()
    twin.pass_time(100)
    why = jobs.explain(twin.on, job_of(twin, second))
    assert why.expected_start
    expected = why.expected_start - twin.world.now()
    assert abs(expected - timedelta(seconds=300)) < timedelta(seconds=1)
    assert why.basis == "the last 2 holders of resource/bench kept it 7 min on average"
    assert why.next_steps == f"bench-1 is given back by {first}"


def test_boots_and_uses_are_measured(twin: Twin, ada: User) -> None:
    job = submit(twin, ada)
    twin.run()
    twin.pass_time(30)
    hello(twin, job)
    twin.pass_time(100)
    finish(twin, job)
    times = twin.store.get(HoldTimes(pool="target/linux").key, HoldTimes)
    assert times
    assert (times.holds, times.boots) == (1, 1)
    assert [round(each) for each in (times.mean_hold, times.mean_wait, times.mean_boot)] == [130, 30, 30]


def test_a_later_step_that_nobody_can_guess_leaves_the_start_open(twin: Twin, ada: User) -> None:
    hold(twin, ada, 300)
    submit(twin, ada, resources=["bench"])
    job = submit(twin, ada, resources=["bench"])
    twin.run()
    apply.pause(twin.on, "target/linux", paused=True)
    why = jobs.explain(twin.on, job_of(twin, job))
    assert (why.expected_start, len(why.unblocks)) == (None, 1)


def test_a_job_of_a_pool_that_is_gone_is_explained(twin: Twin, ada: User) -> None:
    submit(twin, ada, resources=["bench"])
    job = submit(twin, ada, resources=["bench"])
    twin.run()
    del twin.store.rows[pool_key("resource/bench")]
    assert jobs.explain(twin.on, job_of(twin, job)).summary


@pytest.mark.parametrize("resources", [[], ["bench"], ["bench", "licence"]])
def test_a_plan_comes_true(twin: Twin, ada: User, resources: list[str]) -> None:
    rows = dict(twin.store.rows)
    found = plan(twin, ada, resources=resources)
    assert (found.waits, found.seconds, found.target, found.target_resolved) == ((), 0.0, "default", "linux")
    assert [one.pool for step in found.steps for one in step] == [*(f"resource/{r}" for r in resources), "target/linux"]
    assert twin.store.rows == rows
    job = submit(twin, ada, resources=resources)
    run_to_end(twin, job)
    assert job_of(twin, job).state is State.SETTLED


def test_a_plan_tells_what_would_be_waited_for(twin: Twin, ada: User) -> None:
    hold(twin, ada, 240)
    holder = submit(twin, ada, resources=["bench"])
    urgent, slow = (submit(twin, ada, resources=["bench"], priority=priority) for priority in (5, -5))
    twin.run()
    found = plan(twin, ada, resources=["bench"], priority=1)
    (wait,) = found.waits
    assert (wait.pool, wait.position, [act.job for act in wait.unblocks]) == ("resource/bench", 2, [holder, urgent])
    assert found.seconds
    assert abs(found.seconds - 480) < 1
    assert found.sentences[-1].startswith("it could start in about 8 min")
    assert slow


def test_a_plan_is_refused_as_the_submit_would_be(twin: Twin, ada: User, root: User) -> None:
    for ask in ({"target": "lab"}, {"resources": ["nothing"]}, {"target": "nowhere"}):
        with pytest.raises(Refused) as planned:
            plan(twin, ada, **ask)
        with pytest.raises(Refused) as submitted:
            submit(twin, ada, **ask)
        assert planned.value.code == submitted.value.code
    apply.resize(twin.on, "target/lab", 0)
    assert plan(twin, root, target="lab").privileges == ("target.lab",)


def test_a_limit_that_was_lowered_since_is_told(twin: Twin, ada: User) -> None:
    apply.resize(twin.on, "target/linux", 0)
    twin.run()
    found = plan(twin, ada)
    assert found.seconds is None
    assert "too low a limit" in found.sentences[1]
    assert "raises the limit of target/linux to 1" in found.sentences[1]


def test_the_graph_is_of_the_whole_site(twin: Twin, ada: User) -> None:
    """QUEUE-3: nobody waits in a circle."""
    first, second = (submit(twin, ada, resources=["bench"]) for _ in range(2))
    twin.run()
    found = forecast.wait_graph(twin.on)
    assert {node.id for node in found.nodes} == {
        "resource/bench", "resource/licence", "target/linux", "target/lab", first, second,
    }  # fmt: skip
    assert set(found.edges) == {
        Edge("resource/bench", first, EdgeKind.HOLDS),
        Edge("target/linux", first, EdgeKind.HOLDS),
        Edge(second, "resource/bench", EdgeKind.WAITS),
    }
    assert (found.cycle, found.left_out) == ((), 0)


def test_a_cycle_of_claims_is_read_twice_before_it_is_reported(
    twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = [graph.Graph((), (), ("a", "b")), graph.Graph((), ())]
    monkeypatch.setattr(forecast, "_read_graph", lambda on: reads.pop(0))
    assert forecast.wait_graph(twin.on).cycle == ()


@pytest.mark.parametrize("prefix", ["free#", "held#"])
def test_a_forecast_ignores_claims_that_were_granted_meanwhile(twin: Twin, ada: User, prefix: str) -> None:
    """The slot is handed over after it was read that the job waits, and before it is read who has the slot."""
    first, second = (submit(twin, ada, resources=["bench"]) for _ in range(2))
    twin.run()
    hello(twin, first)
    waiting = job_of(twin, second)
    before_the_next_read(twin, prefix, lambda: finish(twin, first))
    found = jobs.explain(twin.on, waiting)
    assert (found.blocked_on, found.summary) == (None, "the job waits for bench to be made ready")
    assert jobs.explain(twin.on, job_of(twin, second)).waiting_for == "linux"


def test_a_log_does_not_tell_that_a_job_waits_for_itself(twin: Twin, ada: User) -> None:
    first = submit(twin, ada, resources=["bench"])
    twin.run()
    hello(twin, first)
    second = submit(twin, ada, resources=["bench"])
    before_the_next_read(twin, "held#", lambda: finish(twin, first))
    twin.run()
    assert any("resource/bench: got slot bench-1" in line for line in told(twin, second))
    assert not [line for line in told(twin, second) if "waits for bench" in line]
