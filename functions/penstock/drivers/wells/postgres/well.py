"""The `postgres` well: a database for each job on an existing server. See docs/operators/wells/postgres.md."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any
from urllib.parse import quote

from penstock.domain.units.units import CleanProof
from penstock.drivers import MAKER
from penstock.drivers.wells.postgres import keys, secrets
from penstock.drivers.wells.postgres.credentials import resolver
from penstock.drivers.wells.postgres.ending import end
from penstock.drivers.wells.postgres.looking import ALL
from penstock.drivers.wells.postgres.making import Plan, make
from penstock.drivers.wells.postgres.names import Names
from penstock.drivers.wells.postgres.session import Connect, Connection, Server
from penstock.drivers.wells.postgres.settings import PLAIN, UNVERIFIED
from penstock.kernel.errors import Misconfigured
from penstock.ports import NotYet, Option, Order, Ready

SITE = "PENSTOCK_SITE"
"""The function's environment names the deployment: infra/stack.py."""

SECRET = {"password", "PGPASSWORD", "url"}
"""What of the metadata may not stand in a log. [SEC-1]"""


class PostgresWell:
    """Makes databases on one server. It keeps nothing: what there is, the server is asked. [UNIT-1]

    It does not clean: a database is made anew in a fraction of a second, and what is new has nothing of its last job.
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        surroundings: Mapping[str, str],
        connect: Connect = Connection,
    ) -> None:
        if not surroundings.get(SITE) or not surroundings.get(MAKER):
            raise Misconfigured("the postgres well must know its site and its own name, to name what it makes")
        self._settings = keys.read(settings)
        self._names = Names(surroundings[SITE], surroundings[MAKER])
        self._connect = connect
        find = resolver(surroundings)
        self._password = cache(lambda: find(self._settings.password))

    @staticmethod
    def complaints(settings: Mapping[str, Any]) -> Sequence[str]:
        """What is wrong with settings, a sentence each. Asks nobody."""
        return keys.complaints(settings)

    @staticmethod
    def objections(
        options: Mapping[str, Any], well: Mapping[str, Any] | None = None, kind: Mapping[str, Any] | None = None
    ) -> Sequence[str]:
        """What is wrong with a job's options: whatever the site allows, and by its settings where they are told."""
        del kind
        return keys.objections(options, well)

    @staticmethod
    def options(well: Mapping[str, Any], kind: Mapping[str, Any]) -> Sequence[Option]:
        """What a job may ask of its database, as far as the well's settings allow it."""
        del kind
        return keys.offered(well)

    def create(self, order: Order) -> Ready | NotYet:
        """Make the database and the role, unless there are; the same answer for every call of one lease."""
        options = keys.options(order.options, self._settings)
        plan = Plan(self._names.of(order.id), self._names.tag(order.id), order.key, self._settings, options)
        done = make(self._server(), plan)
        if isinstance(done, NotYet):
            return done
        metadata = _metadata(plan, done)
        return Ready({**order.settings, **metadata}, public=metadata.keys() - SECRET)

    def destroy(self, unit: str, now: datetime) -> CleanProof | NotYet:
        """End its connections and transactions, drop database and role, and say so when nothing is left of them."""
        done = end(self._server(), self._names.of(unit), self._names.tag(unit))
        return done if isinstance(done, NotYet) else CleanProof(by="postgres", time=now, checked=done)

    def list(self) -> Iterable[str]:
        """The units of which there is a database or a role with our name, and nobody else's comment."""
        with self._server().session() as admin:
            named = [(self._names.unit(name), said) for name, said in admin.rows(ALL, start=self._names.start)]
        return sorted({unit for unit, said in named if unit and said in (None, self._names.tag(unit))})

    def _server(self) -> Server:
        return Server(self._settings, self._password, self._connect)


def _metadata(plan: Plan, version: int) -> dict[str, Any]:
    """What the job is told: in words, as one URL, and by the names that PostgreSQL's own programs read."""
    settings, name, password = plan.settings, plan.name, secrets.password(plan.key)
    sslmode = PLAIN if settings.tls == PLAIN else UNVERIFIED
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    where = f"{host}:{settings.port}/{quote(name)}?sslmode={sslmode}"
    told = {"host": settings.host, "port": settings.port, "database": name, "user": name, "password": password}
    return {
        **told,
        **{f"PG{key.upper()}": str(value) for key, value in told.items()},
        "PGSSLMODE": sslmode,
        "url": f"postgresql://{quote(name)}:{password}@{where}",
        "sslmode": sslmode,
        "connections": plan.connections,
        "version": version,
        **({"ca": settings.ca} if settings.ca else {}),
    }
