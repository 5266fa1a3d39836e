"""What a well says of a resource: sealed in its row, and for its lease alone. [SEC-1]"""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.domain.errors import Misconfigured
from penstock.domain.units import Unit, UnitKind
from penstock.domain.users import User
from penstock.usecases import sealing
from tests.twin.world import Twin
from tests.usecases.test_one_job import submit

KEY = "k" * 64


def leased(twin: Twin, ada: User) -> Unit:
    """A resource that is leased."""
    job = submit(twin, ada, resources=["bench"])
    twin.run()
    return next(
        row
        for row in twin.store.rows.values()
        if isinstance(row, Unit) and row.job == job and row.is_a is UnitKind.RESOURCE
    )


def test_no_row_has_metadata_in_clear(twin: Twin, ada: User) -> None:
    unit = leased(twin, ada)
    assert sealing.unseal(twin.on, unit)["name"] == "bench-1"
    assert "bench-1" not in unit.sealed


def test_what_was_sealed_for_one_lease_is_not_opened_for_another(twin: Twin, ada: User) -> None:
    unit = leased(twin, ada)
    for other in (replace(unit, fence=unit.fence + 1), replace(unit, id="r-other")):
        with pytest.raises(ValueError, match="not sealed as that"):
            sealing.unseal(twin.on, other)


def test_a_unit_of_which_nothing_was_said_has_no_metadata(twin: Twin, ada: User) -> None:
    assert sealing.unseal(twin.on, replace(leased(twin, ada), sealed="")) == {}


def test_a_well_may_say_so_much_and_no_more(twin: Twin, ada: User) -> None:
    unit = leased(twin, ada)
    room = sealing.MOST - len('{"a":""}')
    assert sealing.unseal(twin.on, replace(unit, sealed=sealing.seal(twin.on, unit, {"a": "x" * room})))
    with pytest.raises(Misconfigured, match=f"{sealing.MOST + 1} bytes"):
        sealing.seal(twin.on, unit, {"a": "x" * (room + 1)})


def test_a_well_may_say_only_what_is_json(twin: Twin, ada: User) -> None:
    with pytest.raises(Misconfigured, match="not JSON"):
        sealing.seal(twin.on, leased(twin, ada), {"a": object()})


def test_the_secret_of_a_lease_is_the_same_for_each_call_and_another_for_each_lease(twin: Twin, ada: User) -> None:
    unit = leased(twin, ada)
    first = sealing.lease_secret(KEY, unit)
    assert first == sealing.lease_secret(KEY, replace(unit, version=9, tries=3))
    others = [replace(unit, fence=unit.fence + 1), replace(unit, id="r-other")]
    assert len({first, sealing.lease_secret("l" * 64, unit), *(sealing.lease_secret(KEY, one) for one in others)}) == 4
