"""Writes the OpenAPI documents for services of the `http` well and factory: `python -m penstock.drivers.http.openapi`.

They are generated from the constants of the protocol, so that both agree. No function imports this module.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from penstock.drivers.http import errors, protocol
from penstock.drivers.http.protocol import (
    CLEAN,
    CREATING,
    DESTROYING,
    HOSTS,
    OFF,
    ON,
    READY,
    REQUEST_ID,
    RESOURCES,
    SIGNATURE,
    STATES,
    TIMESTAMP,
    WORKERS,
)

OPERATORS = Path(__file__).parents[4] / "docs/operators"
DOCUMENT, FACTORY_DOCUMENT = OPERATORS / "wells/http.openapi.json", OPERATORS / "http-factory.openapi.json"
UNIT, WORKER, HOST = (f"{collection}/{{unit}}" for collection in (RESOURCES, WORKERS, HOSTS))

Schema = dict[str, Any]


def document() -> Schema:
    """The whole document for services of wells."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "A service for Penstock's http well",
            "version": protocol.VERSION.rpartition("-v")[2],
            "description": "The HTTP API of a service that makes, cleans, destroys and lists resources for Penstock.",
        },
        "servers": [{"url": "https://rack.example.com/penstock", "description": "the well's setting `url`"}],
        "paths": {
            UNIT: {"parameters": [*_signed(), _unit()], "put": _put(), "get": _get(), "delete": _delete()},
            f"{UNIT}/clean": {"parameters": [*_signed(), _unit()], "post": _clean()},
            RESOURCES: {"parameters": _signed(), "get": _list()},
        },
        "components": _components(_schemas()),
    }


