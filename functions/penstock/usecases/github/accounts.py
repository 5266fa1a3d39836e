"""Signing in with GitHub: the App asks GitHub who somebody is, and operators say which user that is. [SEC-2]

A link is a token of the user's whose secret nobody has: sessions are made from it. It comes from the token of the
operator who links, as any token does. So whoever revokes either ends the link and all its sessions.
docs/decisions/0087-public-repositories.md
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock.domain.github import accounts
from penstock.domain.github.accounts import Account, Person, account_key
from penstock.domain.site.site import GitHubApp
from penstock.domain.users import sessions
from penstock.domain.users import users as rules
from penstock.domain.users.users import ANY, Bearer, Revocation, Token, token_key
from penstock.kernel.errors import DriverError, Refused
from penstock.kernel.rows import Change, Create, Replace
from penstock.ports import GitHubRequest
from penstock.system import System, current_site, transact
from penstock.usecases.users import audit, tokens, users
from penstock.usecases.users.tokens import Wish

CALLBACK = "/v1/session/github/callback"
"""Where GitHub sends browsers back to."""


def _callback(on: System) -> str:
    """The console's own address: the session's cookie is for the place that sets it."""
    return (on.console_url or on.url) + CALLBACK


def is_offered(on: System) -> bool:
    """Whether people may sign in with GitHub here."""
    app = current_site(on).github
    return app is not None and bool(app.client_id)


def begin(on: System) -> tuple[str, str]:
    """Where a browser goes to sign in, and what it keeps until it comes back. Raises Refused 404 without an App."""
    state, verifier = on.world.secret(), on.world.secret()
    return accounts.authorize_url(_app(on), _callback(on), state, verifier), f"{state}.{verifier}"


def finish(on: System, code: str, state: str, kept: str, agent: str) -> tuple[str, Bearer]:
    """A session of who comes back from GitHub: its secret, and who has it. `kept` is what the browser kept. [SEC-2]

    Raises Refused 403 for another browser, or an account that is no user's here; 401 for what GitHub refuses; 404
    without an App; 503 if GitHub does not answer.
    """
    app, verifier = _app(on), accounts.verifier_in(kept, state)
    if not verifier:
        raise Refused(403, "cross-site", "this browser began no such sign-in, or more than 10 minutes ago: begin again")
    user, link = _linked(on, _ask(on, app, code, verifier))
    shown = rules.bearer(user, link, ANY)
    assert shown
    secret, _ = tokens.mint_session(on, shown, sessions.name_for(agent))
    return secret, users.authenticate_session(on, secret)


def link(on: System, by: Bearer, name: str, person: Person) -> Account:
    """Let a GitHub account sign in as a user; it is nobody else's then. Raises Refused 400, 404, 409 or 422. [SEC-2]

    The link lasts as long as the operator's token. Its sessions can do what that can, and no more than the user may.
    """
    if not accounts.is_login(person.login):
        raise Refused(400, "bad-request", "login is that of a GitHub account")

    def decide() -> tuple[Sequence[Change], Account]:
        user = users.find(on, name)
        if rules.is_repository(user.name):
            raise Refused(422, "not-a-person", "nobody signs in as a repository: link the account to a user")
        was = on.store.get(account_key(person.id), Account)
        scopes, _ = tokens.allowed(by.token, Wish(), on.world.now())
        wish = Wish(f"sign-in with GitHub as {person.login}"[: rules.NAME_CHARS], [str(each) for each in scopes])
        lineage = (*by.token.ancestors, by.token.id)
        _, token, made = tokens.draft(on, user, wish, by.name, lineage, by.token.expires)
        now = Account(id=person.id, login=person.login, user=user.name, token=token.id)
        changes = [Replace(was, now) if was else Create(now), *_ended(on, was, by), *made]
        detail = f"GitHub account {person.id}, {person.login}"
        return audit.record(on, changes, by.name, "link account", f"user {user.name}", detail), now

    return transact(on, decide)


def _ended(on: System, was: Account | None, by: Bearer) -> list[Change]:
    """The change that ends a former link of an account, and its sessions."""
    token = on.store.get(token_key(was.token), Token) if was else None
    if token is None or token.revoked:
        return []
    return [Replace(token, replace(token, revoked=Revocation(by.name, on.world.now())))]


def _app(on: System) -> GitHubApp:
    app = current_site(on).github
    if app is None or not app.client_id:
        raise Refused(404, "no-github", "nobody signs in with GitHub here: sign in with a token, or `penstock console`")
    return app


def _ask(on: System, app: GitHubApp, code: str, verifier: str) -> Person:
    """Whom GitHub says a code is of. Its token is used for this question, and kept nowhere. [SEC-1]"""
    try:
        token = on.forge.exchange(app, code, verifier, _callback(on)) if code else ""
        found = on.forge.call(app, GitHubRequest("GET", "/user", token=token)) if token else None
    except DriverError as error:
        raise Refused(503, "github-unreached", f"GitHub does not say who you are: {error}; try again") from error
    person = accounts.person_in(found.body) if found and found.status == 200 else None
    if person is None:
        raise Refused(401, "github-refused", "GitHub did not take this sign-in, or it took too long: begin again")
    return person


def _linked(on: System, person: Person) -> tuple[rules.User, Token]:
    """The user whose account it is, and the link. Raises Refused 403, also for a link that was revoked. [SEC-2]"""
    account = on.store.get(account_key(person.id), Account)
    do = f"an operator links it with `penstock user link NAME --github {person.login}`"
    if account is None:
        raise Refused(403, "github-unlinked", f"the GitHub account {person.login} is no user's here: {do}")
    try:
        token, user = users.good_token(on, account.token)
    except Refused as refused:
        text = f"the GitHub account {person.login} is no user's here any more ({refused.detail}): {do}"
        raise Refused(403, "github-unlinked", text) from None
    return user, token
