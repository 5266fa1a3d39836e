"""What a site may say of a `postgres` well, and a job of its database."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.drivers import Registry
from penstock.drivers.wells.postgres import credentials, keys
from penstock.drivers.wells.postgres.keys import CA_BYTES
from penstock.drivers.wells.postgres.settings import Options, Settings
from penstock.drivers.wells.postgres.well import PostgresWell
from penstock.kernel.errors import Misconfigured, Unsatisfiable
from tests.postgres.helpers import HERE, SETTINGS

GOOD: list[dict[str, Any]] = [
    {},
    {"port": 6432, "database": "admin", "sslmode": "disable", "connections": 1},
    {"host": "::1", "extensions": ["uuid-ossp", "pgcrypto"], "reachable": ["rdsadmin", "*"]},
    {"statement_timeout": "10m", "idle_timeout": 5, "password": "env:PG_PASSWORD"},
    {"password": "file:/home/ada/password"},
]
BAD: list[tuple[dict[str, Any], str]] = [
    ({"host": "db internal"}, "is not a host"),
    ({"host": 7}, "wants a host"),
    ({"port": 0}, "must be from 1 to 65535"),
    ({"password": "hunter2"}, "not a reference to a secret"),
    ({"password": 7}, "wants a reference"),
    ({"password": "secretsmanager:theirs/postgres"}, "not a reference to a secret"),
    ({"password": "file:password"}, "not a reference to a secret"),
    ({"sslmode": "prefer"}, "none of verify-full, require, disable"),
    ({"ca": "no certificate"}, "is no certificate"),
    ({"ca": "-----BEGIN CERTIFICATE-----\n…\n-----END CERTIFICATE-----"}, "is no certificate"),
    ({"ca": 7}, "wants certificates as text"),
    ({"ca": "x" * (CA_BYTES + 1)}, "has more than"),
    ({"connections": 0}, "must be from 1"),
    ({"extensions": ['x"; DROP']}, "is not an extension"),
    ({"extensions": "pgcrypto"}, "wants a list"),
    ({"statement_timeout": 0}, "must be from 1 second"),
    ({"databse": "x"}, "did you mean `database`"),
]


@pytest.mark.parametrize("more", GOOD)
def test_settings_that_are_right(more: dict[str, Any]) -> None:
    assert keys.complaints({**SETTINGS, **more}) == []
    read = keys.read({**SETTINGS, **more})
    assert read.place == f"{read.host}:{read.port}"


@pytest.mark.parametrize(("more", "says"), BAD)
def test_settings_that_are_wrong(more: dict[str, Any], says: str) -> None:
    complaints = "\n".join(keys.complaints({**SETTINGS, **more}))
    assert says in complaints
    assert "hunter2" not in complaints
    with pytest.raises(Misconfigured):
        keys.read({**SETTINGS, **more})


def test_settings_that_are_missing() -> None:
    complaints = keys.complaints({})
    assert [each.partition(":")[0] for each in complaints] == [
        f"`postgres` has no `{name}`" for name in ("host", "user", "password")
    ]


def test_without_the_library_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "find_spec", lambda name: None)
    assert keys.complaints(SETTINGS) == [keys.MISSING]
    with pytest.raises(Misconfigured, match="pg8000"):
        keys.read(SETTINGS)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "::1"])
def test_tls_is_verified_but_for_this_machine(host: str) -> None:
    assert Settings("db.internal", "u", "p").tls == "verify-full"
    assert Settings(host, "u", "p").tls == "disable"
    assert Settings(host, "u", "p", sslmode="verify-full").tls == "verify-full"


def test_options() -> None:
    given = {"version": 16, "extensions": ["pgcrypto"], "connections": 3}
    assert Registry({}).objections("postgres", given) == []
    site = Settings("h", "u", "p", extensions=("citext", "pgcrypto"))
    assert keys.options(given, site) == Options(16, ("pgcrypto",), 3)
    for wrong, says in (
        ({"version": "16"}, "version"),
        ({"version": 0}, "must be from 1"),
        ({"connections": 0}, "must be from 1"),
        ({"extensions": ["A b"]}, "is not an extension"),
        ({"speed": 1}, "speed"),
    ):
        assert says in Registry({}).objections("postgres", wrong)[0]
        with pytest.raises(Unsatisfiable):
            keys.options(wrong, site)


def test_options_that_this_site_does_not_have() -> None:
    """Where its settings are told they are refused at submit; `create` knows them in any case."""
    site = {**SETTINGS, "extensions": ["citext"], "connections": 5}
    for asked, says in (
        ({"connections": 6}, "6 connections are too many: 5 at the most"),
        ({"extensions": ["citext", "hstore"]}, "the extension 'hstore' is not for jobs here; there is: citext"),
    ):
        assert PostgresWell.objections(asked, site, {}) == [says]
        assert PostgresWell.objections(asked) == []
        with pytest.raises(Unsatisfiable, match=says):
            keys.options(asked, keys.read(site))
    assert PostgresWell.objections({"connections": 5, "extensions": ["citext"]}, site, {}) == []
    assert "there is: none" in PostgresWell.objections({"extensions": ["citext"]}, SETTINGS, {})[0]


@pytest.mark.parametrize("missing", HERE)
def test_who_does_not_know_its_site_and_name_makes_nothing(missing: str) -> None:
    with pytest.raises(Misconfigured, match="must know its site"):
        PostgresWell(SETTINGS, {key: value for key, value in HERE.items() if key != missing})


def test_a_password_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "password").write_text(" it's long \n")
    (tmp_path / "empty").write_text("\n")
    resolve = credentials.resolver({"NAME": "value"})
    assert resolve(f"file:{tmp_path}/password") == " it's long "
    assert resolve("env:NAME") == "value"
    for name in ("empty", "missing"):
        with pytest.raises(Misconfigured, match=f"{name}"):
            resolve(f"file:{tmp_path}/{name}")


def test_it_keeps_no_units() -> None:
    assert not Registry({}).keeps("well", "postgres")
    assert not Registry({}).quarantines("well", "postgres")
