"""The databases and roles on a server, for the account diff. UNIT-1"""

from __future__ import annotations

import pytest

from penstock.drivers.wells.postgres.names import Names, quoted
from penstock.drivers.wells.postgres.well import PostgresWell
from tests.postgres.cluster import Cluster
from tests.postgres.helpers import HERE, NAMES, ONE, TWO, environment, gone, made, well

pytestmark = pytest.mark.xdist_group("postgres")


def test_a_database_and_a_role_are_things_also_of_wells_that_are_gone(cluster: Cluster) -> None:
    driver = well(cluster)
    older = PostgresWell(cluster.settings(), environment(well="older"))
    elsewhere = PostgresWell(cluster.settings(), environment(site="Penstock.us-east-1"))
    made(driver)
    made(older, TWO)
    made(elsewhere, TWO)
    mine, theirs = NAMES.of(ONE), Names(HERE["PENSTOCK_SITE"], "older").of(TWO)
    found = {(each.kind, each.id, each.unit, each.maker) for each in driver.things()}
    assert found == {(kind, mine, ONE, "databases") for kind in ("database", "role")} | {
        (kind, theirs, TWO, "older") for kind in ("database", "role")
    }
    gone(driver)
    assert {each.unit for each in driver.things()} == {TWO}
    gone(older, TWO)
    gone(elsewhere, TWO)


def test_half_of_a_unit_is_a_thing_and_what_is_somebody_elses_is_none(cluster: Cluster) -> None:
    driver = well(cluster)
    name, other = NAMES.of(ONE), NAMES.of(TWO)
    with driver._server().session() as admin:
        admin.run(f"CREATE ROLE {quoted(name)}")
        admin.run(f"CREATE ROLE {quoted(other)}; COMMENT ON ROLE {quoted(other)} IS 'mine'")
        try:
            assert [(each.kind, each.id, each.unit, each.maker) for each in driver.things()] == [
                ("role", name, ONE, "")
            ]
        finally:
            admin.run(f"DROP ROLE {quoted(name)}; DROP ROLE {quoted(other)}")
