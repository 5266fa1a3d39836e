"""The `http` well: resources that a service of the site creates, cleans and destroys.

The driver verifies what the service answers. After cleaning, the resource's status must say the same, with the fence of
the lease. After destroying, the status must be 404 and the list must not contain the resource. A contradiction is not a
proof: the step is repeated, and then the unit is quarantined. [UNIT-1] [UNIT-2]
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
from penstock.drivers.wells.http.settings import objections
from penstock.kernel.errors import Misconfigured, Unknown, Unsatisfiable
from penstock.ports import NotYet, Order, Ready, UnitContext
from penstock.toml.checks import clip

SITE, HOME = "PENSTOCK_SITE", "PENSTOCK_HOME"
NOTHING: Mapping[str, Any] = {}
SECRET_CHARS = 4096
LATER = 5
"""Seconds until the request is repeated, if the answer has no Retry-After."""


class HttpWell:
    """Calls one service. It has no state of its own: the service lists its resources. [UNIT-1]"""

    reusable = True

    def __init__(
        self,
        settings: Mapping[str, Any],
        environment: Mapping[str, str],
        client: Callable[..., Client] = Client,
    ) -> None:
        self._settings = keys.read(settings)
        if not environment.get(MAKER):
            raise Misconfigured(f"the http driver needs {MAKER} in its environment, as the owner of its resources")
        self._owner = f"{environment.get(SITE, '')}/{environment[MAKER]}"
        self._fence = 0
        is_local = bool(environment.get(HOME))
        resolve = resolver(environment, {"file": _file if is_local else _no_file})
        secret = cache(lambda: resolve(self._settings.secret))
        self._client: Callable[[], Client] = lambda: client(self._settings, secret, is_local=is_local)

    @staticmethod
    def complaints(settings: Mapping[str, Any]) -> Sequence[str]:
        """What is wrong with settings, one sentence each. Calls no service."""
        return keys.complaints(settings)

    @staticmethod
    def objections(
        options: Mapping[str, Any], well: Mapping[str, Any] = NOTHING, kind: Mapping[str, Any] = NOTHING
    ) -> Sequence[str]:
        """What is wrong with options by the well's schema; without its settings, `create` checks them."""
        del kind
        return objections(keys.read(well).options, options) if well else []

    def with_context(self, of: UnitContext) -> HttpWell:
        """The driver, sending the fence of the unit's lease, so that late requests change nothing. [SLOT-3]"""
        self._fence = of.fence
        return self

    def create(self, order: Order) -> Ready | NotYet:
        """Have the service create the resource, or prepare a cleaned one for its next lease."""
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
        """Have the service clean the resource; a proof if its status agrees. [UNIT-2]"""
        client = self._client()
        answer = client.call("POST", unit, "clean", body={"owner": self._owner, "fence": self._fence})
        if answer.status == 202:
            return _not_yet(answer, "it is being cleaned")
        self._check(answer, unit, CLEAN)
        checked, digest = _proof(answer)
        status = client.call("GET", unit)
        state = None if status.status == 404 else status.body.get("state")
        if state != CLEAN or status.body.get("fence") != self._fence or status.body.get("digest") != digest:
            found = (
                f"{_word(state)}, fence {_word(status.body.get('fence'))}, digest {_word(status.body.get('digest'))}"
            )
            wanted = f"clean, fence {self._fence}, digest {_word(digest)}"
            raise Unsatisfiable(f"{client.host} answered that {unit} is {wanted}, but its status is {found}")
        proof = f"{checked}; its status agrees, with fence {self._fence}"
        return CleanProof(by=f"http {client.host}", time=now, checked=proof)

    def destroy(self, unit: str, now: datetime) -> CleanProof | NotYet:
        """Have the service destroy the resource; a proof if its status and the list agree. [UNIT-1] [UNIT-2]"""
        client = self._client()
        answer = client.call("DELETE", unit, query={"owner": self._owner, "fence": self._fence})
        if answer.status == 202:
            return _not_yet(answer, "it is being destroyed")
        status = client.call("GET", unit)
        if status.status != 404:
            if status.body.get("state") == DESTROYING:
                return _not_yet(status, "it is being destroyed")
            state = _word(status.body.get("state"))
            raise Unsatisfiable(f"{client.host} answered that {unit} is destroyed, but its status is {state}")
        if unit in _page(client.call("GET", query={"owner": self._owner, "from": unit, "limit": 1}), self._owner)[0]:
            raise Unsatisfiable(f"{client.host} answered that {unit} is destroyed, but still lists it")
        checked = _proof(answer)[0] if answer.body.get("proof") else "it did not exist"
        proof = f"{checked}; its status is 404, and it is not listed"
        return CleanProof(by=f"http {client.host}", time=now, checked=proof)

    def list(self) -> Iterable[str]:
        """The resources that the service has for this well. Those of other owners are left out."""
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
                raise Misconfigured(
                    f"{client.host} lists in the wrong order: {_word(following)} follows {_word(start)}"
                )
            start = following
        raise Unknown(f"{client.host} lists more than {PAGE * PAGES} resources", "too-many")

    def _check(self, answer: Answer, unit: str, state: str) -> None:
        """Check that an answer is about this unit and lease, and has this state. Raises Misconfigured."""
        wanted = {"unit": unit, "fence": self._fence, "state": state}
        if answer.status == 404:
            raise Unknown(f"the service does not know {unit}", "not-found")
        for key, value in wanted.items():
            if answer.body.get(key) != value:
                found = _word(answer.body.get(key))
                raise Misconfigured(f"the service answered with {key} {found} instead of {_word(value)}")


