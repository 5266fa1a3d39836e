"""Deliveries of GitHub's webhook: received, fetched if they were missed, listed for operators, and processed.

A signature is checked first, the delivery stored next, and only then does anything follow. `process` is called for a
stored delivery: a commit was pushed, or somebody pressed a button.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any

from penstock.domain.github import commits as github_commits
from penstock.domain.github import deliveries as github_deliveries
from penstock.domain.github.checks import CONTROL, CheckRun
from penstock.domain.github.commits import CheckSet, Stage, Tip, set_key, tip_key
from penstock.domain.github.deliveries import (
    BODY_BYTES,
    LIST_CHECK_KEY,
    Delivery,
    Event,
    ListCheck,
    Malformed,
    Payload,
    delivery_key,
    is_id,
    is_relevant,
    payload_key,
)
from penstock.kernel.errors import RateLimited, Refused, not_found
from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Change, Create, Delete, Replace
from penstock.ports import GitHubRequest
from penstock.system import System, transact
from penstock.usecases import published
from penstock.usecases.github import client, hints, repositories
from penstock.usecases.github import commits as github_github_commits
from penstock.usecases.github.client import Repository
from penstock.usecases.jobs import reviews
from penstock.usecases.users import audit

IGNORED, GIVEN_UP = "ignored", "given up"
"""What outcomes begin with of which nothing came."""

PATH = "/app/hook/deliveries"

PAGES_MOST = 100
"""How many pages of 100 one call reads. After an outage that lost more, several calls are needed."""


@dataclass(frozen=True)
class WebhookRequest:
    """A request as received: the body to the last byte, since that is what was signed."""

    body: bytes
    signature: str
    id: str
    name: str


def receive(on: System, hook: WebhookRequest) -> str:
    """Receive a delivery; whether it was stored, known, or ignored. Raises Refused 400, 401 or 413. [SEC-2]"""
    if len(hook.body) > BODY_BYTES:
        raise Refused(413, "body-too-big", f"the body has more than {BODY_BYTES} bytes")
    if not is_signed(on.forge.secret(), hook.body, hook.signature):
        raise Refused(401, "bad-signature", "X-Hub-Signature-256 is not that of this body")
    if not is_id(hook.id):
        raise Refused(400, "bad-request", "X-GitHub-Delivery is no id")
    payload = parse_payload(hook.body)
    if not is_relevant(hook.name, action_of(hook.name, payload)):
        return IGNORED
    return store_delivery(on, hook.id, hook.name, payload)


def is_signed(secret: str, body: bytes, signature: str) -> bool:
    """Whether a body was signed with the webhook's secret, in constant time."""
    wanted = "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(wanted.encode(), signature.encode("utf-8", "replace"))


