"""What anybody reads who checks identity tokens, as OpenID Connect Discovery 1.0 and RFC 7517 describe it."""

from __future__ import annotations

from typing import Annotated, Any

from aws_lambda_powertools.event_handler import Response

from penstock.api import app
from penstock.api.app import Router
from penstock.domain.users import oidc
from penstock.kernel.frozen import dataclass
from penstock.system import System
from penstock.usecases.users.oidc import issuer

router = Router("identity tokens")

FRESH_SECONDS = 300
"""For how long readers may cache the keys: a new key must be published for longer before it signs."""

KEYS = ".well-known/jwks.json"


@dataclass(frozen=True)
class IssuerView:
    """The issuer of identity tokens."""

    issuer: Annotated[str, "Its URL, which is the `iss` of its tokens."]
    jwks_uri: Annotated[str, "The URL of its public keys."]
    response_types_supported: Annotated[list[str], "Always `id_token`."]
    subject_types_supported: Annotated[list[str], "Always `public`."]
    id_token_signing_alg_values_supported: Annotated[list[str], "The algorithms that it signs with."]
    claims_supported: Annotated[list[str], "The claims that its tokens have."]


@dataclass(frozen=True)
class KeyView:
    """A public RSA key."""

    kty: Annotated[str, "The type of key: always `RSA`."]
    use: Annotated[str, "What it is for: always `sig`."]
    alg: Annotated[str, "The algorithm that it signs with."]
    kid: Annotated[str, "Its id, as the headers of tokens have it."]
    n: Annotated[str, "The modulus, in Base64 for URLs without padding."]
    e: Annotated[str, "The exponent, in Base64 for URLs without padding."]


@dataclass(frozen=True)
class KeySetView:
    """The public keys of the issuer."""

    keys: Annotated[list[KeyView], "All keys whose tokens may still be valid, and the key that signs next."]


@router.get("/v1/oidc/.well-known/openid-configuration", "Show who issues identity tokens")
def get_issuer(on: System) -> Response[Any] | IssuerView:
    by = issuer(on)
    return _public(IssuerView(by, f"{by}/{KEYS}", ["id_token"], ["public"], [oidc.ALGORITHM], list(oidc.CLAIMS)))


@router.get("/v1/oidc/.well-known/jwks.json", "List the public keys that identity tokens are signed with")
def get_issuer_keys(on: System) -> Response[Any] | KeySetView:
    return _public(KeySetView([KeyView(**key) for key in oidc.key_set(on.signer.keys())]))


def _public(view: IssuerView | KeySetView) -> Response[Any]:
    made = app.reply(view)
    made.headers["cache-control"] = f"public, max-age={FRESH_SECONDS}"
    return made
