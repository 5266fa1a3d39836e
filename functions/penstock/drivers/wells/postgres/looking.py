"""What there is of a unit on the server, and whether it is ours at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from penstock.drivers.wells.postgres.session import Session
from penstock.kernel.errors import DriverError, Misconfigured

UNIT = """
SELECT d.oid IS NOT NULL, d.datallowconn AND d.datconnlimit <> -2, pg_catalog.shobj_description(d.oid, 'pg_database'),
       r.oid IS NOT NULL, pg_catalog.shobj_description(r.oid, 'pg_authid'),
       pg_catalog.has_database_privilege(r.oid, d.oid, 'CONNECT')
  FROM (SELECT 1) AS one
  LEFT JOIN pg_catalog.pg_database AS d ON d.datname = :name
  LEFT JOIN pg_catalog.pg_roles AS r ON r.rolname = :name
"""
"""A limit of -2 is PostgreSQL's own sign of a database whose DROP did not end: it can only be dropped again."""

ALL = """
SELECT datname, pg_catalog.shobj_description(oid, 'pg_database') FROM pg_catalog.pg_database
 WHERE pg_catalog.starts_with(datname, :start)
UNION ALL
SELECT rolname, pg_catalog.shobj_description(oid, 'pg_authid') FROM pg_catalog.pg_roles
 WHERE pg_catalog.starts_with(rolname, :start)
"""
LOCK = "SELECT pg_catalog.pg_try_advisory_lock(pg_catalog.hashtextextended(:name, 0))"
UNLOCK = "SELECT pg_catalog.pg_advisory_unlock(pg_catalog.hashtextextended(:name, 0))"

BUSY = "another call is at this database"


@dataclass(frozen=True)
class Found:
    """A unit's database and role. It is ready when its role may connect: that is granted last, and taken first."""

    database: bool
    is_open: bool
    role: bool
    is_ready: bool


def found(admin: Session, name: str, tag: str) -> Found:
    """What there is by a unit's name. Raises Misconfigured for what does not carry its tag: nobody touches that."""
    ((database, is_open, said, role, said_of_role, may_connect),) = admin.rows(UNIT, name=name)
    is_begun = database and said is None and role
    if (role and said_of_role != tag) or (database and said != tag and not is_begun):
        raise Misconfigured(f"there is a database or role {name} without our comment: {tag!r}")
    is_open = bool(is_open)
    return Found(bool(database), is_open, bool(role), is_open and bool(may_connect))


@contextmanager
def alone(admin: Session, name: str) -> Iterator[bool]:
    """Whether no other call is at this unit; then none is until the end of the block, or of the session."""
    is_alone = bool(admin.rows(LOCK, name=name)[0][0])
    try:
        yield is_alone
    finally:
        if is_alone:
            with suppress(DriverError):
                admin.rows(UNLOCK, name=name)
