"""Users: who shows a token, who there is, and what privileges they have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from penstock.domain.artifacts.artifacts import Artifact
from penstock.domain.jobs.jobs import Job, State
from penstock.domain.probes import canaries
from penstock.domain.site.site import Limits, Site
from penstock.domain.users import requests, users
from penstock.domain.users.requests import PrivilegeRequest, request_key
from penstock.domain.users.users import (
    ACT_AS,
    ADMIN,
    Bearer,
    Need,
    Standing,
    Tally,
    Token,
    User,
    explain_status,
    token_key,
    user_key,
)
from penstock.kernel.errors import Refused, Throttled, not_found
from penstock.kernel.rows import Change, Create, Key, Replace, Row
from penstock.system import System, transact
from penstock.usecases.jobs import backlogs
from penstock.usecases.users import audit

PRIVILEGES = 500
"""How many privileges one user may have."""

_NAMES = (
    "a user's name is 1 to 64 of a-z 0-9 . _ - and begins with a letter or digit; a repository's is its owner's, a "
    "colon, and its own: oxide:hubris"
)


def authenticate(on: System, header: str | None, need: Need = users.ANY) -> Bearer:
    """Who shows a token in a request, on a route with this need. [SEC-2]

    Raises Refused 401, or 403 for a missing scope.

    It reads the token, and then in one batch the user and all tokens that it comes from.
    """
    return _bearer(on, *_shown(on, _secret(header)), need)


def authenticate_session(on: System, secret: str, need: Need = users.ANY) -> Bearer:
    """Who shows a session's secret, in a cookie. That of another token is good for nothing there. [SEC-2]

    Raises Refused 401, or 403 for a missing scope.
    """
    token, user = _shown(on, secret)
    if token.session is None:
        raise Refused(401, "no-session", "this is no session: sign in")
    return _bearer(on, token, user, need)


def _bearer(on: System, token: Token, user: User, need: Need) -> Bearer:
    bearer = users.bearer(user, token, need)
    if bearer is None:
        raise missing_scope(need, token)
    if token.is_stale(on.world.now()):
        with suppress(Throttled):  # who else writes it now did so too, or revoked it
            on.store.commit([Replace(token, replace(token, used=on.world.now(), user=user.name))])
    return bearer


def _secret(header: str | None) -> str:
    scheme, _, secret = (header or "").partition(" ")
    if scheme.lower() != "bearer" or not secret.strip():
        raise Refused(401, "no-token", "show a token: Authorization: Bearer <token>")
    return secret.strip()


def _shown(on: System, secret: str) -> tuple[Token, User]:
    """The token that a secret is of, and its user, if both are good. Raises Refused 401."""
    if users.is_old_token(secret):
        raise Refused(401, "old-token", "tokens of this form are no longer accepted; ask an operator for a new one")
    return _good(on, shown_token(on, secret))


def shown_token(on: System, secret: str) -> Token | None:
    """The token that a secret is of, also one that is not good any more."""
    id = users.token_id_in(secret)
    token = on.store.get(token_key(id), Token) if id else None
    return token if token and token.is_shown_by(secret) else None


def good_token(on: System, id: str) -> tuple[Token, User]:
    """A token by its id, and its user, if both are good. Raises Refused 401. [SEC-2]"""
    return _good(on, on.store.get(token_key(id), Token))


def _good(on: System, token: Token | None) -> tuple[Token, User]:
    """A token and its user, if both are good. Raises Refused 401."""
    if token is None:
        raise Refused(401, "unknown-token", "this token is not known here, or no longer")
    if token.revoked:
        raise Refused(401, "token-revoked", f"this token was revoked at {token.revoked.at:%Y-%m-%d %H:%M:%SZ}")
    if token.has_expired(on.world.now()):
        raise Refused(401, "token-expired", f"this token expired at {token.expires:%Y-%m-%d %H:%M:%SZ}")
    return token, _good_user(on, token)


def _good_user(on: System, token: Token) -> User:
    """The user of a token, none of whose ancestors is revoked. Raises Refused 401."""
    found = on.store.rows_at([user_key(token.user), *map(token_key, token.ancestors)])
    if users.is_any_gone((_token(found, id) for id in token.ancestors), on.world.now()):
        raise Refused(401, "token-revoked", "this token was made with another one that was revoked")
    user = found.get(user_key(token.user))
    user = present(on, user if isinstance(user, User) else None)
    if user is None:
        raise Refused(401, "unknown-token", "the user of this token is gone")
    if user.status:
        raise Refused(401, f"user-{user.status.standing}", f"{explain_status(user)}: this token is refused")
    return user


def _token(found: Mapping[Key, Row], id: str) -> Token | None:
    row = found.get(token_key(id))
    return row if isinstance(row, Token) else None


def missing_scope(need: Need, token: Token) -> Refused:
    """The answer to who shows a token without the scope that is needed."""
    has = ", ".join(token.scopes)
    if not need.scope:
        return Refused(403, "scope-missing", f"a host's token is for the host's own calls only; its scopes are: {has}")
    return Refused(
        403, "scope-missing", f"this needs a token with the scope {need.scope!r}; the scopes of this one: {has}"
    )


def require_admin(user: User) -> None:
    """Raises Refused 403 unless the user is an operator. [SEC-2]"""
    if not user.is_admin:
        raise Refused(403, "privilege-missing", f"this needs the privilege {ADMIN!r}")


def find(on: System, name: str) -> User:
    """A user by name, also a former one. Raises Refused 404."""
    user = by_name(on, name) if users.is_name(name) else None
    if user is None or user.is_a(Standing.REMOVED):
        raise not_found("user", name)
    return user


def by_name(on: System, name: str) -> User | None:
    """The user who has a name, or had it; None if nobody ever did."""
    return present(on, on.store.get(user_key(name), User))


def present(on: System, user: User | None) -> User | None:
    """The present row of a user; for a former name, that of the name that followed."""
    if user and user.status and user.status.to:
        return on.store.get(user_key(user.status.to), User)
    return user


def create(on: System, name: str, privileges: Sequence[str], by: str = "") -> User:
    """Create a user. Raises Refused 409 if the name is taken."""
    check_name(name)
    user = User(name=name, privileges=_validated(privileges), created=on.world.now())
    text = ", ".join(user.privileges)
    if not on.store.commit(audit.record(on, [Create(user)], by, "create user", f"user {name}", text)):
        raise Refused(409, "user-exists", f"{name!r} is, or was, the name of another user")
    return user


def check_name(name: str) -> None:
    """Raises Refused for what cannot be a user's name."""
    if not users.is_name(name):
        raise Refused(400, "bad-request", _NAMES)
    if name == canaries.USER:
        raise Refused(409, "user-exists", f"{name!r} is whom the site's own canaries belong to, and nobody's name")


