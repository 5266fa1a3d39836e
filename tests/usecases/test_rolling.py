"""Warm units are replaced, a part at a time, when the settings change by which they are made."""

from __future__ import annotations

import pytest

from penstock.domain.pools.pools import Pool
from penstock.domain.units import reuse
from penstock.domain.units.units import UnitState
from penstock.domain.users.users import User
from penstock.testing.site import site_toml
from penstock.testing.twin import Twin
from penstock.usecases.jobs.flow import LeaseGone
from penstock.usecases.site import apply
from penstock.usecases.units import prewarm
from tests.usecases.prewarmed import a_twin, change_pool, existing, pool_of
from tests.usecases.steps import submit, sweep
from tests.usecases.warm import Agent, unit_of, worker_at_rest


def text(image: str, least: int = 4, limit: int = 8) -> str:
    return site_toml(
        factories={"hand": {"driver": "hand", "image": image}},
        targets={
            "linux": {"limit": limit, "warm": {"min": least, "max": limit, "idle": "1h", "life": "1h"}},
            "default": "linux",
        },
    )


def roll(twin: Twin, image: str, **more: int) -> list[str]:
    changed = apply.apply(twin.on, "admin", text(image, **more), "site.toml")
    twin.run()
    return changed


def idle(twin: Twin) -> list[str]:
    return [unit.id for unit in existing(twin) if unit.state is UnitState.IDLE]


def come(twin: Twin) -> None:
    """The agents of all new workers say hello, and those of all others poll."""
    for unit in existing(twin):
        if unit.state is UnitState.IDLE:
            Agent(twin, unit.id).hello()


@pytest.fixture
def four() -> Twin:
    twin = a_twin(text("a"))
    sweep(twin)
    come(twin)
    return twin


def test_they_are_replaced_one_by_one_and_never_all_gone(four: Twin) -> None:
    before, left = set(idle(four)), [4]
    assert len(before) == 4
    changed = roll(four, "b")
    assert changed[-1] == "pool target/linux: what it keeps is replaced, since it is made otherwise now"
    while left[-1] and len(left) < 20:
        sweep(four)
        left.append(len(before & set(idle(four))))
        come(four)
    assert left == [4, 3, 2, 1, 0]
    assert len(idle(four)) == 4
    assert pool_of(four).renewed


def test_what_cannot_be_made_any_more_costs_a_part_only(four: Twin) -> None:
    """A new image does not boot: the units of the old one stay, but for the first."""
    before = set(idle(four))
    roll(four, "broken")
    for _ in range(10):
        sweep(four)
        for id in before & set(idle(four)):
            Agent(four, id).hello()
    assert len(before & set(idle(four))) == 3


def test_the_same_settings_replace_nothing(four: Twin) -> None:
    before = idle(four)
    assert not any("replaced" in each for each in roll(four, "a", limit=9))
    for _ in range(5):
        sweep(four)
        come(four)
    assert idle(four) == before
    assert pool_of(four).renewed is None


def test_a_worker_with_a_job_is_not_kept_after_it(ada: User) -> None:
    twin = a_twin(text("a", least=0))
    agent = worker_at_rest(twin, ada)
    job = submit(twin, ada)
    twin.run()
    assert agent.hello().job == job  # type: ignore[union-attr]
    roll(twin, "b", least=0)
    agent.finish(job)
    with pytest.raises(LeaseGone):
        agent.hello()
    assert unit_of(twin, agent.worker).state is not UnitState.IDLE
    assert any(reuse.OUTDATED in entry.what for entry in unit_of(twin, agent.worker).journal.entries)


def test_what_nothing_is_made_in_place_of_goes_at_once(ada: User) -> None:
    twin = a_twin(text("a", least=0))
    agent: Agent = worker_at_rest(twin, ada)
    roll(twin, "b", least=0)
    sweep(twin)
    assert unit_of(twin, agent.worker).state is not UnitState.IDLE


def test_a_pool_of_a_release_before_replaces_nothing(four: Twin) -> None:
    change_pool(four, spec="")
    before = idle(four)
    assert "replaced" not in " ".join(roll(four, "b"))
    row: Pool = pool_of(four)
    assert (bool(row.spec), row.renewed) == (True, None)
    sweep(four)
    assert idle(four) == before


def test_what_was_ordered_before_and_came_after_is_not_kept_for_longer() -> None:
    twin = a_twin(text("a", least=1).replace('idle = "1h", life = "1h"', 'idle = "10m", life = "2h"'))
    sweep(twin)
    (unit,) = existing(twin)
    twin.pass_time(5)
    come(twin)
    change_pool(twin, renewed=unit.creation.born)
    for _ in range(24):
        sweep(twin, 40)
        come(twin)
    (left,) = idle(twin)
    assert left != unit.id


def test_no_pool_is_looked_at_for_longer_than_its_units_live(four: Twin) -> None:
    before = idle(four)
    change_pool(four, renewed=four.world.now())
    four.pass_time(3600)
    prewarm.replace_outdated(four.on, pool_of(four))
    assert idle(four) == before


def test_a_pool_that_keeps_nothing_is_not_told_of() -> None:
    plain = site_toml(factories={"hand": {"driver": "hand", "image": "a"}}, targets={"linux": {"limit": 1}})
    twin = a_twin(plain)
    changed = apply.apply(twin.on, "admin", plain.replace('image = "a"', 'image = "b"'), "site.toml")
    assert not any("replaced" in each for each in changed)
