"""Identity tokens of attempts: issued to jobs that the site permits, as long as the attempt is alive. [SEC-2]"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from penstock.domain import metrics
from penstock.domain.jobs.jobs import UNTRUSTED, Job
from penstock.domain.logs.logs import DETAIL
from penstock.domain.replies import IdentityToken
from penstock.domain.site.site import Identity
from penstock.domain.users import oidc
from penstock.domain.users.users import explain_denial
from penstock.kernel import limits
from penstock.kernel.errors import Refused
from penstock.kernel.rows import Change, Check, Replace
from penstock.system import System, current_site, transact
from penstock.usecases.jobs.flow import LeaseGone, fenced
from penstock.usecases.logs import logs
from penstock.usecases.users import audit, users

ISSUER = "/v1/oidc"
"""The path of the tokens' issuer below the service's URL."""


def token(on: System, job: Job, audience: str) -> IdentityToken:
    """A token of the job's present attempt for one audience, and when it expires. It is stored nowhere. [SEC-1]

    The request is recorded first, in the commit that finds the attempt alive: a token signed after that is valid until
    the attempt's deadline at most. Raises Refused 400, 409 or 422, and 410 for an attempt that is over. Never 403: an
    agent that gets that leaves its job.
    """
    allowed = current_site(on).identity
    _check_audience(allowed, audience)
    if job.provenance.outsider:
        raise Refused(422, "outsider", f"{UNTRUSTED}: its jobs get no identity tokens")
    kid = on.signer.kid()

    def decide() -> tuple[Sequence[Change], dict[str, Any]]:
        fresh, now = _running_job(on, job), on.world.now()
        claims = oidc.claims(fresh, issuer(on), audience, on.world.ulid(), now)
        if claims["exp"] <= claims["iat"]:
            raise Refused(409, "too-late", "the job's time is over: no identity token would outlive this answer")
        if fresh.usage.identities >= limits.IDENTITIES:
            raise Refused(409, "too-many-tokens", f"a job has at most {limits.IDENTITIES} identity tokens")
        counted = Replace(fresh, replace(fresh, usage=replace(fresh.usage, identities=fresh.usage.identities + 1)))
        changes: list[Change] = [counted, *_check_owner(on, allowed, fresh)]
        detail = f"{claims['sub']} for {audience}, attempt {job.attempt}, jti {claims['jti']}"
        return audit.record(on, changes, job.owner, "identity token", f"job {job.id}", detail), claims

    claims = transact(on, decide)
    text = oidc.unsigned(kid, claims)
    made = oidc.signed(text, on.signer.sign(text.encode()))
    on.metrics.add(metrics.IDENTITY_TOKENS, target=job.request.target_resolved)
    logs.append(on, job.id, job.attempt, f"the job was given an identity token for {audience}, {claims['jti']}", DETAIL)
    return IdentityToken(made, datetime.fromtimestamp(claims["exp"], UTC).isoformat())


def _check_audience(allowed: Identity, audience: str) -> None:
    if not oidc.is_audience(audience):
        raise Refused(400, "bad-request", "an audience is 1 to 255 printable characters of ASCII, without blanks")
    if audience not in allowed.audiences:
        known = ", ".join(allowed.audiences) or "none"
        raise Refused(
            422, "audience-not-allowed", f"this site allows no identity tokens for {audience}; it does for: {known}"
        )


def _running_job(on: System, job: Job) -> Job:
    """The job as it is, while the attempt runs and has not reported yet."""
    fresh = fenced(on, job)
    if fresh.run.report:
        raise LeaseGone
    return fresh


def _check_owner(on: System, allowed: Identity, job: Job) -> list[Change]:
    """The check that the owner has the privilege at the time of the commit. Raises Refused 422."""
    if allowed.privilege is None or (job.review and allowed.privilege in job.review.privileges):
        return []
    owner = users.by_name(on, job.owner)
    if owner is None:
        raise Refused(422, "privilege-missing", f"there is no user {job.owner}: this needs {allowed.privilege!r}")
    why = explain_denial(owner, [allowed.privilege])
    if why:
        raise Refused(422, "privilege-missing", why)
    return [Check(owner)]


def issuer(on: System) -> str:
    """The issuer as tokens name it: the URL below which the public keys are published."""
    return on.url + ISSUER
