"""Users ask for privileges; operators see who asks, and grant or refuse. [SEC-2]

To grant is what it always was: users.change_privilege, which also closes the request.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from penstock.domain.users import requests
from penstock.domain.users.requests import LISTING, REASON_CHARS, PrivilegeRequest, request_key
from penstock.domain.users.users import ACT_AS, User, is_name, is_privilege
from penstock.kernel.errors import Fault, Refused, not_found
from penstock.kernel.rows import Change, Create, Replace
from penstock.listings import every
from penstock.system import System, current_site, transact
from penstock.usecases.users import audit, users

BEFORE = " "
"""A sort key before the names of all privileges."""


def ask(on: System, user: User, privilege: str, reason: str, owner: str | None = None) -> PrivilegeRequest:
    """Ask for a privilege, for oneself or for a repository; who asks again says the reason anew.

    Raises Refused 400 without a reason, 403 for others, 409 if it is there already, 422 if nothing needs it.
    """
    if not reason.strip() or len(reason) > REASON_CHARS:
        why = f"say why, in 1 to {REASON_CHARS} characters"
        raise Refused(400, "bad-request", why, [Fault(why, where="reason")])
    whose = users.resolve_owner(on, user, owner)
    _check_useful(on, whose, privilege)
    asked = PrivilegeRequest(user=whose.name, privilege=privilege, reason=reason, by=user.name, since=on.world.now())

    def decide() -> tuple[Sequence[Change], PrivilegeRequest]:
        was = on.store.get(asked.key, PrivilegeRequest)
        return [Replace(was, asked) if was else Create(asked)], asked

    return transact(on, decide)


def _check_useful(on: System, user: User, privilege: str) -> None:
    if user.may(privilege):
        raise Refused(409, "privilege-held", f"{user.name} has the privilege {privilege[:200]!r} already")
    known = sorted(requests.wanted(current_site(on).privileges(), user))
    if privilege not in known:
        close = get_close_matches(privilege, known, 1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(known)}"
        why = f"nothing here needs the privilege {privilege[:200]!r}; {hint}"
        raise Refused(422, "unknown-privilege", why, [Fault(why, where="privilege", hint=hint)])


def refuse(on: System, by: User, name: str, privilege: str, answer: str) -> PrivilegeRequest:
    """Refuse a request, and tell the user why. Raises Refused 404, or 409 if it was decided."""
    may_be = is_name(name) and is_privilege(privilege)

    def decide() -> tuple[Sequence[Change], PrivilegeRequest]:
        was = on.store.get(request_key(name, privilege), PrivilegeRequest) if may_be else None
        if was is None:
            raise not_found("request", f"{name[:200]} for {privilege[:200]}")
        if not was.is_open:
            how = "granted" if was.is_granted else "refused"
            raise Refused(409, "request-decided", f"{was.decided_by} {how} it already: revoke the privilege instead")
        after = requests.decide(was, by.name, on.world.now(), grant=False, answer=answer)
        changes = audit.record(on, [Replace(was, after)], by.name, "refuse", f"user {name}", f"{privilege}: {answer}")
        return changes, after

    return transact(on, decide)


def list_requests(on: System, user: User, *, everybody: bool) -> list[PrivilegeRequest]:
    """The requests that wait, of everybody; or one's own, with what became of them. The oldest first. [SEC-2]

    One's own are those for oneself, and those that one made for repositories which one may act for.
    """
    if everybody:
        users.require_admin(user)
        shown = [row for row in every(on, LISTING, PrivilegeRequest) if row.is_open]
    else:
        shown = [row for row in _readable(on, user) if row.by == user.name or row.user in user.names]
    return sorted(shown, key=lambda row: (row.since, row.user, row.privilege))


def _readable(on: System, user: User) -> Iterator[PrivilegeRequest]:
    """The requests for a user, and for the repositories that they may act for. Who may act for all reads all."""
    if user.may(ACT_AS):
        return every(on, LISTING, PrivilegeRequest)
    prefix = f"{ACT_AS}."
    others = [each.removeprefix(prefix) for each in user.privileges if each.startswith(prefix)]
    keys = [request_key(name, "") for name in (*user.names, *others)]
    return (row for key in keys for row in on.store.find(key.pk, "", PrivilegeRequest, after=BEFORE))
