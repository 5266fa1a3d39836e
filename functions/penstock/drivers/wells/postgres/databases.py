"""Finds, creates and removes the database and role of a unit. Every step may be interrupted and repeated.

Creation allows the role to connect in its last step. A call that finds this allowed does nothing, because from then on
a job may have changed the database: the admin's session must never run code that a job could have left there.

Removal copes with anything that a job did:

1. Revoke CONNECT. The role cannot undo that, and its locks cannot delay it.
2. End its connections, which releases what they hold.
3. Roll back prepared transactions: they outlive connections, can lock the role, and prevent DROP DATABASE.
4. Drop the database with everything in it: tables, large objects, extensions, publications, slots.
5. Drop the role, with what it was given in other databases.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from penstock.drivers.wells.postgres import passwords
from penstock.drivers.wells.postgres.names import quoted, text
from penstock.drivers.wells.postgres.session import DROP_SECONDS, STATEMENT_SECONDS, Server, Session
from penstock.drivers.wells.postgres.settings import LOCKS_THERE, Options, Settings
from penstock.kernel.errors import DriverError, Misconfigured, Unsatisfiable
from penstock.kernel.frozen import dataclass
from penstock.ports import NotYet

UNIT = """
SELECT d.oid IS NOT NULL, d.datallowconn AND d.datconnlimit <> -2, pg_catalog.shobj_description(d.oid, 'pg_database'),
       r.oid IS NOT NULL, pg_catalog.shobj_description(r.oid, 'pg_authid'),
       pg_catalog.has_database_privilege(r.oid, d.oid, 'CONNECT')
  FROM (SELECT 1) AS one
  LEFT JOIN pg_catalog.pg_database AS d ON d.datname = :name
  LEFT JOIN pg_catalog.pg_roles AS r ON r.rolname = :name
"""
"""PostgreSQL sets the connection limit -2 while it drops a database. If the DROP failed, it can only be repeated."""

ALL = """
SELECT datname, pg_catalog.shobj_description(oid, 'pg_database') FROM pg_catalog.pg_database
 WHERE pg_catalog.starts_with(datname, :start)
UNION ALL
SELECT rolname, pg_catalog.shobj_description(oid, 'pg_authid') FROM pg_catalog.pg_roles
 WHERE pg_catalog.starts_with(rolname, :start)
"""


KINDS = """
SELECT 'database', datname, pg_catalog.shobj_description(oid, 'pg_database') FROM pg_catalog.pg_database
 WHERE pg_catalog.starts_with(datname, :start)
UNION ALL
SELECT 'role', rolname, pg_catalog.shobj_description(oid, 'pg_authid') FROM pg_catalog.pg_roles
 WHERE pg_catalog.starts_with(rolname, :start)
"""


LOCK = "SELECT pg_catalog.pg_try_advisory_lock(pg_catalog.hashtextextended(:name, 0))"
UNLOCK = "SELECT pg_catalog.pg_advisory_unlock(pg_catalog.hashtextextended(:name, 0))"

BUSY = "another call is working on this database"


@dataclass(frozen=True)
class UnitObjects:
    """What exists of a unit. It is ready if its role may connect: that is granted last, and revoked first."""

    database: bool
    is_open: bool
    role: bool
    is_ready: bool


def find(admin: Session, name: str, tag: str) -> UnitObjects:
    """What exists with a unit's name. Raises Misconfigured for a database or role without its comment."""
    ((database, is_open, comment, role, role_comment, may_connect),) = admin.rows(UNIT, name=name)
    is_begun = database and comment is None and role
    if (role and role_comment != tag) or (database and comment != tag and not is_begun):
        raise Misconfigured(
            f"the server has a database or role {name} that does not have the comment {tag!r}: remove it"
        )
    is_open = bool(is_open)
    return UnitObjects(bool(database), is_open, bool(role), is_open and bool(may_connect))


@contextmanager
def exclusive(admin: Session, name: str) -> Iterator[bool]:
    """Try to lock a unit until the end of the block or the session; yields whether that succeeded."""
    is_locked = bool(admin.rows(LOCK, name=name)[0][0])
    try:
        yield is_locked
    finally:
        if is_locked:
            with suppress(DriverError):
                admin.rows(UNLOCK, name=name)


OLDEST = 15
"""Before this version, every role may write to the schema `public`."""

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
    """What to create: the name and comment, the lease's secret, the site's settings and the job's options."""

    name: str
    tag: str
    key: str
    settings: Settings
    options: Options

    @property
    def connections(self) -> int:
        """The most concurrent connections of the job."""
        return self.options.connections or self.settings.connections


def create(server: Server, plan: Plan) -> int | NotYet:
    """Create the database and the role; the server's major version when a job may use them."""
    with server.session() as admin:
        version = _version(admin, plan)
        with exclusive(admin, plan.name) as is_locked:
            if not is_locked:
                return NotYet(3, BUSY)
            existing = find(admin, plan.name, plan.tag)
            if not existing.is_ready:
                _create(server, admin, plan, existing)
    return version


