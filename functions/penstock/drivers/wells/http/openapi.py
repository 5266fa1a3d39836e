"""The document for those who write a service: `python -m penstock.drivers.wells.http.openapi` writes it anew.

Made of the protocol's own words and bounds, so that it cannot say anything else. Never imported by a function.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from penstock.drivers.wells.http import codes, protocol
from penstock.drivers.wells.http.protocol import CLEAN, READY, REQUEST, RESOURCES, SIGNATURE, STATES, TIMESTAMP

DOCUMENT = Path(__file__).parents[5] / "docs/operators/wells/http.openapi.json"
UNIT = f"{RESOURCES}/{{unit}}"

Schema = dict[str, Any]


def document() -> Schema:
    """The whole document."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "A service for Penstock's http well",
            "version": protocol.VERSION.rpartition("-v")[2],
            "description": "What a service answers that makes, cleans, destroys and lists resources for Penstock.",
        },
        "servers": [{"url": "https://rack.example.com/penstock", "description": "the well's `url`"}],
        "paths": {
            UNIT: {"parameters": [*_signed(), _unit()], "put": _put(), "get": _get(), "delete": _delete()},
            f"{UNIT}/clean": {"parameters": [*_signed(), _unit()], "post": _clean()},
            RESOURCES: {"parameters": _signed(), "get": _list()},
        },
        "components": {
            "schemas": _schemas(),
            "headers": {"Signature": {"required": True, "description": ANSWER, "schema": _text(67)}},
        },
    }


REQUESTED = (
    f"`v1=` and the hex HMAC-SHA256, with the shared secret, of these lines, joined by a newline: {protocol.VERSION}, "
    f"`request`, method, path, query as sent without `?`, {TIMESTAMP}, {REQUEST}, hex SHA-256 of the body. Path and "
    "query are as they stand in the request line."
)
ANSWER = (
    f"`v1=` and the hex HMAC-SHA256 of these lines, joined by a newline: {protocol.VERSION}, `answer`, status, "
    f"{REQUEST} of the request, hex SHA-256 of the body as sent. An answer without it counts as no answer."
)


def _signed() -> list[Schema]:
    window = f"seconds since 1970; refuse with 401 what is more than {protocol.WINDOW} s from now, to either side"
    known = f"the request's id; refuse with 401 one that was here in the last {2 * protocol.WINDOW} s"
    return [_header(TIMESTAMP, window, 20), _header(REQUEST, known, 32), _header(SIGNATURE, REQUESTED, 67)]


def _header(name: str, says: str, most: int) -> Schema:
    return {"name": name, "in": "header", "required": True, "description": says, "schema": _text(most)}


def _unit() -> Schema:
    return {"name": "unit", "in": "path", "required": True, "schema": _text(protocol.UNIT_CHARS)}


def _put() -> Schema:
    summary = "Make a resource, or make one that was cleaned ready for its next lease"
    says = "Asked again with the same `unit` and `fence`, it makes nothing and answers the same. An older fence is 409."
    return {
        "operationId": "create",
        "summary": summary,
        "description": says,
        "requestBody": {"required": True, **_content("Order")},
        "responses": _answers({"200": (f"it is {READY}", "Made"), "202": ("not yet", "Later")}),
    }


def _get() -> Schema:
    return {
        "operationId": "status",
        "summary": "What a resource is now",
        "responses": _answers({"200": ("it is there", "Status"), "404": ("it is gone, or never was", "Problem")}),
    }


def _clean() -> Schema:
    says = "From then on its status says the same state, fence and digest, until it is made ready again."
    return {
        "operationId": "clean",
        "summary": "Make a resource as it was when it was made, with nothing of its last lease",
        "description": says,
        "requestBody": {"required": True, **_content("Lease")},
        "responses": _answers(
            {"200": (f"it is {CLEAN}", "Cleaned"), "202": ("not yet", "Later"), "404": ("it is gone", "Problem")}
        ),
    }


def _delete() -> Schema:
    says = "After it, status is 404 and no list has it. Of a unit that there is not, 404 is success."
    query = [
        _query("owner", "as in the order"),
        _query("fence", "of its last lease; 0 when that is not known", "integer"),
    ]
    return {
        "operationId": "destroy",
        "summary": "Remove a resource and every trace of it",
        "description": says,
        "parameters": query,
        "responses": _answers(
            {"200": ("it is gone", "Destroyed"), "202": ("not yet", "Later"), "404": ("it was gone", "Problem")}
        ),
    }


