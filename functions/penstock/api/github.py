"""The front end for GitHub: commits, deliveries, and renamed repositories."""

from __future__ import annotations

from typing import Annotated

from penstock.api import users
from penstock.api.app import Limit, Operator, Router, TimePage
from penstock.api.shapes import NextPage, view
from penstock.api.users import UserView
from penstock.domain.github.accounts import MOST, Person
from penstock.domain.github.commits import CheckSet
from penstock.domain.github.deliveries import Delivery
from penstock.domain.users.users import OPERATE, READ, USERS
from penstock.kernel import limits
from penstock.kernel.frozen import dataclass
from penstock.kernel.limits import Bound
from penstock.system import System
from penstock.usecases.github import accounts, repositories, webhook

router = Router("github")


@dataclass(frozen=True)
class DeliveryView:
    """A webhook delivery from GitHub."""

    id: Annotated[str, "Its id at GitHub."]
    event: Annotated[str, "The event's name, such as `push`."]
    action: Annotated[str, "The event's action; empty for an event that has none."]
    repository: Annotated[str | None, "The repository, as `owner/name`; null for an event that is ignored."]
    commit: Annotated[str | None, "The commit's SHA; null for an event that is ignored."]
    sender: Annotated[str | None, "The GitHub user who caused it; null for an event that is ignored."]
    received: Annotated[str, "When it was received, as RFC 3339."]
    missed: Annotated[bool, "Whether GitHub failed to deliver it at first, and had to be asked again."]
    outcome: Annotated[str | None, "What it led to; null until it was handled."]


@dataclass(frozen=True)
class DeliveryPage:
    """Some deliveries, newest first."""

    items: Annotated[list[DeliveryView], "The deliveries."]
    next: NextPage


@dataclass(frozen=True)
class AcceptRepository:
    """The repository that has a name now."""

    id: Annotated[int, "Its id at GitHub."]


@dataclass(frozen=True)
class LinkAccount:
    """A GitHub account that is to sign in as a user."""

    id: Annotated[int, Bound(least=1, most=MOST), "Its number at GitHub, `id` of `GET /users/LOGIN`."]
    login: Annotated[str, Bound(most=106), "Its login, for people to read."]


@dataclass(frozen=True)
class AccountView:
    """A GitHub account that signs in as a user."""

    id: Annotated[int, "Its number at GitHub."]
    login: Annotated[str, "The login that it had when it was linked."]
    user: Annotated[str, "The user."]
    token: Annotated[str, "The id of the token that its sessions are made from. Whoever revokes it ends the link."]


@dataclass(frozen=True)
class CommitView:
    """A commit, and how far its jobs are."""

    repository: Annotated[str, "The repository, as `owner/name`."]
    commit: Annotated[str, "The commit's SHA."]
    branch: Annotated[str | None, "The branch; null for a pull request."]
    pull_request: Annotated[int | None, "The number of the pull request; null for a branch."]
    stage: Annotated[str, "How far it is."]
    why: Annotated[str | None, "Why its jobs do not run; null if they do."]
    approved_by: Annotated[str | None, "The GitHub user who approved it; null if nobody had to."]
    since: Annotated[str, "Since when it is known, as RFC 3339."]


@dataclass(frozen=True)
class CommitPage:
    """Some commits, newest first."""

    items: Annotated[list[CommitView], "The commits."]
    next: NextPage


@router.get("/v1/github/commits", "List the commits that jobs came from, newest first", READ)
def list_commits(on: System, user: Operator, *, limit: Limit = limits.PAGE, page: TimePage = "") -> CommitPage:
    rows, following = webhook.list_commits(on, limit, page)
    return CommitPage([show_commit(row) for row in rows], following)


@router.get("/v1/github/deliveries", "List GitHub's webhook deliveries, newest first", READ)
def list_deliveries(on: System, user: Operator, *, limit: Limit = limits.PAGE, page: TimePage = "") -> DeliveryPage:
    rows, following = webhook.list_deliveries(on, limit, page)
    return DeliveryPage([show_delivery(row) for row in rows], following)


@router.post("/v1/github/deliveries/{delivery}/redeliver", "Handle a delivery once more", OPERATE)
def redeliver(on: System, user: Operator, delivery: str) -> DeliveryView:
    return show_delivery(webhook.redeliver(on, delivery, user.name))


@router.post(
    "/v1/github/repositories/{user}/accept",
    "Transfer a user's privileges to the repository that now has this name",
    USERS,
)
def accept_repository(on: System, by: Operator, user: str, ask: AcceptRepository) -> UserView:
    return users.show(repositories.accept(on, user, ask.id, by.name))


@router.put("/v1/users/{name}/github", "Let a GitHub account sign in to the console as a user", USERS)
def link_account(on: System, by: Operator, name: str, ask: LinkAccount) -> AccountView:
    return view(AccountView, accounts.link(on, by, name, Person(ask.id, ask.login)))


def show_commit(row: CheckSet) -> CommitView:
    """A commit, and how far its jobs are."""
    return view(
        CommitView,
        row,
        commit=row.sha,
        branch=row.branch or None,
        pull_request=row.number or None,
        why=row.why or None,
        approved_by=row.approved_by or None,
    )


def show_delivery(row: Delivery) -> DeliveryView:
    """A webhook delivery from GitHub."""
    event = row.event
    return view(
        DeliveryView,
        row,
        event=row.name,
        repository=event.repository if event else None,
        commit=event.sha if event else None,
        sender=event.sender if event else None,
        outcome=row.outcome or None,
    )
