"""The units that one factory or well has at its service: their list, and the proofs that one is clean or gone.

A service that says that a unit is clean is asked for the unit's status, which must say the same, with the fence of the
lease. One that says that a unit is destroyed is asked for the unit's status, which must be 404, and for its list, which
must not contain the unit. A contradiction is no proof: the step is repeated, and then the unit is quarantined. [UNIT-1]
[UNIT-2]
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from penstock.domain.units.units import CleanProof
from penstock.drivers import MAKER
from penstock.drivers.http.client import Answer, Client
from penstock.drivers.http.protocol import (
    CLEAN,
    DESTROYING,
    METADATA_BYTES,
    OFF,
    ON,
    PAGE,
    PAGES,
    TEXT_CHARS,
    UNIT_CHARS,
)
from penstock.drivers.http.settings import ServiceSettings
from penstock.drivers.secrets import resolver
from penstock.kernel.errors import Misconfigured, Unknown, Unsatisfiable
from penstock.ports import NotYet, Ready, Switching
from penstock.toml.checks import clip

SITE, HOME = "PENSTOCK_SITE", "PENSTOCK_HOME"
SECRET_CHARS = 4096
EVIDENCE_CHARS = 8 * 1024
"""How many characters of the end of the console output become evidence."""

LATER = 5
"""Seconds until the request is repeated, if the answer has no Retry-After."""

Entry = Mapping[str, Any]
"""What a list says of a unit: its id as `unit`, its `owner`, and what else the service tells."""


class Units:
    """What a factory or a well has at its service, in one collection. It has no state of its own. [UNIT-1]"""

    def __init__(
        self,
        collection: str,
        settings: ServiceSettings,
        environment: Mapping[str, str],
        client: Callable[..., Client] = Client,
    ) -> None:
        if not environment.get(MAKER):
            raise Misconfigured(f"the http driver needs {MAKER} in its environment, as the owner of what it has made")
        self.owner = f"{environment.get(SITE, '')}/{environment[MAKER]}"
        is_local = bool(environment.get(HOME))
        resolve = resolver(environment, {"file": _file if is_local else _no_file})
        secret = cache(lambda: resolve(settings.secret))
        self.client: Callable[[], Client] = lambda: client(settings, secret, is_local=is_local, collection=collection)

    def destroy(self, unit: str, now: datetime, **query: int) -> CleanProof | NotYet:
        """Have the service destroy a unit; a proof if its status and the list agree. [UNIT-1] [UNIT-2]"""
        client = self.client()
        answer = client.call("DELETE", unit, query={"owner": self.owner, **query})
        if answer.status == 202:
            return not_yet(answer, "it is being destroyed")
        status = client.call("GET", unit)
        if status.status != 404:
            if status.body.get("state") == DESTROYING:
                return not_yet(status, "it is being destroyed")
            state = word(status.body.get("state"))
            raise Unsatisfiable(f"{client.host} answered that {unit} is destroyed, but its status is {state}")
        if unit in _ids(self._page(client, {"from": unit, "limit": 1})[0]):
            raise Unsatisfiable(f"{client.host} answered that {unit} is destroyed, but still lists it")
        checked = proof_of(answer)[0] if answer.body.get("proof") else "it did not exist"
        proof = f"{checked}; its status is 404, and it is not listed"
        return CleanProof(by=f"http {client.host}", time=now, checked=proof)

    def clean(self, unit: str, fence: int, now: datetime) -> CleanProof | NotYet:
        """Have the service clean a unit after a lease; a proof if its status agrees. [UNIT-2]"""
        client = self.client()
        answer = client.call("POST", unit, "clean", body={"owner": self.owner, "fence": fence})
        if answer.status == 202:
            return not_yet(answer, "it is being cleaned")
        check(answer, unit, fence=fence, state=CLEAN)
        checked, digest = proof_of(answer)
        status = client.call("GET", unit)
        state = None if status.status == 404 else status.body.get("state")
        if state != CLEAN or status.body.get("fence") != fence or status.body.get("digest") != digest:
            found = f"{word(state)}, fence {word(status.body.get('fence'))}, digest {word(status.body.get('digest'))}"
            wanted = f"clean, fence {fence}, digest {word(digest)}"
            raise Unsatisfiable(f"{client.host} answered that {unit} is {wanted}, but its status is {found}")
        return CleanProof(
            by=f"http {client.host}", time=now, checked=f"{checked}; its status agrees, with fence {fence}"
        )

    def switch(self, unit: str, to: Switching) -> Ready | NotYet:
        """Have the service switch a host on or off; it is so if its status agrees, with the order's serial number.

        So no earlier order takes effect afterwards, and an agent that comes then keeps its power. [JOB-2]
        """
        client, power = self.client(), ON if to.is_on else OFF
        body = {"owner": self.owner, "serial": to.serial, "missed": to.missed}
        answer = client.call("POST", unit, power, body=body, calls="power")
        if answer.status == 202:
            return not_yet(answer, f"it is being switched {power}")
        check(answer, unit, serial=to.serial, power=power)
        status = client.call("GET", unit)
        check(status, unit)
        found = {key: status.body.get(key) for key in ("power", "serial")}
        if found != {"power": power, "serial": to.serial}:
            text = f"{client.host} answered that {unit} is {power}, with serial {to.serial}, but its status is"
            raise Unsatisfiable(f"{text} {word(found['power'])}, serial {word(found['serial'])}")
        return Ready()

    def console(self, unit: str) -> str | None:
        """The end of what a unit's machine printed; None if the service has nothing of it. Raises Misconfigured."""
        answer = self.client().call("GET", unit, "console")
        if answer.status == 404:
            return None
        text = answer.body.get("console")
        if not isinstance(text, str):
            raise Misconfigured("the service's answer has no `console` that is a string")
        return text.strip()[-EVIDENCE_CHARS:] or None

    def list(self) -> Sequence[str]:
        """The ids of all that the service has for this owner. Those of other owners are left out."""
        return _ids(self.entries())

    def entries(self) -> Iterator[Entry]:
        """What the list says of each unit of this owner, page by page."""
        client, start = self.client(), ""
        for _ in range(PAGES):
            begin: Mapping[str, str | int] = {"from": start} if start else {}
            found, following = self._page(client, {**begin, "limit": PAGE})
            yield from found
            if following is None:
                return
            if following <= start:
                raise Misconfigured(f"{client.host} lists in the wrong order: {word(following)} follows {word(start)}")
            start = following
        raise Unknown(f"{client.host} lists more than {PAGE * PAGES} units", "too-many")

    def _page(self, client: Client, query: Mapping[str, str | int]) -> tuple[Sequence[Entry], str | None]:
        """This owner's units on one page of the list, and the first id of the next page. Raises Misconfigured."""
        answer = client.call("GET", query={"owner": self.owner, **query})
        found, following = answer.body.get("units"), answer.body.get("next")
        if answer.status != 200 or not isinstance(found, list) or not (following is None or _is_id(following)):
            raise Misconfigured("the service's answer is not a list of units")
        if any(not isinstance(each, dict) or not _is_id(each.get("unit")) for each in found):
            raise Misconfigured("the service's list contains an invalid unit")
        return [each for each in found if each.get("owner") == self.owner], following


