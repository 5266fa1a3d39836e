"""Deliveries: what GitHub says happened. Only the few facts are stored that something follows from.

The id that GitHub gave a delivery identifies it, so a repeated delivery counts once. `ListCheck` records how far the
deliveries that GitHub lists were compared with those received.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, ClassVar

from penstock.domain.github.names import LOGIN
from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Key, Place, Row

KEPT_FOR = timedelta(days=30)
"""How long a delivery is known: longer than GitHub can be asked for it."""

REMEMBERED_FOR = timedelta(days=400)
"""How long a payload is known, so that whoever has one cannot have it processed again under another id."""

BODY_BYTES = 1024 * 1024
"""The largest body that is accepted. Larger deliveries are fetched with the missed ones."""

ACTIONS: Mapping[str, tuple[str, ...]] = {
    "push": ("",),
    "pull_request": ("opened", "reopened", "synchronize"),
    "check_run": ("requested_action", "rerequested"),
    "check_suite": ("rerequested",),
}
"""The events and actions that matter."""

_ID = r"[A-Za-z0-9-]{1,64}"


_NAME = r"[A-Za-z0-9_-]{1,100}/[A-Za-z0-9._-]{1,100}"


_SHA = r"[0-9a-f]{40}([0-9a-f]{24})?"


_BRANCH = r"[^\x00-\x20\x7f~^:?*\[\\\ud800-\udfff]{1,255}"


_OWN = r"[\x20-\x7e]{0,200}"


HEADS = "refs/heads/"


class Malformed(ValueError):
    """A payload that is not as GitHub documents it; the text says where."""


@dataclass(frozen=True)
class Event:
    """What happened to a commit of a repository, and who did it.

    `line` is what the commit is the newest of: `heads/main`, or `pull/12`. `people` are those whose work it is. Of a
    check run, `check` is our own id of it, and `asked` is which button was pressed. `is_private`: the repository is.
    """

    name: str
    action: str
    app: int
    installation: int
    repository: str
    repository_id: int
    sender: str
    sha: str
    line: str = ""
    branch: str = ""
    number: int = 0
    people: tuple[str, ...] = ()
    check: str = ""
    asked: str = ""
    is_private: bool = False


@dataclass(frozen=True, kw_only=True)
class Delivery(Row):
    """One delivery. `outcome` is what it led to; until then it is due. Nothing follows from one without an `event`.

    `pressed` is the digest of the payload of one that says that somebody pressed a button.
    """

    kind: ClassVar[str] = "delivery"
    id: str
    name: str
    action: str
    event: Event | None
    received: datetime
    missed: bool = False
    outcome: str = ""
    tries: int = 0
    due: datetime | None = None
    pressed: str = ""

    @property
    def key(self) -> Key:
        return delivery_key(self.id)

    @property
    def place(self) -> Place:
        return Place("deliveries", f"{self.received:%Y%m%dT%H%M%S%f}.{self.id}")

    @property
    def deadline(self) -> datetime | None:
        return self.due

    @property
    def expiry(self) -> datetime:
        return self.received + KEPT_FOR


@dataclass(frozen=True, kw_only=True)
class Payload(Row):
    """That a payload was delivered, and first as `delivery`. GitHub signs the payload, not the id beside it.

    It is deleted when nothing came of a press: nothing in the payload says when the button was pressed, so the next
    press may have the same.
    """

    kind: ClassVar[str] = "payload"
    is_recreated: ClassVar[bool] = True
    digest: str
    delivery: str
    received: datetime

    @property
    def key(self) -> Key:
        return payload_key(self.digest)

    @property
    def expiry(self) -> datetime:
        return self.received + REMEMBERED_FOR


def payload_key(digest: str) -> Key:
    """Where it is written that a payload was delivered."""
    return Key(f"delivery#payload#{digest}", "payload")


def digest_of(payload: Mapping[str, Any]) -> str:
    """A digest of a payload, however it was written. Raises Malformed for one that is nested too deeply."""
    try:
        text = json.dumps(payload, sort_keys=True, separators=(",", ":"))
    except RecursionError:
        raise Malformed("it is nested too deeply") from None
    return hashlib.sha256(text.encode()).hexdigest()


def delivery_key(id: str) -> Key:
    """Where a delivery is."""
    return Key(f"delivery#{id}", "delivery")


def is_id(text: str) -> bool:
    """Whether a text can be a delivery's id."""
    return re.fullmatch(_ID, text) is not None


def is_relevant(name: str, action: str) -> bool:
    """Whether anything can follow from an event of this kind."""
    return action in ACTIONS.get(name, ())


