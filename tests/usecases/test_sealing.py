"""What a well says of a resource: sealed in its row, and for its lease alone. [SEC-1]"""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.domain.site.site import ResourceType, Site
from penstock.domain.units.units import Unit, UnitKind
from penstock.domain.users.users import User
from penstock.kernel.errors import Misconfigured
from penstock.ports import NotYet, Ready
from penstock.system import current_site
from penstock.testing.twin import Twin
from penstock.usecases.units import drivers
from penstock.usecases.workers import agents
from tests.rows import changed
from tests.usecases.steps import job_of, submit

KEY = "k" * 64


def leased(twin: Twin, ada: User) -> Unit:
    """A resource that is leased."""
    job = submit(twin, ada, resources=["bench"])
    twin.run()
    return next(
        row
        for row in twin.store.rows.values()
        if isinstance(row, Unit) and row.lease.job == job and row.is_a is UnitKind.RESOURCE
    )


def test_no_row_has_metadata_in_clear(twin: Twin, ada: User) -> None:
    unit = leased(twin, ada)
    assert drivers.unseal(twin.on, unit)["name"] == "bench-1"
    assert "bench-1" not in unit.access.sealed


def test_what_was_sealed_for_one_lease_is_not_opened_for_another(twin: Twin, ada: User) -> None:
    unit = leased(twin, ada)
    for other in (replace(unit, lease=replace(unit.lease, fence=unit.lease.fence + 1)), replace(unit, id="r-other")):
        with pytest.raises(ValueError, match="not sealed for this use"):
            drivers.unseal(twin.on, other)


def test_a_unit_of_which_nothing_was_said_has_no_metadata(twin: Twin, ada: User) -> None:
    assert drivers.unseal(twin.on, changed(leased(twin, ada), sealed="")) == {}


def test_a_well_may_say_so_much_and_no_more(twin: Twin, ada: User) -> None:
    unit = leased(twin, ada)
    room = drivers.METADATA_BYTES - len('{"a":""}')
    assert drivers.unseal(
        twin.on, replace(unit, access=replace(unit.access, sealed=drivers.seal(twin.on, unit, {"a": "x" * room})))
    )
    with pytest.raises(Misconfigured, match=f"{drivers.METADATA_BYTES + 1} bytes"):
        drivers.seal(twin.on, unit, {"a": "x" * (room + 1)})


def test_a_well_may_say_only_what_is_json(twin: Twin, ada: User) -> None:
    with pytest.raises(Misconfigured, match="not JSON"):
        drivers.seal(twin.on, leased(twin, ada), {"a": object()})


def test_the_secret_of_a_lease_is_the_same_for_each_call_and_another_for_each_lease(twin: Twin, ada: User) -> None:
    unit = leased(twin, ada)
    first = drivers.lease_secret(KEY, unit)
    assert first == drivers.lease_secret(KEY, replace(unit, version=9, step=replace(unit.step, tries=3)))
    others = [replace(unit, lease=replace(unit.lease, fence=unit.lease.fence + 1)), replace(unit, id="r-other")]
    assert len({first, drivers.lease_secret("l" * 64, unit), *(drivers.lease_secret(KEY, one) for one in others)}) == 4


def test_what_is_public_is_what_the_driver_says_and_the_site(twin: Twin, ada: User) -> None:
    unit = leased(twin, ada)
    site = Site(resources={"bench": ResourceType("bench", "w", 1, public=("host", "absent"))})
    done = Ready({"name": "b", "host": "h", "password": "p"}, public=["name"])
    sealed = replace(unit, access=replace(unit.access, sealed=drivers.seal_answer(twin.on, site, unit, done)))
    assert drivers.metadata_of(twin.on, sealed) == drivers.ResourceMetadata(dict(done.metadata), ["host", "name"])
    unknown = replace(unit, access=replace(unit.access, sealed=drivers.seal_answer(twin.on, Site(), unit, done)))
    assert drivers.metadata_of(twin.on, unknown).public == ["name"]


def test_workers_and_missing_metadata_store_no_secret(twin: Twin, ada: User) -> None:
    unit, site = leased(twin, ada), Site()
    assert drivers.seal_answer(twin.on, site, replace(unit, is_a=UnitKind.WORKER), Ready({"folder": "/x"})) == ""
    assert drivers.seal_answer(twin.on, site, unit, NotYet()) == ""


def test_metadata_sealed_without_a_public_list_has_no_public_keys(twin: Twin, ada: User) -> None:
    unit = leased(twin, ada)
    context = {"unit": unit.id, "fence": str(unit.lease.fence)}
    old = replace(unit, access=replace(unit.access, sealed=twin.on.vault.seal(b'{"name":"bench-1"}', context)))
    assert drivers.metadata_of(twin.on, old) == drivers.ResourceMetadata({"name": "bench-1"}, ())


def test_an_agent_is_told_what_is_public(twin: Twin, ada: User) -> None:
    unit = leased(twin, ada)
    job = job_of(twin, unit.lease.job)
    told = agents.assignment(twin.on, job, current_site(twin.on), "w", None, is_kept=False).resources
    assert told["bench"].public == ["name", "type"]
    assert told["bench"].metadata["name"] == "bench-1"