def _create(server: Server, admin: Session, plan: Plan, existing: UnitObjects) -> None:
    name = quoted(plan.name)
    _check_reachable(admin, plan.settings)
    schemas = _schemas(admin, plan)
    admin.run(_reset_role(plan) if existing.role else _create_role(plan))
    if not existing.database:
        admin.run(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8' ALLOW_CONNECTIONS false")
    admin.run(_close_to_others(plan))
    _fill(server, plan, schemas)
    admin.run(f"GRANT CONNECT, CREATE, TEMPORARY ON DATABASE {name} TO {name}")


def _version(admin: Session, plan: Plan) -> int:
    major = int(admin.rows("SELECT pg_catalog.current_setting('server_version_num')::integer")[0][0]) // 10000
    if major < OLDEST:
        raise Misconfigured(f"{plan.settings.place} runs PostgreSQL {major}; the well needs {OLDEST} or newer")
    if plan.options.version not in (None, major):
        raise Unsatisfiable(f"the server runs PostgreSQL {major}, not {plan.options.version}")
    return major


def _check_reachable(admin: Session, settings: Settings) -> None:
    """Raises Misconfigured if a job's role could connect to a database that it must not reach.

    Never to the admin's, whatever the settings say: with the lock of its unit a job would block its own removal.
    """
    others = [name for (name,) in admin.rows(REACHABLE) if not settings.lets_reach(name)]
    if others:
        how = "; ".join(f"REVOKE CONNECT, TEMPORARY ON DATABASE {quoted(name)} FROM PUBLIC" for name in others)
        hint = (
            "or name them in `reachable`" if settings.database not in others else f"{settings.database} {LOCKS_THERE}"
        )
        raise Misconfigured(f"every role can connect to {', '.join(others)}: run {how}; {hint}")


def _schemas(admin: Session, plan: Plan) -> dict[str, str | None]:
    """The schema that each extension requires; None if it has no fixed schema. Raises Misconfigured."""
    if not plan.options.extensions:
        return {}
    names = plan.options.extensions
    available = {name: schema for name, schema in admin.rows(AVAILABLE, names=",".join(names))}
    missing = [name for name in names if name not in available]
    if missing:
        raise Misconfigured(f"{plan.settings.place} does not have the extensions {', '.join(missing)}")
    return available


def _create_role(plan: Plan) -> str:
    """One transaction, so that a role never exists without its comment and limits."""
    role = quoted(plan.name)
    rights = "NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS"
    return "; ".join(
        (
            f"CREATE ROLE {role} LOGIN {rights} {_limits(plan)}",
            f"COMMENT ON ROLE {role} IS {text(plan.tag)}",
            f"GRANT {role} TO CURRENT_USER",  # needed to give it a schema and to end its connections
            f"ALTER ROLE {role} SET statement_timeout = '{plan.settings.statement_timeout}s'",
            f"ALTER ROLE {role} SET idle_in_transaction_session_timeout = '{plan.settings.idle_timeout}s'",
        )
    )


def _reset_role(plan: Plan) -> str:
    return f"ALTER ROLE {quoted(plan.name)} LOGIN {_limits(plan)}"


def _limits(plan: Plan) -> str:
    return f"CONNECTION LIMIT {plan.connections} PASSWORD {text(passwords.verifier(plan.key))}"


def _close_to_others(plan: Plan) -> str:
    """Revoke all rights before connections are allowed."""
    name = quoted(plan.name)
    return "; ".join(
        (
            f"COMMENT ON DATABASE {name} IS {text(plan.tag)}",
            f"REVOKE ALL ON DATABASE {name} FROM PUBLIC",
            f"ALTER DATABASE {name} ALLOW_CONNECTIONS true",
        )
    )


def _fill(server: Server, plan: Plan, schemas: dict[str, str | None]) -> None:
    """Create extensions in the database, and give the role its schema, before the job may connect."""
    with server.session(plan.name) as inside:
        for name, schema in schemas.items():
            where = "" if schema else " SCHEMA public"
            inside.run(f"CREATE EXTENSION IF NOT EXISTS {quoted(name)}{where} CASCADE")
        inside.run(f"ALTER SCHEMA public OWNER TO {quoted(plan.name)}")


TERMINATE = """
SELECT pg_catalog.pg_terminate_backend(pid, 3000), usename IS DISTINCT FROM CURRENT_USER
  FROM pg_catalog.pg_stat_activity
 WHERE pid <> pg_catalog.pg_backend_pid()
   AND (usename = :name OR (datname = :name AND backend_type IN ('client backend', 'walsender')))
"""
"""Ends all connections but this one. The second column is false for those of the well itself: to roll back, it opens
one in the unit's database, which may not have ended yet.
"""

PREPARED = """
SELECT database, owner, gid FROM pg_catalog.pg_prepared_xacts
 WHERE database = :name OR owner = :name ORDER BY database, gid
"""


SUBSCRIBED = """
SELECT s.subname FROM pg_catalog.pg_subscription AS s JOIN pg_catalog.pg_database AS d ON d.oid = s.subdbid
 WHERE d.datname = :name
"""


ELSEWHERE = """
SELECT DISTINCT d.datname FROM pg_catalog.pg_shdepend AS s JOIN pg_catalog.pg_database AS d ON d.oid = s.dbid
  JOIN pg_catalog.pg_roles AS r ON r.oid = s.refobjid
 WHERE s.refclassid = 'pg_catalog.pg_authid'::pg_catalog.regclass AND r.rolname = :name
"""
"""The databases in which a role owns something or has rights."""

LEFT = """
SELECT (SELECT count(*) FROM pg_catalog.pg_database WHERE datname = :name),
       (SELECT count(*) FROM pg_catalog.pg_roles WHERE rolname = :name),
       (SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE datname = :name OR usename = :name),
       (SELECT count(*) FROM pg_catalog.pg_prepared_xacts WHERE database = :name OR owner = :name)
"""


def remove(server: Server, name: str, tag: str) -> str | NotYet:
    """Remove a unit's database and role; what was checked, when nothing is left of them."""
    with server.session() as admin, exclusive(admin, name) as is_locked:
        if not is_locked:
            return NotYet(3, BUSY)
        done = _remove(server, admin, name, find(admin, name, tag))
        left = admin.rows(LEFT, name=name)[0]
    if any(left):
        return NotYet(3, f"{_counted(*left)} named {name} are left")
    return f"{_counted(*left)} named {name} are left on {server.settings.place}; {done}"


def _remove(server: Server, admin: Session, name: str, existing: UnitObjects) -> str:
    """Take all steps; what they ended, in words."""
    ended = _disconnect(admin, name, existing)
    rolled_back = _roll_back(server, admin, name)
    if existing.is_open:
        _unsubscribe(server, admin, name)
    if existing.role:
        admin.run(f"ALTER ROLE {quoted(name)} NOLOGIN")
        ended += _terminate(admin, name)
    if existing.database:
        _drop(admin, name)
    if existing.role:
        _drop_role(server, admin, name)
    return f"{ended} connections were ended and {rolled_back} prepared transactions rolled back"


def _counted(databases: int, roles: int, connections: int, prepared: int) -> str:
    return f"{databases} databases, {roles} roles, {connections} connections and {prepared} prepared transactions"


def _disconnect(admin: Session, name: str, existing: UnitObjects) -> int:
    """Refuse new connections, and end the existing ones; how many there were."""
    if existing.database:
        roles = f"PUBLIC, {quoted(name)}" if existing.role else "PUBLIC"
        admin.run(f"REVOKE ALL ON DATABASE {quoted(name)} FROM {roles}")
    return _terminate(admin, name)


def _terminate(admin: Session, name: str) -> int:
    """End all connections; how many of them were not the well's own."""
    return sum(is_counted for _, is_counted in admin.rows(TERMINATE, name=name))


def _roll_back(server: Server, admin: Session, name: str) -> int:
    """Roll back the job's prepared transactions. PostgreSQL requires the same database and role for that."""
    prepared = admin.rows(PREPARED, name=name)
    for database in sorted({where for where, _, _ in prepared}):
        with server.session(database) as inside:
            for _, owner, gid in (each for each in prepared if each[0] == database):
                inside.run(f"SET ROLE {quoted(owner)}")
                inside.run(f"ROLLBACK PREPARED {text(gid)}")
                inside.run("RESET ROLE")
    return len(prepared)


def _unsubscribe(server: Server, admin: Session, name: str) -> None:
    """Drop subscriptions, which prevent DROP DATABASE, without contacting their publishers."""
    names = [subscription for (subscription,) in admin.rows(SUBSCRIBED, name=name)]
    if names:
        with server.session(name) as inside:
            for each in map(quoted, names):
                inside.run(f"ALTER SUBSCRIPTION {each} DISABLE")
                inside.run(f"ALTER SUBSCRIPTION {each} SET (slot_name = NONE)")
                inside.run(f"DROP SUBSCRIPTION {each}")


def _drop(admin: Session, name: str) -> None:
    admin.run(f"SET statement_timeout = '{DROP_SECONDS}s'")
    drop = f"DROP DATABASE IF EXISTS {quoted(name)}"
    try:
        admin.run(f"{drop} WITH (FORCE)")
    except Misconfigured:  # FORCE fails if it may not end a process, such as autovacuum
        admin.run(drop)  # without FORCE, the server stops autovacuum, and waits some seconds for others
    admin.run(f"SET statement_timeout = '{STATEMENT_SECONDS}s'")


def _drop_role(server: Server, admin: Session, name: str) -> None:
    """Drop the role, after what it owns or was given in other databases."""
    for (database,) in admin.rows(ELSEWHERE, name=name):
        with server.session(database) as inside:
            inside.run(f"DROP OWNED BY {quoted(name)}")
    admin.run(f"DROP OWNED BY {quoted(name)}; DROP ROLE {quoted(name)}")
