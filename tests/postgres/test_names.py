"""Names of databases and roles, and passwords."""

from __future__ import annotations

import pytest

from penstock.drivers.wells.postgres import passwords
from penstock.drivers.wells.postgres.names import LONGEST, Names, quoted, text
from penstock.kernel import rows
from penstock.kernel.errors import Misconfigured
from tests.postgres.helpers import NAMES, NOW, ONE


@pytest.mark.parametrize("unit", [ONE, "r-" + rows.ulid(NOW, b"0123456789"), "w-1234-1", "x"])
def test_a_name_is_short_and_leads_back(unit: str) -> None:
    name = NAMES.of(unit)
    assert len(name.encode()) <= LONGEST
    assert name == name.lower()
    assert NAMES.unit(name) == unit


@pytest.mark.parametrize("unit", ["", "R-upper", "r_1", 'r-"1', "r-" + "x" * 40, "r-é"])
def test_an_id_that_no_name_can_have(unit: str) -> None:
    with pytest.raises(Misconfigured):
        NAMES.of(unit)


def test_other_names_are_nobodys() -> None:
    name = NAMES.of(ONE)
    for other in (f"x{name}", name.replace("_r-", "_R-"), NAMES.start, f"{NAMES.start}a b", "postgres"):
        assert NAMES.unit(other) is None
    for others in (Names("Other", NAMES.well), Names(NAMES.site, "other")):
        assert others.of(ONE) != name
        assert others.unit(name) is None
        assert others.tag(ONE) != NAMES.tag(ONE)


def test_quotes() -> None:
    assert quoted('a"b') == '"a""b"'
    assert text("it's \\") == "'it''s \\'"


def test_passwords_are_of_a_key_and_the_server_learns_none() -> None:
    assert passwords.password("a") == passwords.password("a") != passwords.password("b")
    assert len(passwords.password("a")) == 64
    assert passwords.verifier("a") == passwords.verifier("a") != passwords.verifier("b")
    assert passwords.password("a") not in passwords.verifier("a")
    assert "a" * 64 not in passwords.password("a" * 64)
