"""Requests for privileges: a user asks, operators grant or refuse."""

from __future__ import annotations

from typing import Annotated

from penstock.api.app import Caller, Operator, Router
from penstock.api.shapes import view
from penstock.domain.users.requests import REASON_CHARS, PrivilegeRequest
from penstock.domain.users.users import READ, USERS
from penstock.kernel.frozen import dataclass
from penstock.kernel.limits import Bound
from penstock.system import System
from penstock.usecases.users import requests

router = Router("users")


@dataclass(frozen=True)
class AskPrivilege:
    """Why somebody needs a privilege."""

    reason: Annotated[str, Bound(least=1, most=REASON_CHARS), "What for, so that an operator can decide."]
    owner: Annotated[str | None, Bound(most=200), "The repository that is to have it, if that is not the caller."] = (
        None
    )


@dataclass(frozen=True)
class RefusePrivilege:
    """Why a request is refused."""

    reason: Annotated[str, Bound(least=1, most=REASON_CHARS), "Why, for who asked."]


@dataclass(frozen=True)
class PrivilegeRequestView:
    """A request for a privilege."""

    user: Annotated[str, "The user or repository that is to have it."]
    privilege: Annotated[str, "The privilege."]
    reason: Annotated[str, "What for."]
    by: Annotated[str, "Who asked."]
    since: Annotated[str, "When, as RFC 3339."]
    decided: Annotated[str | None, "When an operator decided; null until then."]
    decided_by: Annotated[str | None, "The operator; null until then."]
    is_granted: Annotated[bool, "Whether it was granted."]
    answer: Annotated[str | None, "What the operator said, if it was refused."]


@dataclass(frozen=True)
class PrivilegeRequestPage:
    """Requests for privileges, the oldest first."""

    items: Annotated[list[PrivilegeRequestView], "The requests."]
    next: Annotated[str | None, "Always null: all fit into one page."]


@router.put("/v1/privileges/{privilege}/request", "Ask for a privilege", USERS)
def ask_privilege(on: System, user: Caller, privilege: str, ask: AskPrivilege) -> PrivilegeRequestView:
    return show(requests.ask(on, user, privilege, ask.reason, ask.owner))


@router.get("/v1/privileges/requests", "List your requests for privileges; for operators, those that wait", READ)
def list_privilege_requests(
    on: System,
    user: Caller,
    *,
    all: Annotated[bool, "Whether to list those that wait, of every user, which is for operators."] = False,
) -> PrivilegeRequestPage:
    return PrivilegeRequestPage([show(row) for row in requests.list_requests(on, user, everybody=all)], None)


@router.post("/v1/users/{name}/privileges/{privilege}/refuse", "Refuse a user's request for a privilege", USERS)
def refuse_privilege(
    on: System, user: Operator, name: str, privilege: str, ask: RefusePrivilege
) -> PrivilegeRequestView:
    return show(requests.refuse(on, user, name, privilege, ask.reason))


def show(row: PrivilegeRequest) -> PrivilegeRequestView:
    """A request for a privilege."""
    return view(PrivilegeRequestView, row, decided_by=row.decided_by or None, answer=row.answer or None)
