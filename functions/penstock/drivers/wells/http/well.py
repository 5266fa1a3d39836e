"""The `http` well: resources that a service of the site makes, cleans and destroys.

What the service states is not enough. That a resource is clean is asked of its status as well, under the fence of the
lease that it was cleaned after; that one is gone, of its status and of the list. What contradicts itself is no proof:
it is asked again, and then the unit is quarantined. [UNIT-1] [UNIT-2]
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from penstock.domain.units.units import CleanProof
from penstock.drivers import MAKER
from penstock.drivers.secrets import resolver
from penstock.drivers.wells.http import settings as keys
from penstock.drivers.wells.http.client import Answer, Client
from penstock.drivers.wells.http.options import objections
from penstock.drivers.wells.http.protocol import (
    CLEAN,
    DESTROYING,
    METADATA_BYTES,
    PAGE,
    PAGES,
    READY,
    TEXT_CHARS,
    UNIT_CHARS,
)
from penstock.kernel.errors import Misconfigured, Unknown, Unsatisfiable
from penstock.ports import NotYet, Order, Ready, UnitContext
from penstock.toml.checks import clip

SITE, HOME = "PENSTOCK_SITE", "PENSTOCK_HOME"
NOTHING: Mapping[str, Any] = {}
SECRET_CHARS = 4096
LATER = 5
"""Seconds until it is asked again, where the service does not say."""


class HttpWell:
    """Asks one service. It keeps nothing: what there is, the service is asked. [UNIT-1]"""

    keeps = True

    def __init__(
        self,
        settings: Mapping[str, Any],
        surroundings: Mapping[str, str],
        client: Callable[..., Client] = Client,
    ) -> None:
        self._settings = keys.read(settings)
        if not surroundings.get(MAKER):
            raise Misconfigured("the http well must know its own name, to tell what it made")
        self._owner = f"{surroundings.get(SITE, '')}/{surroundings[MAKER]}"
        self._fence = 0
        is_local = bool(surroundings.get(HOME))
        resolve = resolver(surroundings, {"file": _file if is_local else _no_file})
        secret = cache(lambda: resolve(self._settings.secret))
        self._client: Callable[[], Client] = lambda: client(self._settings, secret, is_local=is_local)

    @staticmethod
    def complaints(settings: Mapping[str, Any]) -> Sequence[str]:
        """What is wrong with settings, a sentence each. Asks nobody."""
        return keys.complaints(settings)

    @staticmethod
    def objections(
        options: Mapping[str, Any], well: Mapping[str, Any] = NOTHING, kind: Mapping[str, Any] = NOTHING
    ) -> Sequence[str]:
        """What is wrong with options by the well's settings. Without these, it is told when the resource is made."""
        del kind
        return objections(keys.read(well).options, options) if well else []

    def informed(self, of: UnitContext) -> HttpWell:
        """From here on the fence of the unit's lease is told, so that what is late changes nothing. [SLOT-3]"""
        self._fence = of.fence
        return self

    def create(self, order: Order) -> Ready | NotYet:
        """Have the resource made, or made ready for the next lease."""
        wrong = objections(self._settings.options, order.options)
        if wrong:
            raise Unsatisfiable("; ".join(wrong))
        body = {
            "unit": order.id, "owner": self._owner, "fence": self._fence, "type": order.type, "slot": order.slot,
            "settings": dict(order.settings), "options": dict(order.options),
        }  # fmt: skip
        answer = self._client().call("PUT", order.id, body=body, calls="create")
        if answer.status == 202:
            return _not_yet(answer, "it is being made")
        self._check(answer, order.id, READY)
        return Ready(_metadata(answer.body.get("metadata", {})))

    def clean(self, unit: str, now: datetime) -> CleanProof | NotYet:
        """Have a resource cleaned, and ask its status whether it is. [UNIT-2]"""
        client = self._client()
        answer = client.call("POST", unit, "clean", body={"owner": self._owner, "fence": self._fence})
        if answer.status == 202:
            return _not_yet(answer, "it is being cleaned")
        self._check(answer, unit, CLEAN)
        checked, digest = _proof(answer)
        status = client.call("GET", unit)
        seen = None if status.status == 404 else status.body.get("state")
        if seen != CLEAN or status.body.get("fence") != self._fence or status.body.get("digest") != digest:
            said = f"{_word(seen)}, fence {_word(status.body.get('fence'))}, digest {_word(status.body.get('digest'))}"
            wanted = f"clean, fence {self._fence}, digest {_word(digest)}"
            raise Unsatisfiable(f"{client.host} says that it cleaned {unit} ({wanted}), and its status says {said}")
        said = f"{checked}; its status says so too, under fence {self._fence}"
        return CleanProof(by=f"http {client.host}", time=now, checked=said)

    def destroy(self, unit: str, now: datetime) -> CleanProof | NotYet:
        """Have a resource destroyed, and see that it is gone: from its status, and from the list. [UNIT-1] [UNIT-2]"""
        client = self._client()
        answer = client.call("DELETE", unit, query={"owner": self._owner, "fence": self._fence})
        if answer.status == 202:
            return _not_yet(answer, "it is being destroyed")
        status = client.call("GET", unit)
        if status.status != 404:
            if status.body.get("state") == DESTROYING:
                return _not_yet(status, "it is being destroyed")
            said = _word(status.body.get("state"))
            raise Unsatisfiable(f"{client.host} says that it destroyed {unit}, and its status says that it is {said}")
        if unit in _page(client.call("GET", query={"owner": self._owner, "from": unit, "limit": 1}), self._owner)[0]:
            raise Unsatisfiable(f"{client.host} says that it destroyed {unit}, and still lists it")
        checked = _proof(answer)[0] if answer.body.get("proof") else "it was not there"
        said = f"{checked}; its status is 404, and it is not listed"
        return CleanProof(by=f"http {client.host}", time=now, checked=said)

    def list(self) -> Iterable[str]:
        """What the service has for this well; what it has for others is none of ours."""
        return list(self._listed())

    def _listed(self) -> Iterator[str]:
        client, start = self._client(), ""
        for _ in range(PAGES):
            begin: Mapping[str, str | int] = {"from": start} if start else {}
            query = {"owner": self._owner, **begin, "limit": PAGE}
            found, following = _page(client.call("GET", query=query), self._owner)
            yield from found
            if following is None:
                return
            if following <= start:
                raise Misconfigured(f"{client.host} lists in circles: after {_word(start)} comes {_word(following)}")
            start = following
        raise Unknown(f"{client.host} lists more than {PAGE * PAGES} resources", "too-many")

    def _check(self, answer: Answer, unit: str, state: str) -> None:
        """That an answer is about this unit, for this lease, and says what was asked for. Raises Misconfigured."""
        wanted = {"unit": unit, "fence": self._fence, "state": state}
        if answer.status == 404:
            raise Unknown(f"the service has no {unit}", "not-found")
        for key, value in wanted.items():
            if answer.body.get(key) != value:
                found = _word(answer.body.get(key))
                raise Misconfigured(f"the service answers with {key} {found} where {_word(value)} belongs")


