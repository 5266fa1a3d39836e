"""Which hosts that are away come back for who waits for them, and which only when somebody repairs them. [QUEUE-2]"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from penstock.domain.pools.pools import Pool, Slot, SlotState, pool_key
from penstock.domain.units import power
from penstock.domain.units.hosts import Host, host_key
from penstock.domain.units.power import PowerOrder, power_key
from penstock.testing.twin import START, Twin
from penstock.usecases.pools import aside
from tests.controllers.benches import FaultyBenches
from tests.controllers.switched import BOOT, site

NAME = "bench-7"
MINUTE = timedelta(minutes=1)
ON = power.switch_on(None, NAME, START, timedelta(seconds=BOOT))
HERE = Host(name=NAME, pool="target/lab", session="s", since=START)


@pytest.fixture
def benches() -> Iterator[FaultyBenches]:
    made = FaultyBenches(NAME)
    yield made
    made.end()


def lost(twin: Twin) -> list[str]:
    pool = twin.store.get(pool_key("target/lab"), Pool)
    assert pool
    found = aside.read(twin.on, pool)
    assert all(slot.state is SlotState.AWAY for slot in found)
    return [slot.name for slot in found]


@pytest.mark.parametrize(
    ("host", "is_lost"),
    [
        (None, True),  # it never came
        (HERE, False),  # it serves another target, or its slot follows in a moment
        (replace(HERE, away=START), True),
        (replace(HERE, away=START + MINUTE), False),  # it may be about to come back
    ],
)
def test_a_host_is_lost_when_it_is_away_for_longer_than_one_takes_to_boot(
    benches: FaultyBenches, host: Host | None, is_lost: bool
) -> None:
    twin = site(benches, said=False, names=[NAME])
    twin.pass_time(BOOT - (twin.world.now() - START).total_seconds())
    if host:
        twin.store.rows[host_key(NAME)] = host
    assert lost(twin) == [NAME] * is_lost


def test_a_host_that_the_site_no_longer_has_is_lost(benches: FaultyBenches) -> None:
    twin = site(benches, names=[NAME])
    gone = Slot(pool="target/lab", name="bench-0", state=SlotState.AWAY)
    twin.store.rows[gone.key] = gone
    assert lost(twin) == ["bench-0"]


@pytest.mark.parametrize(
    ("order", "is_lost"),
    [
        (None, False),  # it is switched on as soon as it is all that somebody lacks
        (ON, False),
        (power.switch_off(ON, START), False),
        (replace(ON, missed=1, due=None), True),
        (replace(ON, again=START + 2 * timedelta(seconds=BOOT)), True),
        (replace(ON, again=START), False),
    ],
)
def test_a_host_that_a_controller_switches_on_is_lost_once_it_did_not_come(
    benches: FaultyBenches, order: PowerOrder | None, is_lost: bool
) -> None:
    twin = site(benches, names=[NAME])
    if order:
        twin.store.rows[power_key(NAME)] = order
    assert lost(twin) == [NAME] * is_lost
