"""Identity tokens of attempts: given out to whom the site allows, as long as the attempt is alive. [SEC-2]"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from penstock import transaction
from penstock.domain import metrics
from penstock.domain.jobs.jobs import Job
from penstock.domain.logs.logs import DETAIL
from penstock.domain.site.site import Identity
from penstock.domain.users import oidc
from penstock.domain.users.users import User, explain_denial, user_key
from penstock.kernel import limits
from penstock.kernel.errors import Refused
from penstock.kernel.rows import Change, Check, Replace
from penstock.system import System
from penstock.usecases.jobs.jobs import LeaseGone, fence
from penstock.usecases.logs import logs
from penstock.usecases.site import configuration
from penstock.usecases.users import audit

ISSUER = "/v1/oidc"
"""Where below the service's URL its tokens' issuer is."""


def issuer(on: System) -> str:
    """Who signs, as tokens say it: the URL below which the public keys are found."""
    return on.url + ISSUER


def token(on: System, job: Job, audience: str) -> dict[str, Any]:
    """A token of the job's present attempt for one audience, and when it ends. It is kept nowhere. [SEC-1]

    That it was asked for is noted first, in the commit that finds the attempt alive: what is signed after that is good
    until the attempt's deadline at most. Raises Refused 400, 409 or 422, and 410 for an attempt that is over. Never
    403: an agent that is told that leaves its job.
    """
    allowed = configuration.current(on).identity
    _check_audience(allowed, audience)
    kid = on.signer.kid()

    def decide() -> tuple[Sequence[Change], dict[str, Any]]:
        fresh, now = _running_job(on, job), on.world.now()
        said = oidc.claims(fresh, issuer(on), audience, on.world.ulid(), now)
        if said["exp"] <= said["iat"]:
            raise Refused(409, "too-late", "the job's time is over: no identity token would outlive this answer")
        if fresh.identities >= limits.IDENTITIES:
            raise Refused(409, "too-many-tokens", f"a job has at most {limits.IDENTITIES} identity tokens")
        counted = Replace(fresh, replace(fresh, identities=fresh.identities + 1))
        changes: list[Change] = [counted, fence(on, fresh), *_check_owner(on, allowed, fresh)]
        detail = f"{said['sub']} for {audience}, attempt {job.attempt}, jti {said['jti']}"
        return audit.record(on, changes, job.owner, "identity token", f"job {job.id}", detail), said

    said = transaction.run(on, decide)
    text = oidc.unsigned(kid, said)
    made = oidc.signed(text, on.signer.sign(text.encode()))
    on.metrics.add(metrics.IDENTITY_TOKENS, target=job.target_resolved)
    logs.append(on, job.id, job.attempt, f"the job was given an identity token for {audience}, {said['jti']}", DETAIL)
    return {"token": made, "expires": datetime.fromtimestamp(said["exp"], UTC).isoformat()}


def _check_audience(allowed: Identity, audience: str) -> None:
    if not oidc.is_audience(audience):
        raise Refused(400, "bad-request", "an audience is 1 to 255 printable characters of ASCII, without blanks")
    if audience not in allowed.audiences:
        known = ", ".join(allowed.audiences) or "none"
        raise Refused(
            422, "audience-not-allowed", f"this site allows no identity tokens for {audience}; it does for: {known}"
        )


def _running_job(on: System, job: Job) -> Job:
    """The job as it is, while the attempt that asks has not reported yet. That it runs, its lease says."""
    fresh = on.store.get(job.key, Job)
    if fresh is None or fresh.attempt != job.attempt or fresh.report:
        raise LeaseGone
    return fresh


def _check_owner(on: System, allowed: Identity, job: Job) -> list[Change]:
    """What the commit names so that the owner has the privilege at that very moment. Raises Refused 422."""
    if allowed.privilege is None:
        return []
    owner = on.store.get(user_key(job.owner), User)
    if owner is None:
        raise Refused(422, "privilege-missing", f"there is no user {job.owner}: this needs {allowed.privilege!r}")
    why = explain_denial(owner, [allowed.privilege])
    if why:
        raise Refused(422, "privilege-missing", why)
    return [Check(owner)]