def read(name: str, payload: Mapping[str, Any]) -> Event | None:
    """What a payload says; None when nothing follows from it, as from a tag. Raises Malformed."""
    action = _match(payload, "action", r"[a-z_]{1,50}") if name != "push" else ""
    readers = {"push": _push, "pull_request": _pull_request, "check_run": _check_run, "check_suite": _check_suite}
    more = readers[name](payload) if is_relevant(name, action) else None
    if more is None:
        return None
    return Event(
        name=name,
        action=action,
        installation=_number(payload, "installation.id"),
        repository=_match(payload, "repository.full_name", _NAME).lower(),
        repository_id=_number(payload, "repository.id"),
        sender=_match(payload, "sender.login", LOGIN),
        is_private=_find(payload, "repository.private") is not False,  # whoever does not say so may be
        **{"app": 0, **more},
    )


def _push(payload: Mapping[str, Any]) -> dict[str, Any] | None:
    """A branch has a new end; tags, and branches that are gone, are nothing to us."""
    ref = _text(payload, "ref")
    if not ref.startswith(HEADS) or payload.get("deleted") is True:
        return None
    branch = ref.removeprefix(HEADS)
    if not re.fullmatch(_BRANCH, branch):
        raise Malformed("`ref` is no branch")
    people = (_match(payload, "sender.login", LOGIN),)
    return {"sha": _match(payload, "after", _SHA), "line": f"heads/{branch}", "branch": branch, "people": people}


def _pull_request(payload: Mapping[str, Any]) -> dict[str, Any]:
    """A pull request has a new end. Whose work it is: of who opened it, and of who pushed to it."""
    number = _number(payload, "pull_request.number")
    people = {_match(payload, "pull_request.user.login", LOGIN), _match(payload, "sender.login", LOGIN)}
    sha = _match(payload, "pull_request.head.sha", _SHA)
    return {"sha": sha, "line": f"pull/{number}", "number": number, "people": tuple(sorted(people))}


def _check_run(payload: Mapping[str, Any]) -> dict[str, Any]:
    asked = "rerun"
    if payload["action"] == "requested_action":
        asked = _match(payload, "requested_action.identifier", _OWN)
    return {
        "app": _number(payload, "check_run.app.id"),
        "sha": _match(payload, "check_run.head_sha", _SHA),
        "check": _match(payload, "check_run.external_id", _OWN),
        "asked": asked,
    }


def _check_suite(payload: Mapping[str, Any]) -> dict[str, Any]:
    app, sha = _number(payload, "check_suite.app.id"), _match(payload, "check_suite.head_sha", _SHA)
    return {"app": app, "sha": sha, "asked": "rerun"}


def _find(payload: Mapping[str, Any], path: str) -> Any:
    found: Any = payload
    for step in path.split("."):
        found = found.get(step) if isinstance(found, Mapping) else None
    return found


def _text(payload: Mapping[str, Any], path: str) -> str:
    found = _find(payload, path)
    if not isinstance(found, str):
        raise Malformed(f"`{path}` is no text")
    return found


def _match(payload: Mapping[str, Any], path: str, shape: str) -> str:
    found = _text(payload, path)
    if not re.fullmatch(shape, found):
        raise Malformed(f"`{path}` does not look as it should")
    return found


def _number(payload: Mapping[str, Any], path: str) -> int:
    found = _find(payload, path)
    if isinstance(found, bool) or not isinstance(found, int) or not 0 < found < 2**53:
        raise Malformed(f"`{path}` is no number of GitHub's")
    return found


HISTORY = timedelta(days=3)
"""How far back GitHub lists deliveries. Source: GitHub, "Redelivering webhooks"."""

OVERLAP = timedelta(hours=1)
"""How much of the list is checked twice, for deliveries that are listed late."""


@dataclass(frozen=True, kw_only=True)
class ListCheck(Row):
    """The last look at GitHub's list: when it began, and the ETag of what it saw."""

    kind: ClassVar[str] = "look"
    at: datetime
    etag: str = ""
    found: int = 0

    @property
    def key(self) -> Key:
        return LIST_CHECK_KEY


LIST_CHECK_KEY = Key("github", "look")


def since(last: ListCheck | None, now: datetime) -> datetime:
    """From when deliveries are compared."""
    earliest = now - HISTORY
    return max(last.at - OVERLAP, earliest) if last else earliest


@dataclass(frozen=True, kw_only=True)
class Pause(Row):
    """GitHub asked us to slow down: nobody calls for an installation until then. 0 is the App itself."""

    kind: ClassVar[str] = "pause"
    installation: int
    until: datetime

    @property
    def key(self) -> Key:
        return pause_key(self.installation)

    @property
    def expiry(self) -> datetime:
        return self.until


def pause_key(installation: int) -> Key:
    """Where it is noted that an installation is to be left alone."""
    return Key("github", f"pause#{installation}")