def parse_payload(body: bytes) -> Mapping[str, Any]:
    """A payload. Raises Refused 400."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise Refused(400, "malformed-json", "the body is not JSON that can be read") from None
    if not isinstance(found, dict):
        raise Refused(400, "bad-request", "the body is no JSON object")
    return found


def action_of(name: str, payload: Mapping[str, Any]) -> str:
    """The action of an event; a push has none."""
    action = payload.get("action")
    return action if isinstance(action, str) and name != "push" else ""


def store_delivery(on: System, id: str, name: str, payload: Mapping[str, Any], *, missed: bool = False) -> str:
    """Store a delivery and send a message for it. A known one only gets the message; of a replayed one nothing follows.

    Raises Refused 400 for one that is not as GitHub documents it, which is stored as well.
    """
    event, wrong, digest = _read(name, payload)
    now = on.world.now()
    row = Delivery(
        id=id, name=name, action=action_of(name, payload), event=event, received=now, missed=missed,
        outcome=wrong, due=None if wrong else now, pressed="" if event is None or event.line else digest,
    )  # fmt: skip
    # A payload that came before under another id is a replay: nothing of it is stored.
    once = [] if wrong else [Create(Payload(digest=digest, delivery=id, received=now))]
    is_new = on.store.commit([Create(row), *once])
    if wrong.startswith("malformed"):
        raise Refused(400, "bad-payload", wrong)
    if not wrong:
        on.forge.enqueue({"delivery": id})  # of a replay there is no row, so nothing follows
    return "stored" if is_new else "known"


def _read(name: str, payload: Mapping[str, Any]) -> tuple[Event | None, str, str]:
    """What a payload says, or why it has no effect; and its digest."""
    try:
        event = github_deliveries.read(name, payload)
        digest = github_deliveries.digest_of(payload) if event else ""
    except Malformed as error:
        return None, f"malformed: {error}", ""
    return event, "" if event else IGNORED, digest


def fetch_missed(on: System) -> int:
    """Compare what GitHub sent with what arrived, and fetch the rest. Returns how many. Safe to repeat.

    How far it has read is recorded only when it has read everything: after a crash it reads the same again.
    """
    with suppress(RateLimited):  # repeated in a few minutes
        return _fetch_missed(on)
    return 0


def _fetch_missed(on: System) -> int:
    last, now = on.store.get(LIST_CHECK_KEY, ListCheck), on.world.now()
    since = github_deliveries.since(last, now)
    first = client.call(on, GitHubRequest("GET", PATH, query={"per_page": "100"}, etag=last.etag if last else ""))
    if first.status != 200:
        return 0
    found, response = 0, first
    for _ in range(PAGES_MOST):
        found += sum(_fetch(on, item) for item in response.body if is_relevant(item["event"], item["action"] or ""))
        if response.next is None or not response.body or _time(response.body[-1]) < since:
            break
        response = client.call(on, GitHubRequest("GET", PATH, query=response.next))
        if response.status != 200:
            return found
    else:
        return found
    seen = ListCheck(at=now, etag=first.etag, found=found)
    on.store.commit([Replace(last, replace(seen, version=last.version)) if last else Create(seen)])
    return found


def _fetch(on: System, item: Mapping[str, Any]) -> int:
    """Fetch one delivery; 1 if it is new."""
    guid = str(item["guid"])
    if not is_id(guid) or on.store.get(delivery_key(guid), Delivery):
        return 0
    response = client.call(on, GitHubRequest("GET", f"{PATH}/{int(item['id'])}"))
    if response.status != 200:
        return 0
    with suppress(Refused):  # it is stored with its error
        store_delivery(on, guid, str(item["event"]), response.body["request"]["payload"], missed=True)
    return 1


def _time(item: Mapping[str, Any]) -> datetime:
    return datetime.fromisoformat(str(item["delivered_at"]))


def list_deliveries(on: System, limit: int, page: str) -> tuple[list[Delivery], str | None]:
    """Some deliveries, newest first, and the next page."""
    rows = on.store.listed("deliveries", Delivery, limit=limit, after=page, newest=True)
    return rows, rows[-1].place.sort if len(rows) == limit else None


def list_commits(on: System, limit: int, page: str) -> tuple[list[CheckSet], str | None]:
    """Some of the known commits, newest first, and the next page."""
    rows = on.store.listed("checksets", CheckSet, limit=limit, after=page, newest=True)
    return rows, rows[-1].place.sort if len(rows) == limit else None


def redeliver(on: System, id: str, by: str) -> Delivery:
    """Have a delivery processed again. Raises Refused 404, and 409 for one without effect."""

    def decide() -> tuple[Sequence[Change], Delivery]:
        row = on.store.get(delivery_key(id), Delivery) if is_id(id) else None
        if row is None:
            raise not_found("delivery", id[:64])
        if row.event is None:
            raise Refused(409, "delivery-leads-nowhere", f"nothing follows from delivery {id}: it was {row.outcome}")
        now = replace(row, outcome="", tries=0, due=on.world.now())
        return audit.record(on, [Replace(row, now)], by, "redeliver", f"delivery {id}"), now

    row = transact(on, decide)
    hints.send(on, {"delivery": id})
    return row


def record(on: System, row: Delivery, outcome: str) -> None:
    """Record what a delivery led to. A press of which nothing came is forgotten, so that the next one counts. [SEC-2]

    Whoever saw it may send it again, too, as if its sender pressed once more; that is judged as it is then.
    """
    in_vain = row.pressed and outcome.startswith((IGNORED, GIVEN_UP))
    known = on.store.get(payload_key(row.pressed), Payload) if in_vain else None
    forgotten = [Delete(known)] if known and known.delivery == row.id else []
    on.store.commit([Replace(row, replace(row, outcome=outcome, due=None)), *forgotten])


def process(on: System, event: Event) -> str:
    """Do what follows from an event; returns that in a few words. Safe to repeat."""
    app = client.app(on)
    if not app.serves(event.repository):
        return "ignored: the site does not serve this repository"
    of = Repository(event.installation, event.repository_id, event.repository)
    if event.line:
        return _commit_pushed(on, of, event)
    if event.app != app.app:
        return "ignored: another App's"
    return _button_pressed(on, of, event)


def _commit_pushed(on: System, of: Repository, event: Event) -> str:
    """A branch or pull request points to a commit; or did, when this was sent: then GitHub is asked."""
    owner = event.repository.replace("/", ":")
    if event.is_private and repositories.may_be(on, owner, of.id):
        published.make_private(on, owner)
    tip = on.store.get(tip_key(of.id, event.line), Tip)
    is_tip = tip is None or tip.sha == event.sha or client.head_of(on, of, event.line) == event.sha
    transact(on, lambda: _commit_changes(on, event, is_tip=is_tip))
    on.forge.enqueue({"set": [of.id, event.sha]})
    if is_tip and tip and tip.sha != event.sha:
        on.forge.enqueue({"set": [of.id, tip.sha]})
    return f"jobs of {event.sha[:12]}" if is_tip else f"jobs of {event.sha[:12]}, which is not the newest"


def _commit_changes(on: System, event: Event, *, is_tip: bool) -> tuple[Sequence[Change], None]:
    """The commit's set, and that the one before is no longer the newest: in one commit."""
    now = on.world.now()
    was = on.store.get(set_key(event.repository_id, event.sha), CheckSet)
    found = github_commits.add_people(was or github_commits.new_set(event, now), event.people, now)
    found = github_commits.update_line(found, event.line, now, is_tip=is_tip)
    changes: list[Change] = [] if found == was else [Replace(was, found) if was else Create(found)]
    if is_tip:
        tip = on.store.get(tip_key(event.repository_id, event.line), Tip)
        fresh = Tip(repository_id=event.repository_id, line=event.line, sha=event.sha, since=now)
        if tip is None:
            changes.append(Create(fresh))
        elif tip.sha != event.sha:
            changes.append(Replace(tip, replace(fresh, version=tip.version)))
            before = on.store.get(set_key(event.repository_id, tip.sha), CheckSet)
            changes += [Replace(before, github_commits.remove_line(before, event.line, now))] if before else []
    return changes, None


