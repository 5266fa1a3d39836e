"""A row that cannot be read costs only what it is of. It is damaged, or in the form of a release that was taken back.

Such a row is not taken for gone: what it is of is neither destroyed nor forgotten.
"""

from __future__ import annotations

import pytest

from penstock.domain import metrics
from penstock.domain.cooldowns import Budget, Cause, Obstacle, budget_key, cool_down_key, failure_key
from penstock.domain.jobs.jobs import Outcome, State, job_key
from penstock.domain.pools.pools import Lease, Pool, pool_key
from penstock.domain.pools.series import Hour
from penstock.domain.pools.stops import WHOLE_SITE, Stop, stop_key
from penstock.domain.units.units import Unit, UnitState
from penstock.domain.users.users import Token, User, token_listing, user_key
from penstock.kernel.errors import Newer, NoCapacity
from penstock.kernel.rows import Create, Key
from penstock.testing.site import site_toml
from penstock.testing.twin import Twin
from penstock.usecases import cooldowns
from penstock.usecases.pools import serving
from penstock.usecases.site import apply, stops
from penstock.usecases.users import lifecycle, tokens, users
from tests.usecases.exact import site
from tests.usecases.steps import finish, hello, job_of, submit, sweep, worker_of
from tests.usecases.strays import STRAY, compared, regular

TWO = {"linux": {"limit": 1}, "mac": {"limit": 1}}
MAC = pool_key("target/mac")
FACTORY = "factory/hand"


@pytest.fixture
def two() -> Twin:
    """A site with two targets, of which one's row cannot be read."""
    twin = site(site_toml(targets=TWO))
    twin.store.unreadable.add(MAC)
    return twin


def pool(twin: Twin, name: str) -> Pool:
    found = twin.store.get(pool_key(name), Pool)
    assert found
    return found


def damage(twin: Twin, key: Key) -> None:
    assert key in twin.store.rows
    twin.store.unreadable.add(key)