def _file(name: str) -> str:
    """The secret in a file of whoever runs the local cloud, whose functions see nothing of the environment."""
    try:
        return Path(name).read_text()[:SECRET_CHARS].strip()
    except (OSError, ValueError) as error:
        raise Misconfigured(f"the secret {name} cannot be read: {type(error).__name__}") from error


def _no_file(name: str) -> str:
    raise Misconfigured(f"the secret file:{name} is for the local cloud: here, name one of Secrets Manager")


def _not_yet(answer: Answer, otherwise: str) -> NotYet:
    reason = answer.body.get("reason")
    return NotYet(answer.later or LATER, clip(reason, TEXT_CHARS) if isinstance(reason, str) else otherwise)


def _proof(answer: Answer) -> tuple[str, str | None]:
    """What the service says it checked, and the digest of what it found. Raises Misconfigured without the first."""
    proof = answer.body.get("proof")
    checked = proof.get("checked") if isinstance(proof, dict) else None
    if not isinstance(proof, dict) or not isinstance(checked, str) or not checked.strip():
        raise Misconfigured("the service does not say what it checked")
    digest = proof.get("digest")
    told = clip(checked, TEXT_CHARS)
    return (f"{told} (digest {_word(digest)})" if digest else told), digest if isinstance(digest, str) else None


def _metadata(given: object) -> dict[str, Any]:
    """What the job may know. Raises Misconfigured, without a word of it: it has credentials."""
    if not isinstance(given, dict):
        raise Misconfigured("the metadata of the resource is no JSON object")
    size = len(json.dumps(given).encode())
    if size > METADATA_BYTES:
        raise Misconfigured(f"the metadata of the resource has {size} bytes; {METADATA_BYTES} at most")
    return given


def _page(answer: Answer, owner: str) -> tuple[Sequence[str], str | None]:
    """The ids of ours on one page of the list, and where the next begins. Raises Misconfigured."""
    found, following = answer.body.get("units"), answer.body.get("next")
    if answer.status != 200 or not isinstance(found, list) or not (following is None or _is_id(following)):
        raise Misconfigured("the service answers with what is no list of units")
    if any(not isinstance(each, dict) or not _is_id(each.get("unit")) for each in found):
        raise Misconfigured("the service lists what is no unit")
    return [each["unit"] for each in found if each.get("owner") == owner], following


def _is_id(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= UNIT_CHARS


def _word(value: object) -> str:
    """A value of the service's for a message."""
    return clip(str(value), UNIT_CHARS)
