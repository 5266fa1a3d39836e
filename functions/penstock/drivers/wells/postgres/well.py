"""The `postgres` well: a database for each job on an existing server. See docs/operators/wells/postgres.md."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any
from urllib.parse import quote

from penstock.domain.account import Thing
from penstock.domain.units.units import CleanProof
from penstock.drivers import MAKER
from penstock.drivers.wells.postgres import passwords
from penstock.drivers.wells.postgres import settings as postgres_settings
from penstock.drivers.wells.postgres.databases import ALL, KINDS, Plan, create, remove
from penstock.drivers.wells.postgres.names import Names
from penstock.drivers.wells.postgres.passwords import resolver
from penstock.drivers.wells.postgres.session import Connect, Connection, Server
from penstock.drivers.wells.postgres.settings import PLAIN, UNVERIFIED
from penstock.kernel.errors import Misconfigured
from penstock.ports import NotYet, Option, Order, Ready

SITE = "PENSTOCK_SITE"
"""The environment variable with the deployment's name, which infra/stack.py sets."""

SECRET = {"password", "PGPASSWORD", "url"}
"""The keys of the metadata whose values must not appear in a log. [SEC-1]"""


class PostgresWell:
    """Makes databases on one server. It has no state of its own: it finds databases by name. [UNIT-1]

    It does not clean databases for reuse, because making a new one takes a fraction of a second.
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        environment: Mapping[str, str],
        connect: Connect = Connection,
    ) -> None:
        if not environment.get(SITE) or not environment.get(MAKER):
            raise Misconfigured(
                f"the postgres driver needs {SITE} and {MAKER} in its environment, to name what it makes"
            )
        self._settings = postgres_settings.read(settings)
        self._names = Names(environment[SITE], environment[MAKER])
        self._connect = connect
        resolve = resolver(environment)
        self._password = cache(lambda: resolve(self._settings.password))

    @staticmethod
    def complaints(settings: Mapping[str, Any]) -> Sequence[str]:
        """What is wrong with settings, one sentence each. Calls no service."""
        return postgres_settings.complaints(settings)

    @staticmethod
    def objections(
        options: Mapping[str, Any], well: Mapping[str, Any] | None = None, kind: Mapping[str, Any] | None = None
    ) -> Sequence[str]:
        """What is wrong with a job's options; with the well's settings, also what these do not allow."""
        del kind
        return postgres_settings.objections(options, well)

    @staticmethod
    def options(well: Mapping[str, Any], kind: Mapping[str, Any]) -> Sequence[Option]:
        """The options of a job, within what the well's settings allow."""
        del kind
        return postgres_settings.available_options(well)

    def create(self, order: Order) -> Ready | NotYet:
        """Create the database and the role, unless they exist. Every call for one lease returns the same answer."""
        options = postgres_settings.read_options(order.options, self._settings)
        plan = Plan(self._names.of(order.id), self._names.tag(order.id), order.key, self._settings, options)
        version = create(self._server(), plan)
        if isinstance(version, NotYet):
            return version
        metadata = _metadata(plan, version)
        return Ready({**order.settings, **metadata}, public=metadata.keys() - SECRET)

    def destroy(self, unit: str, now: datetime) -> CleanProof | NotYet:
        """End all connections and transactions, drop database and role; a proof when nothing is left."""
        checked = remove(self._server(), self._names.of(unit), self._names.tag(unit))
        return checked if isinstance(checked, NotYet) else CleanProof(by="postgres", time=now, checked=checked)

    def list(self) -> Iterable[str]:
        """The units with a database or role that has this well's name, and its comment or none."""
        with self._server().session() as admin:
            named = [(self._names.unit(name), comment) for name, comment in admin.rows(ALL, start=self._names.start)]
        return sorted({unit for unit, comment in named if unit and comment in (None, self._names.tag(unit))})

    def things(self) -> Iterable[Thing]:
        """The databases and roles of this site on the server, also those of wells that it does not have any more."""
        with self._server().session() as admin:
            named = admin.rows(KINDS, start=self._names.of_site)
        return [thing for kind, name, comment in named if (thing := self._thing(kind, name, comment))]

    def _thing(self, kind: str, name: str, comment: str | None) -> Thing | None:
        """A database or role: by its comment, or by its name if it has none yet; None if it is somebody else's."""
        tagged = self._names.tagged(comment)
        if tagged:
            return Thing(kind, name, tagged[1], maker=tagged[0])
        unit = self._names.unit(name) if comment is None else None
        return Thing(kind, name, unit) if unit else None

    def _server(self) -> Server:
        return Server(self._settings, self._password, self._connect)


def _metadata(plan: Plan, version: int) -> dict[str, Any]:
    """The metadata for the job: single values, a URL, and the environment variables of PostgreSQL's clients."""
    settings, name, password = plan.settings, plan.name, passwords.password(plan.key)
    sslmode = PLAIN if settings.tls == PLAIN else UNVERIFIED
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    where = f"{host}:{settings.port}/{quote(name)}?sslmode={sslmode}"
    values = {"host": settings.host, "port": settings.port, "database": name, "user": name, "password": password}
    return {
        **values,
        **{f"PG{key.upper()}": str(value) for key, value in values.items()},
        "PGSSLMODE": sslmode,
        "url": f"postgresql://{quote(name)}:{password}@{where}",
        "sslmode": sslmode,
        "connections": plan.connections,
        "version": version,
        **({"ca": settings.ca} if settings.ca else {}),
    }