def _validated(privileges: Sequence[str]) -> tuple[str, ...]:
    """Privileges in order, each once. Raises Refused 400 for invalid ones, or too many."""
    for privilege in privileges:
        if not users.is_privilege(privilege):
            raise Refused(400, "bad-request", f"{privilege[:80]!r} cannot be a privilege; they look like target.lab")
    if len(set(privileges)) > PRIVILEGES:
        raise Refused(400, "bad-request", f"a user has at most {PRIVILEGES} privileges")
    return tuple(sorted(set(privileges)))


def change_privilege(on: System, name: str, privilege: str, *, grant: bool, by: str = "") -> User:
    """Grant or revoke a privilege; safe to repeat. A grant closes the request for it, if there is one."""
    _validated([privilege])

    def decide() -> tuple[Sequence[Change], User]:
        was = find(on, name)
        kept = set(was.privileges) - {privilege}
        wanted = _validated([*kept, privilege] if grant else list(kept))
        now = users.with_privileges(was, wanted, by, on.world.now())
        changes: list[Change] = [Replace(was, now)] if now != was else []
        asked = on.store.get(request_key(name, privilege), PrivilegeRequest) if grant else None
        if asked and not asked.is_granted:
            changes.append(Replace(asked, requests.decide(asked, by, on.world.now(), grant=True)))
        return audit.record(on, changes, by, "grant" if grant else "revoke", f"user {name}", privilege), now

    return transact(on, decide)


def resolve_owner(on: System, user: User, owner: str | None) -> User:
    """The user whose job it is: the submitter, or a repository that they may submit for. Raises Refused 403 or 422."""
    if user.status:
        raise Refused(403, f"user-{user.status.standing}", f"{explain_status(user)}, and submits nothing")
    wanted = user.name if owner is None or owner in user.names else owner
    if not user.covers(users.SUBMIT.scope, wanted):
        needed = f"submit:{wanted[:200]}"
        raise Refused(403, "scope-missing", f"this needs a token with the scope {needed!r}, and this one has it not")
    if wanted == user.name:
        return user
    if not users.is_repository(wanted):
        raise Refused(403, "privilege-missing", "jobs are submitted for oneself, or for a repository: oxide:hubris")
    if not user.may_act_for(wanted):
        needed = f"{ACT_AS}.{wanted}"[:200]
        raise Refused(403, "privilege-missing", f"to submit for {wanted[:200]} needs the privilege {needed!r}")
    return _repository(on, wanted)


