"""What whoever checks identity tokens reads, as OpenID Connect Discovery 1.0 and RFC 7517 name it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class IssuerView:
    """Who signs identity tokens, how, and where the keys are."""

    issuer: str
    jwks_uri: str
    response_types_supported: list[str]
    subject_types_supported: list[str]
    id_token_signing_alg_values_supported: list[str]
    claims_supported: list[str]


@dataclass(frozen=True)
class KeyView:
    """A public key of RSA: modulus `n` and exponent `e` in Base64 for URLs, without padding."""

    kty: str
    use: str
    alg: str
    kid: str
    n: str
    e: str


@dataclass(frozen=True)
class KeySetView:
    """All keys whose tokens may still be good, and the one that will sign next."""

    keys: list[KeyView]
