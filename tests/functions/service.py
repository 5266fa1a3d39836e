"""The HTTP handlers as API Gateway calls them, over the twin."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from typing import Any
from urllib.parse import urlencode

import agent_api
import api
import jsonschema
import pytest

from penstock import bootstrap
from penstock.api import openapi
from penstock.api.document import document
from penstock.domain.users import users
from penstock.domain.users.users import Token, TokenKind, User, digest
from penstock.kernel.rows import Create, Key, ulid
from penstock.testing.site import site_toml
from penstock.testing.store import MemoryStore
from penstock.testing.twin import START, Twin
from penstock.usecases.site import apply

SITE = site_toml(
    targets={
        "linux": {"limit": 2},
        "default": "linux",
        "lab": {"privilege": "target.lab"},
        "alias": "lab",
        "closed": {"limit": 0},
    },
    wells={"locks": "lock"},
    resources={
        "bench": {"well": "locks", "names": ["bench-1"]},
        "licence": {"well": "locks", "limit": 2},
        "secret": {"well": "locks", "privilege": "resource.secret"},
    },
    identity={"audiences": ["sts.amazonaws.com"]},
)
SCRIPT = "#!/bin/bash\necho hello\n"
WORKER_TOKEN = "w" * 43
SCHEMAS = json.loads(document())["components"]["schemas"]

OPERATIONS = (*openapi.users(), *openapi.agents())


@cache
def token_of(name: str) -> str:
    """The secret of the token that a user has from the beginning."""
    chance = digest(name)
    return users.token_secret(TokenKind.USER, ulid(START, chance[:10].encode()), chance)


@dataclass
class Context:
    """What a handler is told of its invocation."""

    function_name: str = "here"
    memory_limit_in_mb: int = 128
    invoked_function_arn: str = "arn:aws:lambda:us-east-1:123456789012:function:here"
    aws_request_id: str = "1-2-3"
    remaining: int = 120_000

    def get_remaining_time_in_millis(self) -> int:
        return self.remaining


@dataclass(frozen=True)
class Answer:
    """A handler's answer as a client sees it."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    cookies: Sequence[str] = ()

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class StrictStore(MemoryStore):
    """Refuses what DynamoDB refuses of a read too: keys that are too big. Source: its quotas page."""

    def get(self, key: Key, kind: Any) -> Any:
        _check(key)
        return super().get(key, kind)

    def find(self, pk: str, prefix: str, kind: Any, **more: Any) -> Any:
        for place in (prefix, more.get("after", ""), more.get("upto", "")):
            _check(Key(pk, place))
        return super().find(pk, prefix, kind, **more)

    def rows_at(self, keys: Any) -> Any:
        for key in keys:
            _check(key)
        return super().rows_at(keys)

    def listed(self, name: str, kind: Any, **more: Any) -> Any:
        _check(Key(name, more.get("after", "")))
        return super().listed(name, kind, **more)

    def entries(self, name: str, **more: Any) -> Any:
        _check(Key(name, more.get("after", "")))
        return super().entries(name, **more)


def _check(key: Key) -> None:
    assert len(key.pk.encode()) <= 2048, "the partition key is too long"
    assert len(key.sk.encode()) <= 1024, "the sort key is too long"


class Service:
    """The two HTTP functions. Users are known by their token, which is their name."""

    def __init__(self, twin: Twin) -> None:
        self.twin = twin

    def add(self, name: str, *privileges: str, expires: datetime | None = None) -> None:
        """A user whose token is `token_of(name)`."""
        self.twin.store.commit([Create(User(name=name, privileges=privileges, created=START))])
        self.give(name, token_of(name), "all", expires=expires)

    def give(self, user: str, secret: str, *scopes: str, expires: datetime | None = None) -> None:
        """A token of a user, used just now, with some scopes."""
        id = users.token_id_in(secret)
        assert id
        token = Token(
            id=id, digest=digest(secret), user=user, scopes=scopes, created=START, used=START, expires=expires
        )
        self.twin.store.commit([Create(token)])

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        as_: str | None = "ada",
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | Sequence[tuple[str, str]] = (),
        encoded: bool = False,
    ) -> Answer:
        """One request. A body that is text or bytes is sent as it is, anything else as JSON."""
        shown = token if token is not None else token_of(as_) if as_ else None
        sent = dict(headers or {}) | ({"authorization": f"Bearer {shown}"} if shown is not None else {})
        event = request(method, path, body, sent, query, encoded=encoded)
        given = (agent_api if path.startswith("/v1/agent/") else api).handler(event, Context())  # type: ignore[arg-type]
        json.dumps(given, ensure_ascii=False).encode()  # what cannot be sent is our fault
        text = given.get("body") or ""
        raw = base64.b64decode(text) if given.get("isBase64Encoded") else text.encode()
        many = {name.lower(): ", ".join(values) for name, values in (given.get("multiValueHeaders") or {}).items()}
        one = {name.lower(): value for name, value in (given.get("headers") or {}).items()}
        answer = Answer(given["statusCode"], many | one, raw, given.get("cookies") or ())
        _as_described(method, path, answer)
        return answer

    def submit(self, **ask: Any) -> str:
        """A job of Ada's that was accepted."""
        answer = self.ask("POST", "/v1/jobs", {"script": SCRIPT} | ask)
        assert answer.status == 201, answer
        job: str = answer.json["id"]
        self.twin.run()
        return job