def _repository(on: System, owner: str) -> User:
    """The repository that jobs are submitted for. Raises Refused 422 if there is none, or it may not act."""
    found = by_name(on, owner)
    if found is None:
        raise Refused(422, "unknown-owner", f"there is no repository {owner[:200]!r}; operators add it as a user")
    if found.status:
        raise Refused(422, f"owner-{found.status.standing}", f"{explain_status(found)}, and nobody submits for it")
    return found


def check_may_submit(on: System, owner: str, site: Site) -> None:
    """Raises Refused 429 if the owner is at a limit now. Only the commit of a job decides. Writes nothing."""
    was = on.store.get(users.tally_key(owner), Tally)
    if was:
        users.check_tally(was, site.limits, on.world.now())


def count_job(on: System, job: Job, script: str, site: Site) -> tuple[Job, list[Change]]:
    """A new job as it is counted, and the changes that count it; it may have to wait in its owner's backlog.

    Raises Refused 429 over a limit of its owner. What the service submits by itself is not counted: canaries.
    """
    if job.provenance.canary:
        return job, []
    now, limits = on.world.now(), site.limits
    was = on.store.get(users.tally_key(job.owner), Tally)
    before = was or Tally(owner=job.owner, at=now)
    users.check_tally(before, limits, now)
    weight = users.weight_of(job.id, limits)
    size = users.bytes_counted(job.id, len(script.encode()), limits.script_bytes)
    after = users.with_job(before, weight, size, limits, now) if weight or size else before
    counted = replace(job, usage=replace(job.usage, counted=weight))
    if not site.has_backlogs or counted.state is not State.QUEUED:
        return counted, _tally_changes(was, after)
    admitted, tally, backlog = backlogs.admit(on, counted, after, site)
    return admitted, [*_tally_changes(was, tally), *backlog]


def admit_job(on: System, job: Job, site: Site) -> tuple[Job, list[Change]]:
    """A job that waits for nothing else any more, as it goes on, or waits in its owner's backlog."""
    was = on.store.get(users.tally_key(job.owner), Tally)
    admitted, tally, backlog = backlogs.admit(on, job, was or Tally(owner=job.owner, at=on.world.now()), site)
    return admitted, [*_tally_changes(was, tally), *backlog]


def _tally_changes(was: Tally | None, after: Tally) -> list[Change]:
    """The change that writes a tally, if anything is counted."""
    if was is None:
        return [Create(after)] if after.jobs or after.begun or after.scripts else []
    return [Replace(was, after)] if after != was else []


def discount_job(on: System, job: Job) -> list[Change]:
    """The changes to write with the end of an attempt: a job that has settled is not counted any more."""
    if not (job.is_settled and (job.usage.counted or job.usage.begun)):
        return []
    was = on.store.get(users.tally_key(job.owner), Tally)
    return [Replace(was, users.without_job(was, job.usage.counted, begun=job.usage.begun))] if was else []


def count_bytes(
    on: System, owner: str, made: Sequence[Artifact], limits: Limits
) -> tuple[list[Artifact], list[Change]]:
    """New inputs and outputs of an owner as they are counted, and the changes that count them.

    Raises Refused 413 if the owner's take too much together. Where none is counted, nothing is read: who has reached
    the limit submits no jobs that could go on like that.
    """
    counted = [replace(each, counted=users.bytes_counted(each.id, each.size, limits.stored_bytes)) for each in made]
    more = sum(artifact.counted for artifact in counted)
    if not more:
        return counted, []
    was = on.store.get(users.tally_key(owner), Tally)
    before = was or Tally(owner=owner, at=on.world.now())
    users.check_bytes(before, more, limits)
    after = users.with_bytes(before, more)
    return counted, [Replace(was, after) if was else Create(after)]


def discount_bytes(on: System, artifact: Artifact) -> list[Change]:
    """The changes to write with the end of an artifact, whose bytes are gone."""
    was = on.store.get(users.tally_key(artifact.by), Tally) if artifact.counted else None
    return [Replace(was, users.with_bytes(was, -artifact.counted))] if was else []