def _list() -> Schema:
    query = [
        _query("owner", "those of this owner only"),
        _query("from", "those whose id is not less; at first it is left out", required=False),
        _query("limit", f"at most so many, from 1 to {protocol.PAGE}", "integer"),
    ]
    return {
        "operationId": "list",
        "summary": "What there is, in the order of the ids",
        "parameters": query,
        "responses": _answers({"200": ("a page", "Page")}),
    }


def _query(name: str, says: str, kind: str = "string", *, required: bool = True) -> Schema:
    return {"name": name, "in": "query", "required": required, "description": says, "schema": {"type": kind}}


def _answers(known: dict[str, tuple[str, str]]) -> Schema:
    signed = {SIGNATURE: {"$ref": "#/components/headers/Signature"}}
    again = {"Retry-After": {"description": f"seconds, at most {protocol.LATER_MOST}", "schema": {"type": "integer"}}}
    found: Schema = {
        status: {"description": says, "headers": signed | (again if status == "202" else {}), **_content(name)}
        for status, (says, name) in known.items()
    }
    refused = ", ".join(map(str, codes.REFUSED))
    said = f"409 and 422 with a code; {refused}: an operator must act; 429, and 503 with Retry-After: later; 5xx: again"
    return found | {"default": {"description": said, "headers": signed | again, **_content("Problem")}}


def _content(name: str) -> Schema:
    media = "application/problem+json" if name == "Problem" else "application/json"
    return {"content": {media: {"schema": {"$ref": f"#/components/schemas/{name}"}}}}


def _text(most: int) -> Schema:
    return {"type": "string", "maxLength": most}


def _object(needed: Schema, more: Schema | None = None) -> Schema:
    return {"type": "object", "required": list(needed), "properties": {**needed, **(more or {})}}


def _schemas() -> Schema:
    owner = {**_text(200), "description": "which Penstock's well it belongs to; others must not be touched by it"}
    fence = {"type": "integer", "minimum": 0, "description": "grows with every lease; older ones change nothing"}
    lease: Schema = {"owner": owner, "fence": fence}
    digest = {"type": ["string", "null"], "description": "of what was found, in words of the service's own"}
    proof = _object({"checked": {**_text(protocol.TEXT_CHARS), "description": "for people"}}, {"digest": digest})
    status: Schema = {"unit": _text(protocol.UNIT_CHARS), "state": {"enum": list(STATES)}, "fence": fence}
    reason = {"reason": {**_text(protocol.TEXT_CHARS), "description": "why not yet, for people"}}
    says = f"for the job alone, at most {protocol.METADATA_BYTES} bytes and {protocol.METADATA_DEPTH} deep"
    order: Schema = {
        "unit": _text(protocol.UNIT_CHARS), **lease, "type": _text(100), "slot": _text(100),
        "settings": {"type": "object", "description": "of the resource type"},
        "options": {"type": "object", "description": "of the job, checked by the well's schema"},
    }  # fmt: skip
    unit = _object({"unit": _text(protocol.UNIT_CHARS), "owner": owner})
    code = {"type": "string", "description": f"with 409 and 422 one of {', '.join(codes.CODES)}, or one of your own"}
    return {
        "Order": _object(order),
        "Lease": _object(lease),
        "Made": _object({**status, "metadata": {"type": "object", "description": says}}),
        "Status": _object(status, {"digest": digest, **reason}),
        "Cleaned": _object({**status, "proof": proof}, {"digest": digest}),
        "Destroyed": _object({}, {"proof": proof}),
        "Later": _object({}, reason),
        "Page": _object(
            {"units": {"type": "array", "maxItems": protocol.PAGE, "items": unit}},
            {"next": {"type": ["string", "null"], "description": "the first id of the next page"}},
        ),
        "Problem": _object({}, {"code": code, "title": _text(1000), "detail": _text(1000)}),
    }


def text() -> str:
    """The document as it is kept in the repository."""
    return json.dumps(document(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    DOCUMENT.write_text(text())
