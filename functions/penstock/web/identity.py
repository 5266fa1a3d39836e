"""What whoever checks identity tokens reads: open to all, and the same for all."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter

from penstock import bootstrap, wire
from penstock.domain.users import oidc
from penstock.usecases.users.oidc import issuer

router = APIGatewayHttpRouter()  # type: ignore[no-untyped-call]

FRESH_SECONDS = 300
"""For how long who checks may go on with what they read: a new key must be published for longer before it signs."""

KEYS = ".well-known/jwks.json"


@router.get("/v1/oidc/.well-known/openid-configuration")
def get_issuer() -> Response[Any]:
    by = issuer(bootstrap.aws())
    return _public(wire.IssuerView(by, f"{by}/{KEYS}", ["id_token"], ["public"], [oidc.ALGORITHM], list(oidc.CLAIMS)))


@router.get("/v1/oidc/.well-known/jwks.json")
def get_issuer_keys() -> Response[Any]:
    found = oidc.key_set(bootstrap.aws().signer.keys())
    return _public(wire.KeySetView([wire.KeyView(**key) for key in found]))


def _public(view: wire.IssuerView | wire.KeySetView) -> Response[Any]:
    headers = {"cache-control": f"public, max-age={FRESH_SECONDS}"}
    return Response(200, "application/json", json.dumps(asdict(view)), headers)