def _button_pressed(on: System, of: Repository, event: Event) -> str:
    """Somebody pressed a button. Only people who may write to the repository count. [SEC-2]"""
    if not client.may_write(on, of, event.sender):
        return f"ignored: {event.sender} may not write to {of.name}"
    found = on.store.get(set_key(of.id, event.sha), CheckSet)
    if found is None:
        return "ignored: nothing is known of this commit"
    if event.name == "check_suite":
        return github_github_commits.run_again(on, found)
    check = _pressed_check(on, of, event)
    if check is None:
        return "ignored: this check is not, or no longer, ours"
    if event.asked == "approve":
        return _approve(on, check, event.sender)
    if event.asked == "cancel":
        return github_github_commits.cancel(on, check, event.sender)
    if event.asked == "review":
        return _review(on, found, check, event.sender)
    return github_github_commits.run_again(on, found, check) if event.asked == "rerun" else "ignored: an unknown button"


def _pressed_check(on: System, of: Repository, event: Event) -> CheckRun | None:
    """The check whose button it was: of this repository, this commit, and its present run. [SEC-2]"""
    rows = on.store.find(set_key(of.id, event.sha).pk, "check#", CheckRun)
    return next((row for row in rows if row.external_id == event.check), None)


def _review(on: System, found: CheckSet, check: CheckRun, by: str) -> str:
    """Approve the job of a check for its environment, if it is for them to review."""
    job = github_github_commits.job_of(on, check)
    if job is None:
        return "ignored: there is nothing to review"
    return reviews.decide_at_github(on, job, by, [login for people in found.people for login in people])


def _approve(on: System, check: CheckRun, by: str) -> str:
    """Let the jobs of one commit run, and of no other."""
    if check.number != CONTROL:
        return "ignored: there is nothing to approve"

    def decide() -> tuple[Sequence[Change], bool]:
        was = on.store.get(set_key(check.repository_id, check.sha), CheckSet)
        now = github_commits.approve(was, by, on.world.now()) if was else was
        return ([Replace(was, now)] if was and now and now != was else []), bool(was and was.stage is Stage.AWAITING)

    if not transact(on, decide):
        return "ignored: nothing awaits approval"
    on.forge.enqueue({"set": [check.repository_id, check.sha]})
    return f"approved by {by}"
