"""From whatever there is to nothing, whatever the job did. Each step may be the last, and may come twice.

nobody new        the role may no longer connect; that cannot be undone by it, nor held up by a lock of its own
nobody there      its connections are ended, and with them whatever they hold
nothing prepared  a prepared transaction outlives its connection, can lock the role, and keeps a database from going
no database       with all that is in it: tables, large objects, extensions, publications, slots
no role           with what it was given elsewhere
"""

from __future__ import annotations

from penstock.drivers.wells.postgres.looking import BUSY, Found, alone, found
from penstock.drivers.wells.postgres.names import quoted, text
from penstock.drivers.wells.postgres.session import DROP_SECONDS, STATEMENT_SECONDS, Server, Session
from penstock.kernel.errors import Misconfigured
from penstock.ports import NotYet

TERMINATE = """
SELECT pg_catalog.pg_terminate_backend(pid, 3000) FROM pg_catalog.pg_stat_activity
 WHERE pid <> pg_catalog.pg_backend_pid()
   AND (usename = :name OR (datname = :name AND backend_type IN ('client backend', 'walsender')))
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
"""The databases in which a role owns or was given something."""

LEFT = """
SELECT (SELECT count(*) FROM pg_catalog.pg_database WHERE datname = :name),
       (SELECT count(*) FROM pg_catalog.pg_roles WHERE rolname = :name),
       (SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE datname = :name OR usename = :name),
       (SELECT count(*) FROM pg_catalog.pg_prepared_xacts WHERE database = :name OR owner = :name)
"""


def end(server: Server, name: str, tag: str) -> str | NotYet:
    """Remove a unit's database and role; what was checked when nothing is left of them."""
    with server.session() as admin, alone(admin, name) as is_alone:
        if not is_alone:
            return NotYet(3, BUSY)
        did = _end(server, admin, name, found(admin, name, tag))
        left = admin.rows(LEFT, name=name)[0]
    if any(left):
        return NotYet(3, f"there are still {_counted(*left)} named {name}")
    return f"there are {_counted(*left)} named {name} on {server.settings.place}; {did}"


def _end(server: Server, admin: Session, name: str, there: Found) -> str:
    """Take the steps, and say what was in their way."""
    ended = _shut(admin, name, there)
    rolled_back = _roll_back(server, admin, name)
    if there.is_open:
        _unsubscribe(server, admin, name)
    if there.role:
        admin.run(f"ALTER ROLE {quoted(name)} NOLOGIN")
        ended += len(admin.rows(TERMINATE, name=name))
    if there.database:
        _drop(admin, name)
    if there.role:
        _drop_role(server, admin, name)
    return f"{ended} connections were ended and {rolled_back} prepared transactions rolled back"


def _counted(databases: int, roles: int, connections: int, prepared: int) -> str:
    return f"{databases} databases, {roles} roles, {connections} connections and {prepared} prepared transactions"


def _shut(admin: Session, name: str, there: Found) -> int:
    """Let nobody in, and put out who is there; how many that were."""
    if there.database:
        whom = f"PUBLIC, {quoted(name)}" if there.role else "PUBLIC"
        admin.run(f"REVOKE ALL ON DATABASE {quoted(name)} FROM {whom}")
    return len(admin.rows(TERMINATE, name=name))


def _roll_back(server: Server, admin: Session, name: str) -> int:
    """Roll back what the job prepared: where it was, and as who did it, for only they may."""
    prepared = admin.rows(PREPARED, name=name)
    for database in sorted({where for where, _, _ in prepared}):
        with server.session(database) as inside:
            for _, owner, gid in (each for each in prepared if each[0] == database):
                inside.run(f"SET ROLE {quoted(owner)}")
                inside.run(f"ROLLBACK PREPARED {text(gid)}")
                inside.run("RESET ROLE")
    return len(prepared)


def _unsubscribe(server: Server, admin: Session, name: str) -> None:
    """Drop subscriptions, which keep a database from being dropped. What they subscribe to is not asked."""
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
    except Misconfigured:  # FORCE ends nobody of another role, and counts the server's own vacuuming as such
        admin.run(drop)  # without it the server has its vacuuming yield, and waits some seconds for the others
    admin.run(f"SET statement_timeout = '{STATEMENT_SECONDS}s'")


def _drop_role(server: Server, admin: Session, name: str) -> None:
    """Drop the role, and before it what it has elsewhere: somebody may have let it in."""
    for (database,) in admin.rows(ELSEWHERE, name=name):
        with server.session(database) as inside:
            inside.run(f"DROP OWNED BY {quoted(name)}")
    admin.run(f"DROP OWNED BY {quoted(name)}; DROP ROLE {quoted(name)}")
