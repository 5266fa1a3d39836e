"""The `http` factory: workers that a program of the site makes and destroys. See docs/operators/http.md.

The program is not believed: an answer names the worker that was asked for, and a destroyed one is gone only when its
status and the list agree. Whatever else it answers is a failure of this factory, and of no other. [UNIT-1] [UNIT-2]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from penstock.domain.account import Thing
from penstock.domain.units.units import CleanProof
from penstock.drivers.factories.http import launch
from penstock.drivers.factories.http import settings as keys
from penstock.drivers.http.client import Client
from penstock.drivers.http.protocol import GONE, READY, TEXT_CHARS, WORKERS
from penstock.drivers.http.units import Entry, Units, check, metadata_of, not_yet, word
from penstock.kernel.errors import Misconfigured, Unknown
from penstock.ports import NotYet, Order, Ready
from penstock.toml.checks import clip

SHOWN, THINGS = 20, 20
"""The most entries of a worker's metadata, and the most things that a list names for one worker."""


class HttpFactory:
    """Calls one program. It has no state of its own: the program lists its workers. [UNIT-1]"""

    reusable = True

    def __init__(
        self,
        settings: Mapping[str, Any],
        environment: Mapping[str, str],
        client: Callable[..., Client] = Client,
    ) -> None:
        self._settings = keys.read(settings)
        self._units = Units(WORKERS, self._settings, environment, client)

    @staticmethod
    def complaints(settings: Mapping[str, Any]) -> Sequence[str]:
        """What is wrong with settings, one sentence each. Calls no service."""
        return keys.complaints(settings)

    def create(self, order: Order) -> Ready | NotYet:
        """Have the program make the worker. A repeated order makes none, nor does one that comes late. [JOB-2]"""
        body = launch.request(order, self._settings, self._units.owner)
        try:
            answer = self._units.client().call("PUT", order.id, body=body, calls="create")
        except Unknown as error:
            if error.code != GONE:
                raise
            return Ready(proves=())
        if answer.status == 202:
            return not_yet(answer, "it is being made")
        check(answer, order.id, state=READY)
        return Ready(_shown(metadata_of(answer)))

    def destroy(self, unit: str, now: datetime) -> CleanProof | NotYet:
        """Have the program destroy the worker; a proof if its status and the list agree. [UNIT-1] [UNIT-2]"""
        return self._units.destroy(unit, now)

    def list(self) -> Iterable[str]:
        """The workers that the program has for this factory. Those of other owners are left out."""
        return self._units.list()

    def things(self) -> Iterable[Thing]:
        """What the program has for this factory: each worker, or the things that it says a worker consists of."""
        return [thing for entry in self._units.entries() for thing in _things(entry)]

    def evidence(self, unit: str) -> str | None:
        """The end of a worker's console output; None if the program has none."""
        return self._units.console(unit)


def _shown(metadata: Mapping[str, Any]) -> Mapping[str, str]:
    """The metadata of a worker, which people see: a short table of strings. Raises Misconfigured."""
    if len(metadata) > SHOWN or not all(isinstance(each, str) for each in metadata.values()):
        raise Misconfigured(f"the service's answer has `metadata` that is not a table of at most {SHOWN} strings")
    return {clip(key, TEXT_CHARS): clip(value, TEXT_CHARS) for key, value in metadata.items()}


def _things(entry: Entry) -> Iterator[Thing]:
    """The things of one worker: those that the list names, or the worker itself. Raises Misconfigured."""
    found = entry.get("things")
    if found is None:
        yield Thing("worker", entry["unit"], entry["unit"])
        return
    if not isinstance(found, list) or not 0 < len(found) <= THINGS or not all(isinstance(each, dict) for each in found):
        raise Misconfigured(
            f"the service's list has `things` of {word(entry['unit'])} that are not 1 to {THINGS} objects"
        )
    for each in found:
        yield Thing(word(each.get("kind")), word(each.get("id")), entry["unit"], _time(each.get("made")))


def _time(value: object) -> datetime | None:
    """A time of RFC 3339; None if it is none, or not of a time zone."""
    try:
        found = datetime.fromisoformat(value) if isinstance(value, str) else None
        return found.astimezone(UTC) if found and found.tzinfo else None
    except (ValueError, OverflowError):
        return None
