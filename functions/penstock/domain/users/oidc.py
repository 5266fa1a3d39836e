"""Identity tokens: an attempt shows others who it is, so that it needs none of their secrets. [SEC-2]

A token is a JWT as OpenID Connect defines it: anybody who reads the public keys below the issuer's URL can verify it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

from penstock.domain.jobs.jobs import Job
from penstock.domain.users.users import is_repository
from penstock.kernel.frozen import dataclass

ALGORITHM = "RS256"
"""RSASSA-PKCS1-v1_5 with SHA-256: what every verifier knows. Source: RFC 7518, section 3.3."""

LIFE = timedelta(hours=1)
"""How long a token is good for at the most: nobody can take it back."""

SUBJECT_CHARS = 255
"""The longest subject. Source: OpenID Connect Core 1.0, section 2; AWS STS, AssumeRoleWithWebIdentity."""

VOUCHED = ("ref", "sha", "event_name", "pull_request")
"""The tags that say where a job's script comes from."""

PULL_REQUEST = "pull_request"
"""The event of a commit that is no end of a branch."""

CLAIMS = (
    "iss", "sub", "aud", "exp", "iat", "nbf", "jti", "owner", "repository", "job_id", "job_name", "attempt", "target",
    "environment", *VOUCHED,
)  # fmt: skip
"""All that a token may say."""

_AUDIENCE = r"[!-~]{1,255}"


_DIGEST_CHARS = 32


@dataclass(frozen=True)
class PublicKey:
    """One half of a key that signs: all that a verifier needs. `kid` is what tokens call it."""

    kid: str
    modulus: int
    exponent: int


def is_audience(text: str) -> bool:
    """Whether a text can say whom a token is for: 1 to 255 characters of ASCII, no blanks."""
    return re.fullmatch(_AUDIENCE, text) is not None


def vouched(tags: Mapping[str, str]) -> dict[str, str]:
    """What the tags of a request say of the job's source. Only the request of a user who may vouch is believed."""
    return {name: tags[name] for name in VOUCHED if tags.get(name)}


def subject(owner: str, name: str, source: Mapping[str, str], environment: str = "") -> str:
    """Who a token is of, as GitHub Actions says it where the job's source is vouched for: `repository:oxide/hubris`
    with `:ref:refs/heads/main` or `:pull_request`. Of other jobs only the name is known: `:job:build`. A job that was
    approved for an environment has `:environment:production`, wherever it comes from.

    Nothing that a submitter chooses can look like another part: what is no letter, digit or `. _ -` is escaped as in
    URLs, except the slashes of a ref. What would make it too long stands there as `~` and its digest.
    """
    who = f"repository:{owner.replace(':', '/')}" if is_repository(owner) else f"user:{owner}"
    if environment:
        return f"{who}:environment:{environment}"
    if source.get("event_name") == PULL_REQUEST:
        return f"{who}:{PULL_REQUEST}"
    if source.get("ref"):
        return _joined(f"{who}:ref", source["ref"], "/")
    return _joined(f"{who}:job", name, "")


def _escaped(text: str, safe: str) -> str:
    return quote(text, safe=safe, errors="surrogatepass").replace("~", "%7E")


def _joined(who: str, text: str, safe: str) -> str:
    whole = f"{who}:{_escaped(text, safe)}"
    return whole if len(whole) <= SUBJECT_CHARS else f"{who}:{_digest(text)}"


def _digest(text: str) -> str:
    return "~" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_CHARS]


def expiry(job: Job, now: datetime) -> datetime:
    """Until when a token of a running attempt is good that is given out now: not beyond the attempt. [SEC-2]"""
    ends = (job.times.started or now) + timedelta(seconds=job.limits.timeout)
    return min(now + LIFE, ends, job.due or ends)


def claims(job: Job, issuer: str, audience: str, jti: str, now: datetime) -> dict[str, Any]:
    """What a token says. Times are in seconds since 1970, the end rounded down."""
    begin, source = int(now.timestamp()), dict(job.provenance.vouched)
    environment = job.review.environment if job.review and not job.review.is_open else ""
    return {
        "iss": issuer,
        "sub": subject(job.owner, job.name, source, environment),
        "aud": audience,
        "exp": int(expiry(job, now).timestamp()),
        "iat": begin,
        "nbf": begin,
        "jti": jti,
        "owner": job.owner,
        **({"repository": job.owner.replace(":", "/")} if is_repository(job.owner) else {}),
        "job_id": job.id,
        "job_name": job.name,
        "attempt": job.attempt,
        "target": job.request.target_resolved,
        **({"environment": environment} if environment else {}),
        **source,
    }


def unsigned(kid: str, said: Mapping[str, Any]) -> str:
    """What of a token is signed."""
    return f"{_encoded({'alg': ALGORITHM, 'typ': 'JWT', 'kid': kid})}.{_encoded(said)}"


def signed(text: str, signature: bytes) -> str:
    """The whole token."""
    return f"{text}.{_base64(signature)}"


def key_set(keys: Iterable[PublicKey]) -> list[dict[str, str]]:
    """Public keys as RFC 7517 writes them."""
    return [
        {
            "kty": "RSA",
            "use": "sig",
            "alg": ALGORITHM,
            "kid": key.kid,
            "n": _base64(_bytes(key.modulus)),
            "e": _base64(_bytes(key.exponent)),
        }
        for key in keys
    ]


def _encoded(value: Mapping[str, Any]) -> str:
    return _base64(json.dumps(value, separators=(",", ":")).encode())


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _bytes(number: int) -> bytes:
    return number.to_bytes((number.bit_length() + 7) // 8, "big")