def _file(name: str) -> str:
    """The secret in a file, for the local cloud, whose functions have no secrets store."""
    try:
        return Path(name).read_text()[:SECRET_CHARS].strip()
    except (OSError, ValueError) as error:
        raise Misconfigured(f"the secret file {name} cannot be read: {type(error).__name__}") from error


def _no_file(name: str) -> str:
    raise Misconfigured(f"file:{name} works only with the local cloud; use a secret of Secrets Manager")


def _not_yet(answer: Answer, otherwise: str) -> NotYet:
    reason = answer.body.get("reason")
    return NotYet(answer.later or LATER, clip(reason, TEXT_CHARS) if isinstance(reason, str) else otherwise)


def _proof(answer: Answer) -> tuple[str, str | None]:
    """What the service checked, in its words, and its digest. Raises Misconfigured without the former."""
    proof = answer.body.get("proof")
    checked = proof.get("checked") if isinstance(proof, dict) else None
    if not isinstance(proof, dict) or not isinstance(checked, str) or not checked.strip():
        raise Misconfigured("the service's answer has no `proof.checked`")
    digest = proof.get("digest")
    text = clip(checked, TEXT_CHARS)
    return (f"{text} (digest {_word(digest)})" if digest else text), digest if isinstance(digest, str) else None


def _metadata(given: object) -> dict[str, Any]:
    """The metadata for the job. Errors never contain it, because it may have credentials. Raises Misconfigured."""
    if not isinstance(given, dict):
        raise Misconfigured("the service's answer has `metadata` that is not a JSON object")
    size = len(json.dumps(given).encode())
    if size > METADATA_BYTES:
        raise Misconfigured(
            f"the service's answer has `metadata` of {size} bytes; at most {METADATA_BYTES} are allowed"
        )
    return given


def _page(answer: Answer, owner: str) -> tuple[Sequence[str], str | None]:
    """This owner's ids on one page of the list, and the first id of the next page. Raises Misconfigured."""
    found, following = answer.body.get("units"), answer.body.get("next")
    if answer.status != 200 or not isinstance(found, list) or not (following is None or _is_id(following)):
        raise Misconfigured("the service's answer is not a list of units")
    if any(not isinstance(each, dict) or not _is_id(each.get("unit")) for each in found):
        raise Misconfigured("the service's list contains an invalid unit")
    return [each["unit"] for each in found if each.get("owner") == owner], following


def _is_id(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= UNIT_CHARS


def _word(value: object) -> str:
    """A value from the service, cut for a message."""
    return clip(str(value), UNIT_CHARS)
