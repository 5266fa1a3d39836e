"""How a route is declared, and how a request is answered.

A route is a decorator on a function, whose type hints say the rest:

    @router.get("/v1/caches/{cache}", "Show an entry of a cache", READ)
    def get_cache(on: System, user: Caller, cache: str) -> CacheView: ...

READ is the scope that the request's token needs. An argument of the type System is the service. One of a type that says
who calls, such as Caller or Operator, is the user of that token, with what the token is good for. One that the path
names comes from the path, a dataclass is the body, and an argument that must be given by its name is a query parameter
or a header. The return type is the JSON of the reply.
"""

from __future__ import annotations

import hmac
import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import Field, fields, is_dataclass
from datetime import UTC, datetime
from enum import IntEnum
from functools import cached_property
from types import NoneType
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints
from urllib.parse import parse_qs

from aws_lambda_powertools import Logger
from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from aws_lambda_powertools.event_handler.api_gateway import BaseRouter
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter
from aws_lambda_powertools.shared.cookies import Cookie
from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2 as Event
from aws_lambda_powertools.utilities.typing import LambdaContext

from penstock import bootstrap
from penstock.api import body, conditional, cookies, problems
from penstock.api.conditional import Tag
from penstock.domain.users.users import WHOLE, Bearer, Need
from penstock.kernel import limits
from penstock.kernel.errors import Moved, Newer, Refused, Throttled, Unreached
from penstock.kernel.frozen import dataclass
from penstock.kernel.limits import Bound
from penstock.system import System
from penstock.usecases.users import users

log = Logger(child=True)


def resolver(routers: Iterable[BaseRouter] = ()) -> APIGatewayHttpResolver:
    """A resolver of some routers' routes that answers every refusal as RFC 9457 says."""
    app = APIGatewayHttpResolver()
    app.exception_handler(Refused)(problems.problem)
    app.exception_handler(Moved)(problems.busy)
    app.exception_handler(Throttled)(problems.throttled)
    app.exception_handler(Newer)(problems.newer)
    app.exception_handler(Unreached)(problems.unreached)
    app.not_found(problems.no_route)
    for router in routers:
        app.include_router(router)  # type: ignore[arg-type]
    return app


