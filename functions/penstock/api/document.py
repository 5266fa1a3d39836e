"""The OpenAPI document, as it is kept beside the code. `openapi` makes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from aws_lambda_powertools.event_handler import Response

from penstock.api.app import Router

router = Router("service")

DOCUMENT = Path(__file__).with_name("openapi.json")


@router.get("/v1/openapi.json", "Show this document")
def get_openapi() -> Response[Any]:
    return Response(200, "application/json", document())


def document() -> str:
    """The OpenAPI document."""
    return DOCUMENT.read_text(encoding="utf-8")
