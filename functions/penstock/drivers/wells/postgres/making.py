"""From nothing to a database that one job may use, and nobody else. Each step may be the last, and may come twice.

Its role may connect to it last of all. Whoever finds that granted has nothing to do, and touches nothing that a job may
have changed by then: no code that a job could have left there is ever run with the admin's rights.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.drivers.wells.postgres import secrets
from penstock.drivers.wells.postgres.looking import BUSY, Found, alone, found
from penstock.drivers.wells.postgres.names import quoted, text
from penstock.drivers.wells.postgres.session import Server, Session
from penstock.drivers.wells.postgres.settings import ANY, Options, Settings
from penstock.kernel.errors import Misconfigured, Unsatisfiable
from penstock.ports import NotYet

OLDEST = 15
"""Before it, the schema `public` is not the database owner's, and anybody may write there."""

REACHABLE = """
SELECT datname FROM pg_catalog.pg_database
 WHERE datallowconn AND pg_catalog.has_database_privilege('public', oid, 'CONNECT') ORDER BY datname
"""
AVAILABLE = """
SELECT e.name, v.schema FROM pg_catalog.pg_available_extensions AS e
  JOIN pg_catalog.pg_available_extension_versions AS v ON v.name = e.name AND v.version = e.default_version
 WHERE e.name = ANY (pg_catalog.string_to_array(:names, ','))
"""


@dataclass(frozen=True)
class Plan:
    """What is made: by which name and comment, with which lease's secret, as the site and the job want it."""

    name: str
    tag: str
    key: str
    settings: Settings
    options: Options

    @property
    def connections(self) -> int:
        """How many connections the job may have at a time."""
        return self.options.connections or self.settings.connections


def make(server: Server, plan: Plan) -> int | NotYet:
    """Make the database and the role. The server's major version when a job may use them."""
    with server.session() as admin:
        version = _version(admin, plan)
        with alone(admin, plan.name) as is_alone:
            if not is_alone:
                return NotYet(3, BUSY)
            there = found(admin, plan.name, plan.tag)
            if not there.is_ready:
                _make(server, admin, plan, there)
    return version


def _make(server: Server, admin: Session, plan: Plan, there: Found) -> None:
    name = quoted(plan.name)
    _check_reachable(admin, plan.settings)
    schemas = _schemas(admin, plan)
    admin.run(_again(plan) if there.role else _role(plan))
    if not there.database:
        admin.run(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8' ALLOW_CONNECTIONS false")
    admin.run(_closed(plan))
    _fill(server, plan, schemas)
    admin.run(f"GRANT CONNECT, CREATE, TEMPORARY ON DATABASE {name} TO {name}")


def _version(admin: Session, plan: Plan) -> int:
    major = int(admin.rows("SELECT pg_catalog.current_setting('server_version_num')::integer")[0][0]) // 10000
    if major < OLDEST:
        raise Misconfigured(f"{plan.settings.place} is PostgreSQL {major}; it must be {OLDEST} at least")
    if plan.options.version not in (None, major):
        raise Unsatisfiable(f"there is PostgreSQL {major} here, and no {plan.options.version}")
    return major


def _check_reachable(admin: Session, settings: Settings) -> None:
    """Raises Misconfigured if a job's role could connect to any database besides its own."""
    if ANY in settings.reachable:
        return
    others = [name for (name,) in admin.rows(REACHABLE) if name not in settings.reachable]
    if others:
        how = "; ".join(f"REVOKE CONNECT, TEMPORARY ON DATABASE {quoted(name)} FROM PUBLIC" for name in others)
        raise Misconfigured(f"every role can connect to {', '.join(others)}: {how}; or name them in `reachable`")


def _schemas(admin: Session, plan: Plan) -> dict[str, str | None]:
    """Where each wanted extension goes: its own schema, or None for any."""
    if not plan.options.extensions:
        return {}
    names = plan.options.extensions
    there = {name: schema for name, schema in admin.rows(AVAILABLE, names=",".join(names))}
    missing = [name for name in names if name not in there]
    if missing:
        raise Misconfigured(f"{plan.settings.place} does not have the extensions {', '.join(missing)}")
    return there


def _role(plan: Plan) -> str:
    """All of a role at once: it is never there without its comment, nor without its limits."""
    role = quoted(plan.name)
    rights = "NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS"
    return "; ".join(
        (
            f"CREATE ROLE {role} LOGIN {rights} {_limits(plan)}",
            f"COMMENT ON ROLE {role} IS {text(plan.tag)}",
            f"GRANT {role} TO CURRENT_USER",  # who may not be it, may neither give it a schema nor end its connections
            f"ALTER ROLE {role} SET statement_timeout = '{plan.settings.statement_timeout}s'",
            f"ALTER ROLE {role} SET idle_in_transaction_session_timeout = '{plan.settings.idle_timeout}s'",
        )
    )


def _again(plan: Plan) -> str:
    return f"ALTER ROLE {quoted(plan.name)} LOGIN {_limits(plan)}"


def _limits(plan: Plan) -> str:
    return f"CONNECTION LIMIT {plan.connections} PASSWORD {text(secrets.verifier(plan.key))}"


def _closed(plan: Plan) -> str:
    """Closed to everybody before it is open to anybody."""
    name = quoted(plan.name)
    return "; ".join(
        (
            f"COMMENT ON DATABASE {name} IS {text(plan.tag)}",
            f"REVOKE ALL ON DATABASE {name} FROM PUBLIC",
            f"ALTER DATABASE {name} ALLOW_CONNECTIONS true",
        )
    )


def _fill(server: Server, plan: Plan, schemas: dict[str, str | None]) -> None:
    """What is made inside of the database, before the job may come in."""
    with server.session(plan.name) as inside:
        for name, schema in schemas.items():
            where = "" if schema else " SCHEMA public"
            inside.run(f"CREATE EXTENSION IF NOT EXISTS {quoted(name)}{where} CASCADE")
        inside.run(f"ALTER SCHEMA public OWNER TO {quoted(plan.name)}")