def test_the_sweep_serves_and_counts_the_other_pools(two: Twin, ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """QUEUE-1: a slot fell free, and the message that says so was lost."""
    first, second = (submit(two, ada, target="linux") for _ in range(2))
    two.run()
    hello(two, first)
    with monkeypatch.context() as patch:
        patch.setattr(two.queues, "serve", lambda *_: None)
        finish(two, first)
    assert job_of(two, second).state is State.ACQUIRING
    for _ in range(3):
        sweep(two, 1800)
    assert worker_of(two, second).lease.pool == "target/linux"
    assert {row.pool for row in two.store.rows.values() if isinstance(row, Hour)} == {"target/linux"}


def test_a_site_is_applied_to_the_other_pools_and_says_to_which_not(two: Twin) -> None:
    text = site_toml(targets={"linux": {"limit": 2}, "mac": {"limit": 2}, "new": {"limit": 1}})
    unread = "pool target/mac: its row cannot be read; it follows once it can be"
    assert unread in apply.apply(two.on, "root", text, "site.toml")
    assert (pool(two, "target/linux").limit, pool(two, "target/new").limit) == (2, 1)
    assert apply.go_on(two.on)
    assert sum(two.metrics.of(metrics.FAILED_NUDGES)) == 0, "that was told already"
    sweep(two, 61)
    two.store.unreadable.clear()
    assert pool(two, "target/mac").limit == 1
    sweep(two, 1800)
    assert pool(two, "target/mac").limit == 2


def test_a_stop_reaches_the_other_pools_and_that_one_when_it_can_be_read(two: Twin) -> None:
    """Otherwise it would grant in a stopped site as soon as the newer release is there again."""
    stops.stop(two.on, "root", WHOLE_SITE, "a fire")
    assert pool(two, "target/linux").is_paused
    for _ in range(60):
        sweep(two, 60)
    stop = two.store.get(stop_key(WHOLE_SITE), Stop)
    assert stop
    assert stop.due
    two.store.unreadable.clear()
    for _ in range(60):
        sweep(two, 60)
    assert pool(two, "target/mac").is_paused
    done = two.store.get(stop_key(WHOLE_SITE), Stop)
    assert done
    assert done.due is None


def test_units_are_made_whatever_is_remembered(twin: Twin, ada: User) -> None:
    """Of a cool-down, of a count of failures, and of how many calls were made."""
    limited = site_toml(factories={"hand": {"driver": "hand", "rate": 1}}, targets={"default": {"limit": 1}})
    apply.apply(twin.on, "root", limited, "site.toml")
    cooldowns.start_for(twin.on, FACTORY, Obstacle("type/default", Cause.CAPACITY, "none left"), "w-1")
    twin.store.commit([Create(Budget(maker=FACTORY, tokens=0, at=twin.world.now()))])
    damage(twin, cool_down_key(FACTORY, "type/default"))
    damage(twin, budget_key(FACTORY))
    assert cooldowns.cooldowns_of(twin.on, FACTORY) == []
    job = submit(twin, ada)
    twin.run()
    assert worker_of(twin, job).id in twin.drivers.hand.made


def test_what_is_refused_again_is_tried_again(twin: Twin, ada: User) -> None:
    """What it met cannot be remembered, and the unit comes back after a pause of its own."""
    create, says = twin.drivers.hand.create, [NoCapacity("none left"), NoCapacity("none left")]
    twin.drivers.hand.create = lambda order: create(order) if not says else _raise(says.pop())  # type: ignore[method-assign]
    job = submit(twin, ada)
    twin.run()
    unit = worker_of(twin, job)
    damage(twin, cool_down_key(FACTORY, f"type/{unit.type}"))
    damage(twin, failure_key(FACTORY, "NoCapacity"))
    assert cooldowns.failures(twin.on, FACTORY) == []
    for _ in range(10):
        sweep(twin, 60)
    assert not says
    assert unit.id in twin.drivers.hand.made


def _raise(error: Exception) -> None:
    raise error


def test_what_a_unit_that_cannot_be_read_has_outside_is_not_destroyed(twin: Twin, ada: User) -> None:
    """UNIT-1: it is no stray. And what else its maker lists is compared as ever."""
    job = submit(twin, ada)
    twin.run()
    hello(twin, job)
    unit = worker_of(twin, job)
    damage(twin, unit.key)
    regular(twin, 11)
    twin.drivers.hand.create(STRAY)
    assert regular(twin, 40) != [], "the stray"
    assert list(twin.drivers.hand.made) == [unit.id]
    assert not compared(twin).strays
    twin.store.unreadable.clear()
    regular(twin, 40)
    assert not twin.drivers.hand.made, "its agent has been silent, which its row tells again"
    row = twin.store.get(unit.key, Unit)
    assert row
    assert row.state is UnitState.GONE


@pytest.mark.parametrize("damaged", [1, 2])
def test_a_claim_whose_leases_cannot_be_read_keeps_its_place(twin: Twin, ada: User, damaged: int) -> None:
    """SLOT-2, QUEUE-1: it is neither dropped, nor granted a part of its step."""
    benches = {"bench": {"well": "locks", "limit": 2}}
    text = site_toml(wells={"locks": "lock"}, targets={"default": {"limit": 2}}, resources=benches)
    apply.apply(twin.on, "root", text, "site.toml")
    twin.run()
    first = submit(twin, ada, resources=["bench"])
    twin.run()
    hello(twin, first)
    waiting = submit(twin, ada, resources={"both": {"type": "bench", "count": 2}})
    twin.run()
    leases = sorted(row.key for row in twin.store.rows.values() if isinstance(row, Lease) and row.job == waiting)
    for key in leases[:damaged]:
        damage(twin, key)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(twin.queues, "serve", lambda *_: None)
        finish(twin, first)
    with pytest.raises(Newer):
        serving.serve(twin.on, ["resource/bench"])
    twin.store.unreadable.clear()
    for _ in range(20):
        sweep(twin, 60)
    assert worker_of(twin, waiting)


def test_a_unit_that_cannot_be_read_is_not_taken_for_lost(twin: Twin, ada: User) -> None:
    """Nor is it when its maker does not list it meanwhile."""
    regular(twin, 11)
    job = submit(twin, ada)
    twin.run()
    regular(twin, 4)
    unit = worker_of(twin, job)
    damage(twin, unit.key)
    twin.drivers.hand.list = lambda: []  # type: ignore[method-assign]
    assert regular(twin, 20) == []
    assert job_of(twin, job).attempt == 1
    assert not job_of(twin, job).is_settled


def test_a_token_that_cannot_be_read_is_not_forgotten_when_its_user_is_renamed(twin: Twin) -> None:
    """SEC-2: otherwise it stays good under a name whose tokens nobody lists."""
    users.create(twin.on, "eve", [])
    tokens.mint_first(twin.on, "eve", "never", "")
    (token,) = twin.store.listed(token_listing("eve"), Token)
    damage(twin, token.key)
    with pytest.raises(Newer):
        lifecycle.rename(twin.on, "root", "eve", "eva")
    for _ in range(60):
        sweep(twin, 60)
    twin.store.unreadable.clear()
    for _ in range(60):
        sweep(twin, 60)
    assert [row.id for row in twin.store.listed(token_listing("eva"), Token)] == [token.id]


def test_a_job_that_cannot_be_read_is_not_forgotten_when_its_user_is_disabled(twin: Twin) -> None:
    """SEC-2: otherwise it would go on once it can be read."""
    eve, root = users.create(twin.on, "eve", []), users.create(twin.on, "root", ["admin"])
    job = submit(twin, eve)
    twin.run()
    damage(twin, job_key(job))
    with pytest.raises(Newer):
        lifecycle.disable(twin.on, root, "eve", ends_live=True)
    twin.pass_time(3600)
    with pytest.raises(Newer):
        lifecycle.advance(twin.on, user_key("eve"))
    twin.store.unreadable.clear()
    for _ in range(10):
        sweep(twin, 60)
    assert job_of(twin, job).end.outcome is Outcome.CANCELLED
