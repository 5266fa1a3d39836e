"""A webhook: who signed it is checked first, what it says is stored next, and only then does anything follow."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from penstock.domain.github import deliveries
from penstock.domain.github.deliveries import BODY_BYTES, Delivery, Event, Malformed, is_id, matters
from penstock.kernel.errors import Refused
from penstock.kernel.rows import Create
from penstock.system import System

IGNORED = "ignored"


@dataclass(frozen=True)
class Hook:
    """A request as it came: the body to the last byte, for that is what was signed."""

    body: bytes
    signature: str
    id: str
    name: str


def receive(on: System, hook: Hook) -> str:
    """Take a delivery; whether it was stored, known, or ignored. Raises Refused 400, 401 or 413. [SEC-2]"""
    if len(hook.body) > BODY_BYTES:
        raise Refused(413, "body-too-big", f"the body has more than {BODY_BYTES} bytes")
    if not is_signed(on.forge.secret(), hook.body, hook.signature):
        raise Refused(401, "bad-signature", "X-Hub-Signature-256 is not that of this body")
    if not is_id(hook.id):
        raise Refused(400, "bad-request", "X-GitHub-Delivery is no id")
    payload = parse(hook.body)
    if not matters(hook.name, action_of(hook.name, payload)):
        return IGNORED
    return store(on, hook.id, hook.name, payload)


def is_signed(secret: str, body: bytes, signature: str) -> bool:
    """Whether a body was signed with the webhook's secret. Takes as long for a wrong signature as for the right one."""
    wanted = "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(wanted.encode(), signature.encode("utf-8", "replace"))


def parse(body: bytes) -> Mapping[str, Any]:
    """A payload. Raises Refused 400."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise Refused(400, "malformed-json", "the body is not JSON that can be read") from None
    if not isinstance(found, dict):
        raise Refused(400, "bad-request", "the body is no JSON object")
    return found


def action_of(name: str, payload: Mapping[str, Any]) -> str:
    """What kind of an event it is; a push has none."""
    action = payload.get("action")
    return action if isinstance(action, str) and name != "push" else ""


def store(on: System, id: str, name: str, payload: Mapping[str, Any], *, missed: bool = False) -> str:
    """Store a delivery and hint at it. One that is stored is hinted at again: done twice, it is done once.

    Raises Refused 400 for one that is not as GitHub documents it, which is stored as well.
    """
    event, wrong = _read(name, payload)
    now = on.world.now()
    row = Delivery(
        id=id, name=name, action=action_of(name, payload), event=event, received=now, missed=missed,
        outcome=wrong, due=None if wrong else now,
    )  # fmt: skip
    is_new = on.store.commit([Create(row)])
    if wrong.startswith("malformed"):
        raise Refused(400, "bad-payload", wrong)
    if not wrong:
        on.forge.tell({"delivery": id})
    return "stored" if is_new else "known"


def _read(name: str, payload: Mapping[str, Any]) -> tuple[Event | None, str]:
    """What a payload says; or why nothing follows from it."""
    try:
        event = deliveries.read(name, payload)
    except Malformed as error:
        return None, f"malformed: {error}"
    return event, "" if event else IGNORED
