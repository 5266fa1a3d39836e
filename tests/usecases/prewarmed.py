"""A site with workers that are made before jobs need them."""

from __future__ import annotations

from penstock.domain.pools.pools import Pool, pool_key
from penstock.domain.units.units import Unit, UnitState
from penstock.kernel.rows import Replace
from penstock.testing.site import site_toml
from penstock.testing.twin import Twin
from penstock.usecases.site import apply
from tests.rows import changed
from tests.usecases.warm import Agent

SITE = site_toml(
    targets={
        "linux": {"limit": 3, "uses": {"vcpus": 4}, "warm": {"min": 1, "max": 2, "idle": "10m", "life": "1h"}},
        "other": {"limit": 2, "uses": {"vcpus": 4}},
    },
    quotas={"vcpus": 8},
    wells={"spring": "hand"},
    resources={"db": {"well": "spring", "limit": 2, "settings": {"zone": "a"}}},
)


DB = SITE.replace("uses = { vcpus = 4 }\nwarm", "#").replace("[resources.db]", "[resources.db]\nwarm = { min = 1 }")


NONE = SITE.replace("min = 1", "min = 0")
MADE = SITE.replace("min = 1,", 'min = 1, serves = "site",')
ALIKE = NONE.replace("min = 0,", 'serves = "site",')


LINUX = "target/linux"


def a_twin(site: str = SITE) -> Twin:
    made = Twin()
    apply.apply(made.on, "admin", site, "site.toml")
    made.run()
    apply.go_on(made.on)
    return made


def existing(twin: Twin) -> list[Unit]:
    rows = [row for row in twin.store.rows.values() if isinstance(row, Unit) and row.state is not UnitState.GONE]
    return sorted(rows, key=lambda unit: unit.id)


def only(twin: Twin) -> Unit:
    (unit,) = existing(twin)
    return unit


def pool_of(twin: Twin, name: str = LINUX) -> Pool:
    found = twin.store.get(pool_key(name), Pool)
    assert found
    return found


def change_pool(twin: Twin, name: str = LINUX, **given: object) -> None:
    row = pool_of(twin, name)
    assert twin.store.commit([Replace(row, changed(row, **given))])  # type: ignore[arg-type]


def at_rest(twin: Twin) -> Agent:
    """A worker that was made ahead of need, and whose agent has said hello."""
    agent = Agent(twin, only(twin).id)
    assert agent.hello().idle
    return agent