def factory_document() -> Schema:
    """The whole document for programs of factories, `http` and `hosts`."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "A program for Penstock's factories http and hosts",
            "version": protocol.VERSION.rpartition("-v")[2],
            "description": "The HTTP API of a program that makes machines for Penstock, or cleans those that exist.",
        },
        "servers": [{"url": "https://lab.example.com/penstock", "description": "the factory's setting `url`"}],
        "paths": {
            WORKER: {"parameters": [*_signed(), _unit()], "put": _launch(), "get": _describe(), "delete": _end()},
            f"{WORKER}/console": {"parameters": [*_signed(), _unit()], "get": _console("console", "worker's machine")},
            WORKERS: {"parameters": _signed(), "get": {**_list(), "summary": "List workers in the order of their ids"}},
            HOST: {"parameters": [*_signed(), _host()], "get": _describe_host()},
            f"{HOST}/console": {"parameters": [*_signed(), _host()], "get": _console("consoleOfHost", "host")},
            f"{HOST}/clean": {"parameters": [*_signed(), _host()], "post": _clean_host()},
            f"{HOST}/{ON}": {"parameters": [*_signed(), _host()], "post": _switch(ON)},
            f"{HOST}/{OFF}": {"parameters": [*_signed(), _host()], "post": _switch(OFF)},
        },
        "components": _components(_factory_schemas()),
    }


def _components(schemas: Schema) -> Schema:
    headers = {"Signature": {"required": True, "description": ANSWER, "schema": _text(67)}}
    return {"schemas": schemas, "headers": headers}


REQUESTED = (
    f"`v1=` and the hex HMAC-SHA256, with the shared secret, of these lines, joined by a newline: {protocol.VERSION}, "
    f"`request`, method, path, query as sent without `?`, {TIMESTAMP}, {REQUEST_ID}, hex SHA-256 of the body. Path and "
    "query are exactly as in the request line."
)
ANSWER = (
    f"`v1=` and the hex HMAC-SHA256 of these lines, joined by a newline: {protocol.VERSION}, `answer`, status, "
    f"{REQUEST_ID} of the request, hex SHA-256 of the body as sent. The well ignores an answer without it."
)


def _signed() -> list[Schema]:
    window = f"seconds since 1970; refuse with 401 what is more than {protocol.WINDOW} s in the past or future"
    known = f"the request's id; refuse a request with 401 if you saw its id in the last {2 * protocol.WINDOW} s"
    return [_header(TIMESTAMP, window, 20), _header(REQUEST_ID, known, 32), _header(SIGNATURE, REQUESTED, 67)]


def _header(name: str, description: str, most: int) -> Schema:
    return {"name": name, "in": "header", "required": True, "description": description, "schema": _text(most)}


def _unit() -> Schema:
    return {"name": "unit", "in": "path", "required": True, "schema": _text(protocol.UNIT_CHARS)}


def _put() -> Schema:
    summary = "Make a resource, or prepare a cleaned one for its next lease"
    description = (
        "A repeated request (same `unit` and `fence`) makes nothing and gets the same answer. An older fence: 409."
    )
    return {
        "operationId": "create",
        "summary": summary,
        "description": description,
        "requestBody": {"required": True, **_content("Order")},
        "responses": _answers({"200": (f"the resource is {READY}", "Made"), "202": ("not yet", "Later")}),
    }


def _get() -> Schema:
    return {
        "operationId": "status",
        "summary": "Describe a resource",
        "responses": _answers(
            {"200": ("the resource exists", "Status"), "404": ("the resource does not exist", "Problem")}
        ),
    }


def _clean() -> Schema:
    description = "Afterwards its status has this state, fence and digest, until it is prepared for its next lease."
    return {
        "operationId": "clean",
        "summary": "Make a resource like new, with nothing left of its last lease",
        "description": description,
        "requestBody": {"required": True, **_content("Lease")},
        "responses": _answers(
            {
                "200": (f"the resource is {CLEAN}", "Cleaned"),
                "202": ("not yet", "Later"),
                "404": ("the resource does not exist", "Problem"),
            }
        ),
    }


def _delete() -> Schema:
    description = "Afterwards its status is 404 and no list contains it. If it does not exist, 404 counts as success."
    query = [
        _query("owner", "as in the order"),
        _query("fence", "of its last lease; 0 if not known", "integer"),
    ]
    return {
        "operationId": "destroy",
        "summary": "Remove a resource completely",
        "description": description,
        "parameters": query,
        "responses": _answers(
            {
                "200": ("the resource is gone", "Destroyed"),
                "202": ("not yet", "Later"),
                "404": ("the resource did not exist", "Problem"),
            }
        ),
    }


def _list() -> Schema:
    query = [
        _query("owner", "only units of this owner"),
        _query("from", "only ids from this one on; left out for the first page", required=False),
        _query("limit", f"the most units to return, 1 to {protocol.PAGE}", "integer"),
    ]
    return {
        "operationId": "list",
        "summary": "List units in the order of their ids",
        "parameters": query,
        "responses": _answers({"200": ("a page", "Page")}),
    }


def _launch() -> Schema:
    description = (
        "A repeated order makes no second machine, also if its `token` is another one: one `unit` is one machine. A "
        f"unit that was destroyed is never made again: 409 with the code `{protocol.GONE}`."
    )
    return {
        "operationId": "create",
        "summary": "Make a machine that runs the agent",
        "description": description,
        "requestBody": {"required": True, **_content("Order")},
        "responses": _answers({"200": (f"the machine is {READY}", "Made"), "202": ("not yet", "Later")}),
    }


def _describe() -> Schema:
    return {
        "operationId": "status",
        "summary": "Describe a worker",
        "responses": _answers({"200": ("it exists", "Status"), "404": ("it does not exist", "Problem")}),
    }


def _end() -> Schema:
    description = "Afterwards its status is 404 and no list contains it. If it does not exist, 404 counts as success."
    return {
        "operationId": "destroy",
        "summary": "Remove a worker and everything that was made for it",
        "description": description,
        "parameters": [_query("owner", "as in the order")],
        "responses": _answers(
            {
                "200": ("it is gone", "Destroyed"),
                "202": ("not yet", "Later"),
                "404": ("it did not exist", "Problem"),
            }
        ),
    }


def _host() -> Schema:
    return {**_unit(), "description": "the name of a host, as targets have it"}


def _describe_host() -> Schema:
    answers = {"200": ("it exists", "HostStatus"), "404": ("there is no such host", "Problem")}
    return {"operationId": "hostStatus", "summary": "Describe a host", "responses": _answers(answers)}


def _clean_host() -> Schema:
    """As of resources."""
    description = "Afterwards its status has this state, fence and digest, until the next lease ends."
    said = {"operationId": "cleanHost", "summary": "Make a host as it was before its last lease"}
    return {**_clean(), **said, "description": description}


def _switch(to: str) -> Schema:
    """Only of controllers of factories with `power`."""
    description = (
        f"Only asked if the factory has `power`. Afterwards its status has the power {to} and this `serial`, and no "
        "request with an older one takes effect any more: refuse it with 409. A repeated one changes nothing."
    )
    return {
        "operationId": f"switch{to.capitalize()}",
        "summary": f"Switch a host {to}, unless it is",
        "description": description,
        "requestBody": {"required": True, **_content("Switching")},
        "responses": _answers(
            {
                "200": (f"the host is {to}", "Switched"),
                "202": ("not yet", "Later"),
                "404": ("there is no such host", "Problem"),
            }
        ),
    }


def _console(operation: str, whose: str) -> Schema:
    return {
        "operationId": operation,
        "summary": f"What the {whose} printed last",
        "responses": _answers({"200": ("the end of it", "Console"), "404": ("there is none", "Problem")}),
    }


def _query(name: str, description: str, kind: str = "string", *, required: bool = True) -> Schema:
    return {"name": name, "in": "query", "required": required, "description": description, "schema": {"type": kind}}


def _answers(known: dict[str, tuple[str, str]]) -> Schema:
    signed = {SIGNATURE: {"$ref": "#/components/headers/Signature"}}
    again = {"Retry-After": {"description": f"seconds, at most {protocol.LONGEST_WAIT}", "schema": {"type": "integer"}}}
    found: Schema = {
        status: {"description": description, "headers": signed | (again if status == "202" else {}), **_content(name)}
        for status, (description, name) in known.items()
    }
    refused = ", ".join(map(str, errors.REFUSED))
    errors_text = (
        f"409, 422: see `code`. {refused}: the operator must act. 429, 503 with Retry-After: later. 5xx: again"
    )
    return found | {"default": {"description": errors_text, "headers": signed | again, **_content("Problem")}}


def _content(name: str) -> Schema:
    media = "application/problem+json" if name == "Problem" else "application/json"
    return {"content": {media: {"schema": {"$ref": f"#/components/schemas/{name}"}}}}


def _text(most: int) -> Schema:
    return {"type": "string", "maxLength": most}


def _object(needed: Schema, more: Schema | None = None) -> Schema:
    return {"type": "object", "required": list(needed), "properties": {**needed, **(more or {})}}


def _schemas() -> Schema:
    owner = {**_text(200), "description": "the deployment and well that own the resource; no other owner may affect it"}
    fence = {"type": "integer", "minimum": 0, "description": "grows with every lease; refuse an older one"}
    lease: Schema = {"owner": owner, "fence": fence}
    digest = {"type": ["string", "null"], "description": "identifies what was found; the service chooses the format"}
    proof = _object({"checked": {**_text(protocol.TEXT_CHARS), "description": "for people"}}, {"digest": digest})
    status: Schema = {"unit": _text(protocol.UNIT_CHARS), "state": {"enum": list(STATES)}, "fence": fence}
    reason = {"reason": {**_text(protocol.TEXT_CHARS), "description": "why it is not done yet, for people"}}
    description = (
        f"only for the job; at most {protocol.METADATA_BYTES} bytes, nested at most {protocol.METADATA_DEPTH} levels"
    )
    order: Schema = {
        "unit": _text(protocol.UNIT_CHARS), **lease, "type": _text(100), "slot": _text(100),
        "settings": {"type": "object", "description": "the resource type's settings"},
        "options": {"type": "object", "description": "the job's options, checked against the well's schema"},
    }  # fmt: skip
    unit = _object({"unit": _text(protocol.UNIT_CHARS), "owner": owner})
    code = {"type": "string", "description": f"with 409 and 422 one of {', '.join(errors.CODES)}, or one of your own"}
    return {
        "Order": _object(order),
        "Lease": _object(lease),
        "Made": _object({**status, "metadata": {"type": "object", "description": description}}),
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


def _factory_schemas() -> Schema:
    shared = _schemas()
    unit, owner, free = _text(protocol.UNIT_CHARS), shared["Order"]["properties"]["owner"], {"type": "object"}
    state = {"enum": [CREATING, READY, DESTROYING]}
    config = {**free, "description": "the file that the agent reads; it has the bootstrap key, which is secret"}
    agent = _object({"url": _text(1000), "sha256": _text(64), "config": config})
    order: Schema = {
        "unit": unit, "owner": {**owner, "description": "the deployment and factory that own the worker"},
        "type": {**_text(100), "description": "the target"}, "slot": _text(100),
        "settings": {**free, "description": "the factory's table `settings`"},
        "boot": {"type": "string", "description": "user data for a machine with bash; it has the key too"},
        "agent": {**agent, "description": "the same for who does not run the script"},
        "token": {**_text(64), "description": "a hash of all the rest, for a hypervisor that wants a client token"},
    }  # fmt: skip
    shown = {**free, "additionalProperties": {"type": "string"}, "description": "for people; at most 20 entries"}
    thing = _object({"kind": _text(64), "id": _text(64)}, {"made": {"type": "string", "format": "date-time"}})
    things = {"type": "array", "minItems": 1, "maxItems": 20, "items": thing}
    entry = _object(
        {"unit": unit, "owner": owner}, {"things": {**things, "description": "machine, disks and the like"}}
    )
    status, power = shared["Status"], {"enum": [ON, OFF], "description": "the power that the host has"}
    serial = {"type": "integer", "minimum": 1, "description": "grows with each order for a host's power"}
    missed = {
        "type": "integer",
        "minimum": 0,
        "description": "how often in a row it was on, and its agent did not come",
    }
    following = {"next": shared["Page"]["properties"]["next"]}
    units = {"type": "array", "maxItems": protocol.PAGE, "items": entry}
    return {
        "Order": _object(order),
        "Made": _object({"unit": unit, "state": state}, {"metadata": shown}),
        "Status": _object({"unit": unit, "state": state}, {"reason": shared["Later"]["properties"]["reason"]}),
        "Console": _object({"console": {"type": "string", "description": "at most some 10,000 characters"}}),
        "Page": _object({"units": units}, following),
        "HostStatus": {**status, "properties": {**status["properties"], "power": power, "serial": serial}},
        "Switching": _object({"owner": owner, "serial": serial, "missed": missed}),
        "Switched": _object({"unit": unit, "serial": serial, "power": power}),
        **{name: shared[name] for name in ("Cleaned", "Destroyed", "Later", "Lease", "Problem")},
    }


def text(of: Schema) -> str:
    """A document as JSON, as stored in the repository."""
    return json.dumps(of, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    DOCUMENT.write_text(text(document()))
    FACTORY_DOCUMENT.write_text(text(factory_document()))