def check(answer: Answer, unit: str, **wanted: object) -> None:
    """Check that an answer is about this unit, and says what is wanted. Raises Misconfigured, Unknown for a 404."""
    if answer.status == 404:
        raise Unknown(f"the service does not know {unit}", "not-found")
    for key, value in {"unit": unit, **wanted}.items():
        if answer.body.get(key) != value:
            found = word(answer.body.get(key))
            raise Misconfigured(f"the service answered with {key} {found} instead of {word(value)}")


def metadata_of(answer: Answer) -> dict[str, Any]:
    """The metadata in an answer. Errors never contain it, because it may have credentials. Raises Misconfigured."""
    given = answer.body.get("metadata", {})
    if not isinstance(given, dict):
        raise Misconfigured("the service's answer has `metadata` that is not a JSON object")
    size = len(json.dumps(given).encode())
    if size > METADATA_BYTES:
        raise Misconfigured(
            f"the service's answer has `metadata` of {size} bytes; at most {METADATA_BYTES} are allowed"
        )
    return given


def not_yet(answer: Answer, otherwise: str) -> NotYet:
    """That the service is not done, when to ask again, and its reason or another."""
    reason = answer.body.get("reason")
    return NotYet(answer.later or LATER, clip(reason, TEXT_CHARS) if isinstance(reason, str) else otherwise)


def proof_of(answer: Answer) -> tuple[str, str | None]:
    """What the service checked, in its words, and its digest. Raises Misconfigured without the former."""
    proof = answer.body.get("proof")
    checked = proof.get("checked") if isinstance(proof, dict) else None
    if not isinstance(proof, dict) or not isinstance(checked, str) or not checked.strip():
        raise Misconfigured("the service's answer has no `proof.checked`")
    digest = proof.get("digest")
    text = clip(checked, TEXT_CHARS)
    return (f"{text} (digest {word(digest)})" if digest else text), digest if isinstance(digest, str) else None


def word(value: object) -> str:
    """A value from the service, cut for a message."""
    return clip(str(value), UNIT_CHARS)


def _ids(entries: Iterator[Entry] | Sequence[Entry]) -> Sequence[str]:
    return [each["unit"] for each in entries]


def _is_id(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= UNIT_CHARS


def _file(name: str) -> str:
    """The secret in a file, for the local cloud, whose functions have no secrets store."""
    try:
        return Path(name).read_text()[:SECRET_CHARS].strip()
    except (OSError, ValueError) as error:
        raise Misconfigured(f"the secret file {name} cannot be read: {type(error).__name__}") from error


def _no_file(name: str) -> str:
    raise Misconfigured(f"file:{name} works only with the local cloud; use a secret of Secrets Manager")