def answer(app: APIGatewayHttpResolver, event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer a request. An error of ours is logged in full; the client gets a sentence and the id of the log entry."""
    try:
        if any(not char.isprintable() for char in str(event.get("rawPath", ""))):
            raise Refused(404, "not-found", "there is nothing at a path with characters that cannot be printed")
        event = {**event, "rawPath": str(event.get("rawPath", "")).replace("%2F", "/").replace("%2f", "/")}
        return app.resolve(event, context)
    except Refused as refused:
        return _plain(problems.problem(refused))
    except Exception:
        log.exception("a request failed")
        ours = Refused(500, "internal-error", f"this is our fault; it is logged under {context.aws_request_id}")
        return _plain(problems.problem(ours))


def _plain(response: Response[Any]) -> dict[str, Any]:
    headers = {"content-type": "application/problem+json"}
    return {
        "statusCode": response.status_code,
        "headers": headers,
        "body": response.body,
        "isBase64Encoded": False,
    }


def text(app: BaseRouter) -> str:
    """A request's body as text. Raises Refused 400 for bytes that are not UTF-8."""
    try:
        return app.current_event.decoded_body or ""
    except ValueError:
        raise Refused(400, "malformed-json", "the body is not text in UTF-8") from None


def reply(value: object, status: int = 200, cookies: Sequence[Cookie] = ()) -> Response[Any]:
    """A reply in JSON."""
    text = json.dumps(sent(value), ensure_ascii=False)
    return Response(status, "application/json", text, cookies=list(cookies))


def sent(value: Any) -> Any:
    """A value as JSON has it. Names lose the underscore that keeps some from being Python's words.

    A key that is optional is left out where it has no value.
    """
    if hasattr(value, "__dataclass_fields__"):
        found = [(each, getattr(value, each.name)) for each in fields(value)]
        return {each.name.rstrip("_"): sent(one) for each, one in found if one is not None or not is_optional(each)}
    if isinstance(value, dict):
        return {key: sent(each) for key, each in value.items()}
    return [sent(each) for each in value] if isinstance(value, list | tuple) else value


F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Authenticated:
    """Marks the argument that is whoever calls: how they are recognised, and who may call, in words.

    `has_scopes`: it is a user with a token, whose route needs a scope.
    """

    by: Callable[[System, Event, Mapping[str, str], Need], object]
    who: str
    must: bool = True
    has_scopes: bool = True


@dataclass(frozen=True)
class Header:
    """Marks an argument that a header carries."""

    name: str


@dataclass(frozen=True)
class Pattern:
    """What a parameter must look like, as a regular expression and in words."""

    expression: str
    words: str


@dataclass(frozen=True)
class Also:
    """Another reply than the usual one: its status, and when it is given."""

    status: int
    when: str
    reply: type | None = None


@dataclass(frozen=True)
class Reply:
    """A reply with another status than the usual one, with cookies, or with a tag that was made of versions."""

    status: int
    value: object
    cookies: Sequence[Cookie] = ()
    tag: str = ""


def _caller(on: System, event: Event, _: Mapping[str, str], need: Need) -> Bearer:
    """Who shows a token, or else a session in a cookie. [SEC-2]"""
    header = event.headers.get("authorization")
    session = None if header else cookies.session(event)
    return users.authenticate_session(on, session, need) if session else users.authenticate(on, header, need)


def _operator(on: System, event: Event, path: Mapping[str, str], need: Need) -> Bearer:
    user = _caller(on, event, path, need)
    users.require_admin(user)
    return user


def anybody(on: System, event: Event, path: Mapping[str, str], need: Need) -> Bearer | None:
    """Who shows a token, or a session in a cookie; None for who shows neither. [SEC-2]"""
    is_shown = event.headers.get("authorization") or cookies.session(event)
    return _caller(on, event, path, need) if is_shown else None


Caller = Annotated[Bearer, Authenticated(_caller, "")]
"""Whoever calls: any user."""

Operator = Annotated[Bearer, Authenticated(_operator, "For operators only.")]
"""Whoever calls, who must be an operator."""

Anybody = Annotated[Bearer | None, Authenticated(anybody, "Needs no token for what is public.", must=False)]
"""Whoever calls, if they say so."""


VIEWER, PROOF = "x-penstock-viewer", "x-penstock-front"
"""What our distribution adds to requests: the address that it saw, and a secret that only it and the functions know
(infra/console.py). It replaces what callers send under these names.
"""


def _address(on: System, event: Event, path: Mapping[str, str], need: Need) -> str:
    """The address that a request came from, as the gateway saw it: headers say what callers like. [SEC-2]

    What came through our distribution comes from the address that the distribution saw. Only it can prove that.
    """
    del path, need
    viewer, proof = event.headers.get(VIEWER), event.headers.get(PROOF)
    if viewer and proof and on.front_key and hmac.compare_digest(proof.encode(), on.front_key().encode()):
        return str(viewer)
    return str(event.request_context.http.source_ip)


Stranger = Annotated[str, Authenticated(_address, "", must=False, has_scopes=False)]
"""Whoever calls, who shows no token: the address that they call from."""

Page = Annotated[
    str,
    Pattern(r"[A-Za-z0-9._:-]{0,200}", "page must be what `next` of the page before it says"),
    "The page to show: `next` of the page before it. By default the first.",
]


_PAGE_FAULT = "page must be what `next` of the page before it says"
_PAGE_TEXT = "The page to show: `next` of the page before it. By default the first."
_ULID = "[0-9A-HJKMNP-TV-Z]{26}"

UlidPage = Annotated[str, Pattern(f"({_ULID})?", _PAGE_FAULT), _PAGE_TEXT]
"""The page of a list by ids that are ULIDs."""

UnitPage = Annotated[str, Pattern(f"([0-8]:[wr]-{_ULID})?", _PAGE_FAULT), _PAGE_TEXT]
"""The page of a list of workers or resources."""

FilePage = Annotated[str, Pattern(rf"(({_ULID})?\.{_ULID})?", _PAGE_FAULT), _PAGE_TEXT]
"""The page of a list of artifacts: an artifact's id, or the part of it that names its job."""

TimePage = Annotated[str, Pattern(r"([0-9]{8}T[0-9]{12}\.[A-Za-z0-9.-]{1,100})?", _PAGE_FAULT), _PAGE_TEXT]
"""The page of a list by times."""

Limit = Annotated[int, Bound(least=1, most=limits.PAGE), "How many entries to show at most."]


IdempotencyKey = Annotated[
    str | None,
    Header("Idempotency-Key"),
    Bound(least=1, most=limits.IDEMPOTENCY_KEY_CHARS),
    "A text of your choice. A repeated request with the same key changes nothing, and gets the same reply.",
]


Tags = Annotated[dict[str, str], "Only jobs with this tag, as `name=value`. May be repeated."]


class Source(IntEnum):
    """Where arguments come from, in the order in which they are read: whoever calls first. [SEC-2]"""

    SYSTEM = 0
    CALLER = 1
    PATH = 2
    BODY = 3
    HEADER = 4
    QUERY = 5


@dataclass(frozen=True)
class Input:
    """One argument of a route: its type without notes, and the notes."""

    name: str
    source: Source
    kind: Any
    notes: tuple[Any, ...]
    default: Any

    @property
    def is_required(self) -> bool:
        """Whether requests must have it."""
        return self.default is inspect.Parameter.empty

    def note(self, kind: type) -> Any:
        """Its note of a class, or None."""
        return next((note for note in self.notes if isinstance(note, kind)), None)


class Operation:
    """A route as it was declared. Its type hints are looked at when it is first called, to start faster."""

    def __init__(
        self,
        call: Callable[..., Any],
        method: str,
        path: str,
        summary: str,
        need: Need = WHOLE,
        status: int = 200,
        also: Sequence[Also] = (),
        most: int = limits.BODY_BYTES,
        tag: Tag | None = None,
    ) -> None:
        self.call, self.name, self.tag = call, call.__name__, tag
        self.method, self.path, self.summary, self.need = method, path, summary, need
        self.status, self.also, self.most = status, also, most

    @cached_property
    def _hints(self) -> Mapping[str, Any]:
        return get_type_hints(self.call, include_extras=True)

    @cached_property
    def inputs(self) -> Sequence[Input]:
        """Its arguments, in the order in which they are read."""
        named = inspect.signature(self.call).parameters.values()
        return sorted((self._input(each) for each in named), key=lambda each: each.source)

    def _input(self, argument: inspect.Parameter) -> Input:
        hint = self._hints[argument.name]
        kind, *notes = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        return Input(argument.name, self._source(argument, kind, notes), kind, tuple(notes), argument.default)

    def _source(self, argument: inspect.Parameter, kind: Any, notes: Sequence[Any]) -> Source:
        if kind is System:
            return Source.SYSTEM
        if any(isinstance(note, Authenticated) for note in notes):
            return Source.CALLER
        if f"{{{argument.name}}}" in self.path:
            return Source.PATH
        if is_dataclass(kind):
            return Source.BODY
        return Source.HEADER if any(isinstance(note, Header) for note in notes) else Source.QUERY

    def _only(self, source: Source) -> Input | None:
        return next((each for each in self.inputs if each.source is source), None)

    @property
    def replies(self) -> Sequence[type]:
        """The classes of its usual replies, if they are JSON: several where the reply is one of them."""
        found = [each for each in (*get_args(self._hints["return"]), self._hints["return"]) if each is not Reply]
        return [kind for kind in found if isinstance(kind, type) and is_dataclass(kind)]

    @property
    def body(self) -> type | None:
        """The class of its request's body, if it takes one."""
        found = self._only(Source.BODY)
        return found.kind if found else None

    @property
    def bare(self) -> bool:
        """Whether the body may be left out."""
        found = self._only(Source.BODY)
        return found is not None and not found.is_required

    @property
    def query(self) -> Sequence[str]:
        """The names of its query parameters."""
        return [each.name for each in self.inputs if each.source is Source.QUERY]

    @property
    def caller(self) -> Authenticated | None:
        """Who may call; None for anybody."""
        found = self._only(Source.CALLER)
        return found.note(Authenticated) if found else None

    @property
    def scope(self) -> str:
        """The scope that the token of a user needs; "" if there is none, or no user calls."""
        return self.need.scope if self.caller and self.caller.has_scopes else ""

    @property
    def open(self) -> bool:
        """Whether no token is needed."""
        return self.caller is None or not self.caller.must

    def serve(self, router: APIGatewayHttpRouter, path: Mapping[str, str]) -> Response[Any]:
        """Answer a request."""
        given = {each.name: self._read(router, path, each) for each in self.inputs}
        if self.method != "GET":
            return self._answer(given)
        header = router.current_event.headers.get(conditional.HEADER.lower())
        return conditional.answer(header, self.tag, given, lambda: self._answer(given))

    def _answer(self, given: Mapping[str, Any]) -> Response[Any]:
        found = self.call(**given)
        if isinstance(found, Response):
            return found
        was = found if isinstance(found, Reply) else Reply(self.status, found)
        made = reply(was.value, was.status, was.cookies)
        made.headers.update({"etag": was.tag} if was.tag else {})
        return made

    def _read(self, router: APIGatewayHttpRouter, path: Mapping[str, str], each: Input) -> Any:
        event: Any = router.current_event
        match each.source:
            case Source.SYSTEM:
                return bootstrap.aws()
            case Source.CALLER:
                return each.note(Authenticated).by(bootstrap.aws(), event, path, self.need)
            case Source.PATH:
                return path[each.name]
            case Source.BODY:
                empty = not each.is_required and not event.body
                return each.default if empty else body.parse(each.kind, text(router), self.most)
            case Source.HEADER:
                return _header(event.headers.get(each.note(Header).name.lower()), each)
            case Source.QUERY:
                return _query(event, each)


def _header(text: str | None, each: Input) -> str | None:
    bound = each.note(Bound)
    if text is not None and not bound.least <= len(text) <= bound.most:
        name = each.note(Header).name
        raise Refused(400, "bad-request", f"an {name} has {bound.least} to {bound.most} characters")
    return text


def _query(event: Event, each: Input) -> Any:
    """A query parameter. Raises Refused 400 for what it cannot be; one that is empty is as one that is absent."""
    if each.kind == dict[str, str]:
        return _tags(event.raw_query_string or "", each.name)
    text = event.get_query_string_value(each.name, "") or ""
    if not text:
        return each.default
    return _reader(each)(text, each)


def _reader(each: Input) -> Callable[[str, Input], Any]:
    kinds = {kind for kind in (each.kind, *get_args(each.kind)) if kind is not NoneType}
    for kind, read in ((bool, _yes_or_no), (int, _whole_number), (datetime, _moment)):
        if kind in kinds:
            return read
    return _one_of if any(get_origin(kind) is Literal for kind in kinds) else _text


def _text(text: str, each: Input) -> str:
    pattern = each.note(Pattern)
    if pattern and not re.fullmatch(pattern.expression, text):
        raise Refused(400, "bad-request", pattern.words)
    return text


def _whole_number(text: str, each: Input) -> int:
    least, most = each.note(Bound).least, each.note(Bound).most
    if not text.isascii() or not text.isdigit() or len(text) > 12 or not least <= int(text) <= most:
        raise Refused(400, "bad-request", f"{each.name} must be a whole number from {least} to {most}")
    return int(text)


def _moment(text: str, each: Input) -> datetime:
    """A time, in UTC; that is also its zone if it names none. One that UTC's calendar has not is none."""
    try:
        found = datetime.fromisoformat(text[:40].replace(" ", "+"))
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        words = f"{each.name} must be a time as in RFC 3339, like 2026-01-31T10:00:00Z"
        raise Refused(400, "bad-request", words) from None


def _yes_or_no(text: str, each: Input) -> bool:
    if text.lower() not in ("true", "1", "false", "0"):
        raise Refused(400, "bad-request", f"{each.name} must be true or false")
    return text.lower() in ("true", "1")


def _one_of(text: str, each: Input) -> str:
    allowed = [
        name for kind in (each.kind, *get_args(each.kind)) if get_origin(kind) is Literal for name in get_args(kind)
    ]
    if text not in allowed:
        raise Refused(400, "bad-request", f"{each.name} is one of {', '.join(allowed)}")
    return text


def _tags(raw: str, name: str) -> dict[str, str]:
    """Tags given as tag=k=v, also more than once. The raw text is read, as the parsed one joins with commas."""
    found = {}
    for pair in parse_qs(raw, errors="replace").get(name, []):
        key, equals, value = pair.partition("=")
        if not equals:
            raise Refused(400, "bad-request", f"{name} looks like {name}=name=value")
        found[key] = value
    return found


class Router:
    """The routes of one noun, which is the tag of its operations in the OpenAPI document."""

    def __init__(self, noun: str) -> None:
        self.noun = noun
        self.http = APIGatewayHttpRouter()  # type: ignore[no-untyped-call]
        self.operations: list[Operation] = []

    def declare(
        self,
        method: str,
        path: str,
        summary: str,
        need: Need = WHOLE,
        *,
        status: int = 200,
        also: Sequence[Also] = (),
        most: int = limits.BODY_BYTES,
        tag: Tag | None = None,
    ) -> Callable[[F], F]:
        """Declare a route. Its function stays what it is.

        `need` is the scope that tokens of users need for it, `most` how many bytes a body may have.
        """

        def add(call: F) -> F:
            operation = Operation(call, method, path, summary, need, status, also, most, tag)
            self.operations.append(operation)
            rule = re.sub(r"{(\w+)}", r"<\1>", path)
            self.http.route(rule, method)(lambda **values: operation.serve(self.http, values))
            return call

        return add

    def get(self, path: str, summary: str, need: Need = WHOLE, **more: Any) -> Callable[[F], F]:
        """Declare a route for GET."""
        return self.declare("GET", path, summary, need, **more)

    def post(self, path: str, summary: str, need: Need = WHOLE, **more: Any) -> Callable[[F], F]:
        """Declare a route for POST."""
        return self.declare("POST", path, summary, need, **more)

    def put(self, path: str, summary: str, need: Need = WHOLE, **more: Any) -> Callable[[F], F]:
        """Declare a route for PUT."""
        return self.declare("PUT", path, summary, need, **more)

    def delete(self, path: str, summary: str, need: Need = WHOLE, **more: Any) -> Callable[[F], F]:
        """Declare a route for DELETE."""
        return self.declare("DELETE", path, summary, need, **more)


def is_optional(one: Field[Any]) -> bool:
    """Whether a field's key is left out where it has no value."""
    return "is_optional" in one.metadata