def new_twin(monkeypatch: pytest.MonkeyPatch) -> Twin:
    """A twin that the handlers take for AWS, with the site configured."""
    made = Twin()
    made.store = StrictStore()
    made.on = replace(made.on, store=made.store)
    apply.apply(made.on, "root", SITE, "site.toml")
    made.run()
    monkeypatch.setattr(bootstrap, "aws", lambda: made.on)
    return made


def new_service(twin: Twin) -> Service:
    """A service with users: two plain ones, an operator, and one whose token has expired."""
    made = Service(twin)
    made.add("ada")
    made.add("bob")
    made.add("root", "admin")
    made.add("late", expires=START)
    return made


def request(
    method: str,
    path: str,
    body: Any,
    headers: Mapping[str, str],
    query: Mapping[str, str] | Sequence[tuple[str, str]],
    *,
    encoded: bool = False,
) -> dict[str, Any]:
    """An event as an HTTP API sends it, format 2.0: repeated parameters are joined with commas."""
    pairs = list(query.items() if isinstance(query, Mapping) else query)
    joined: dict[str, str] = {}
    for name, value in pairs:
        joined[name] = f"{joined[name]},{value}" if name in joined else value
    event: dict[str, Any] = {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": urlencode(pairs, errors="surrogatepass"),
        "headers": {name.lower(): value for name, value in headers.items() if name.lower() != "cookie"},
        "requestContext": {
            "accountId": "123456789012",
            "apiId": "api",
            "stage": "$default",
            "requestId": "1",
            "http": {"method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "127.0.0.1", "userAgent": "t"},
        },
        "isBase64Encoded": False,
    }
    if "cookie" in headers:
        event["cookies"] = headers["cookie"].split("; ")
    if joined:
        event["queryStringParameters"] = joined
    if body is not None:
        raw = body if isinstance(body, str | bytes) else json.dumps(body)
        if isinstance(raw, bytes) or encoded:
            raw = base64.b64encode(raw if isinstance(raw, bytes) else raw.encode()).decode()
            event["isBase64Encoded"] = True
        event["body"] = raw
    return event


def _as_described(method: str, path: str, answer: Answer) -> None:
    """A reply in JSON to what was done has the shape that the OpenAPI document says."""
    found = next((each for each in OPERATIONS if each.method == method and _is_at(each.path, path)), None)
    if found and found.replies and answer.status == found.status:
        conforms(answer.json, *(kind.__name__ for kind in found.replies))


def _is_at(rule: str, path: str) -> bool:
    return re.fullmatch(re.sub(r"{\w+}", "[^/]+", rule), path) is not None


def conforms(value: Any, *schemas: str) -> None:
    """A value is what the OpenAPI document says it is: of one of some shapes."""
    found = [{"$ref": f"#/components/schemas/{schema}"} for schema in schemas]
    whole = {"anyOf": found, "components": {"schemas": SCHEMAS}}
    jsonschema.Draft202012Validator(whole).validate(value)


def refused(answer: Answer, status: int, code: str) -> dict[str, Any]:
    """An answer is a refusal in the one shape that there is; the problem is returned."""
    is_problem(answer)
    assert (answer.status, answer.json["code"]) == (status, code), answer
    found: dict[str, Any] = answer.json
    return found


def is_problem(answer: Answer) -> None:
    """An answer has the shape of every refusal, and tells no more than a client can read."""
    assert answer.headers["content-type"] == "application/problem+json", answer
    conforms(answer.json, "ProblemView")
    assert answer.json["status"] == answer.status
    assert answer.json["detail"]
    assert len(answer.body) < 100_000
    assert ("www-authenticate" in answer.headers) == (answer.status == 401)
