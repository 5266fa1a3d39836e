"""What a site may say of a `postgres` well, and a job of its database."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.drivers import Registry
from penstock.drivers.wells.postgres import passwords
from penstock.drivers.wells.postgres import settings as postgres_settings
from penstock.drivers.wells.postgres.settings import CA_BYTES, Options, Settings
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
    ({"sslmode": "prefer"}, "not one of verify-full, require, disable"),
    ({"ca": "no certificate"}, "is not a certificate"),
    ({"ca": "-----BEGIN CERTIFICATE-----\n…\n-----END CERTIFICATE-----"}, "is not a certificate"),
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
    assert postgres_settings.complaints({**SETTINGS, **more}) == []
    read = postgres_settings.read({**SETTINGS, **more})
    assert read.place == f"{read.host}:{read.port}"


@pytest.mark.parametrize(("more", "says"), BAD)
def test_settings_that_are_wrong(more: dict[str, Any], says: str) -> None:
    complaints = "\n".join(postgres_settings.complaints({**SETTINGS, **more}))
    assert says in complaints
    assert "hunter2" not in complaints
    with pytest.raises(Misconfigured):
        postgres_settings.read({**SETTINGS, **more})


@pytest.mark.parametrize("more", [{}, {"database": "admin"}])
def test_the_admins_own_database_may_not_be_reachable(more: dict[str, Any]) -> None:
    """UNIT-1: jobs could take the well's locks there. What was made nevertheless can still be destroyed."""
    admins = more.get("database", "postgres")
    given = {**SETTINGS, **more, "reachable": ["others", admins]}
    (complaint,) = postgres_settings.complaints(given)
    assert complaint.startswith(f"`reachable` names {admins}: it is the database where the well takes locks")
    read = postgres_settings.read(given)
    assert [read.lets_reach(name) for name in ("others", "more", admins)] == [True, False, False]
    assert not Settings("h", "u", "p", reachable=("*",)).lets_reach("postgres")


def test_settings_that_are_missing() -> None:
    complaints = postgres_settings.complaints({})
    assert [each.partition(":")[0] for each in complaints] == [
        f"`postgres` has no `{name}`" for name in ("host", "user", "password")
    ]


def test_without_the_library_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_settings, "find_spec", lambda name: None)
    assert postgres_settings.complaints(SETTINGS) == [postgres_settings.MISSING]
    with pytest.raises(Misconfigured, match="pg8000"):
        postgres_settings.read(SETTINGS)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "::1"])
def test_tls_is_verified_but_for_this_machine(host: str) -> None:
    assert Settings("db.internal", "u", "p").tls == "verify-full"
    assert Settings(host, "u", "p").tls == "disable"
    assert Settings(host, "u", "p", sslmode="verify-full").tls == "verify-full"


def test_options() -> None:
    given = {"version": 16, "extensions": ["pgcrypto"], "connections": 3}
    assert Registry({}).objections("well", "postgres", given) == []
    site = Settings("h", "u", "p", extensions=("citext", "pgcrypto"))
    assert postgres_settings.read_options(given, site) == Options(16, ("pgcrypto",), 3)
    for wrong, says in (
        ({"version": "16"}, "version"),
        ({"version": 0}, "must be from 1"),
        ({"connections": 0}, "must be from 1"),
        ({"extensions": ["A b"]}, "is not an extension"),
        ({"speed": 1}, "speed"),
    ):
        assert says in Registry({}).objections("well", "postgres", wrong)[0]
        with pytest.raises(Unsatisfiable):
            postgres_settings.read_options(wrong, site)


def test_options_that_this_site_does_not_have() -> None:
    """Where its settings are told they are refused at submit; `create` knows them in any case."""
    site = {**SETTINGS, "extensions": ["citext"], "connections": 5}
    for asked, says in (
        ({"connections": 6}, "6 connections are too many: at most 5 are allowed"),
        ({"extensions": ["citext", "hstore"]}, "the extension 'hstore' is not allowed; allowed are: citext"),
    ):
        assert PostgresWell.objections(asked, site, {}) == [says]
        assert PostgresWell.objections(asked) == []
        with pytest.raises(Unsatisfiable, match=says):
            postgres_settings.read_options(asked, postgres_settings.read(site))
    assert PostgresWell.objections({"connections": 5, "extensions": ["citext"]}, site, {}) == []
    assert "allowed are: none" in PostgresWell.objections({"extensions": ["citext"]}, SETTINGS, {})[0]


@pytest.mark.parametrize("missing", HERE)
def test_who_does_not_know_its_site_and_name_makes_nothing(missing: str) -> None:
    with pytest.raises(Misconfigured, match="needs PENSTOCK_SITE"):
        PostgresWell(SETTINGS, {key: value for key, value in HERE.items() if key != missing})


def test_a_password_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "password").write_text(" it's long \n")
    (tmp_path / "empty").write_text("\n")
    resolve = passwords.resolver({"NAME": "value"})
    assert resolve(f"file:{tmp_path}/password") == " it's long "
    assert resolve("env:NAME") == "value"
    for name in ("empty", "missing"):
        with pytest.raises(Misconfigured, match=f"{name}"):
            resolve(f"file:{tmp_path}/{name}")


def test_a_postgres_well_cannot_reuse_units() -> None:
    assert not Registry({}).reusable("well", "postgres")
    assert not Registry({}).quarantines("well", "postgres")
