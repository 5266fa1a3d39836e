"""Makes the OpenAPI document from the routes and their type hints. Run by `make openapi`, never in a function."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import datetime
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from penstock.api import cookies, workers
from penstock.api.app import Header, Input, Operation, Pattern, Router, Source, is_optional
from penstock.api.conditional import HEADER
from penstock.api.document import DOCUMENT
from penstock.api.problems import ProblemView
from penstock.api.routers import ROUTERS
from penstock.kernel.limits import Bound

SIMPLE: Mapping[Any, Mapping[str, Any]] = {
    str: {"type": "string"}, int: {"type": "integer"}, float: {"type": "number"}, bool: {"type": "boolean"},
    NoneType: {"type": "null"}, datetime: {"type": "string", "format": "date-time"}, Any: {},
}  # fmt: skip
SESSIONS = (
    f"The console takes a session in place of a token, on every operation, with the header `{cookies.HEADER}: 1`. "
    "`POST /v1/session` sets the cookie."
)

PLACES = {Source.PATH: "path", Source.QUERY: "query", Source.HEADER: "header"}

PATHS = {
    "lease": "The lease's id.",
    "artifact": "The artifact's id.",
    "code": "The code that the machine shows, with or without the hyphen.",
    "cache": "The id of the cache's entry.",
    "delivery": "The delivery's id.",
    "host": "The host's name.",
    "job": "The job's id.",
    "name": "The name.",
    "output": "The output's id.",
    "owner": "The user or repository that owns it.",
    "privilege": "The privilege.",
    "resource": "The resource's id.",
    "segment": "The segment's number, from 0: segment N has the lines from 1000 N + 1 on. It is there once the log has "
    "all 1,000 of them.",
    "series": "The series.",
    "set": "The set's id: the value of its jobs' tag `set`; for jobs that check a commit, the commit's SHA.",
    "sort": "What the pool is of: `target`, `resource` or `quota`.",
    "token": "The token's id.",
    "user": "The user's name.",
    "version": "The version in the series.",
    "worker": "The worker's id.",
}
"""What the parameters in paths are."""

_TEXT = {"type": "string"}
_TAG = {"description": "The tag of this reply. With it in `If-None-Match`, the same reply is not sent again."}

CONDITIONAL: Mapping[str, Any] = {
    "parameters": {
        "IfNoneMatch": {
            "name": HEADER,
            "in": "header",
            "required": False,
            "description": "The `ETag` of a reply that you have. If it is still what there is, the answer is 304.",
            "schema": _TEXT,
        }
    },
    "headers": {"ETag": _TAG | {"schema": _TEXT}},
    "responses": {
        "Unchanged": {
            "description": "unchanged: the reply that you have is what there is",
            "headers": {"ETag": {"$ref": "#/components/headers/ETag"}},
        }
    },
}
"""What every GET has that replies in JSON."""


def users() -> Sequence[Operation]:
    """Every operation of users and operators."""
    return [operation for router in ROUTERS for operation in router.operations]


def agents() -> Sequence[Operation]:
    """Every operation of agents."""
    return list(workers.router.operations)


def document() -> dict[str, Any]:
    """The whole document."""
    paths: dict[str, Any] = {}
    for router in (*ROUTERS, workers.router):
        for operation in router.operations:
            paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(router, operation)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Penstock", "version": "1", "description": "The gate in front of scarce things."},
        "security": [{"bearer": []}],
        "paths": paths,
        "components": {
            "schemas": {kind.__name__: shape(kind) for kind in shapes()},
            **CONDITIONAL,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "session": {"type": "apiKey", "in": "cookie", "name": cookies.SESSION, "description": SESSIONS},
            },
        },
    }


@cache
def text() -> str:
    """The document as it is kept in the repository."""
    return json.dumps(document(), indent=1, ensure_ascii=False) + "\n"


def shapes() -> Sequence[type]:
    """Every class of requests and replies, and those in them, by name."""
    found: set[type] = set()
    for operation in (*users(), *agents()):
        for kind in (operation.body, *operation.replies, *(also.reply for also in operation.also), ProblemView):
            found |= set(_with_inner(kind)) if kind else set()
    return sorted(found, key=lambda kind: kind.__name__)


def _with_inner(hint: Any) -> Iterator[type]:
    """The classes in a type, and in their fields."""
    if isinstance(hint, type) and is_dataclass(hint):
        yield hint
        for inner in get_type_hints(hint).values():
            yield from _with_inner(inner)
    for inner in get_args(hint):
        yield from _with_inner(inner)


def shape(kind: type) -> dict[str, Any]:
    """The schema of a class."""
    hints = get_type_hints(kind, include_extras=True)
    named = {each.name.rstrip("_"): each for each in fields(kind)}
    required = [name for name, each in named.items() if _is_required(each)]
    return {
        "description": inspect.getdoc(kind),
        "type": "object",
        "properties": {name: _property(hints[each.name], each) for name, each in named.items()},
        **({"required": required} if required else {}),
        "additionalProperties": False,
    }


def _is_required(field: Field[Any]) -> bool:
    """Whether a key is always there: it has no default, or only ever one value."""
    return not field.init or (field.default is MISSING and field.default_factory is MISSING)


def _property(hint: Any, field: Field[Any]) -> dict[str, Any]:
    if is_optional(field) or not field.init:
        return _never_null(schema(hint))
    if field.default_factory is not MISSING:
        return schema(hint) | {"default": field.default_factory()}
    return schema(hint) if field.default is MISSING else schema(hint) | {"default": field.default}


def _never_null(made: dict[str, Any]) -> dict[str, Any]:
    """The schema of a key that is left out where it has no value."""
    kinds = [each for each in made.pop("anyOf", ()) if each != {"type": "null"}]
    return (kinds[0] if len(kinds) == 1 else {"anyOf": kinds} if kinds else {}) | made


def schema(hint: Any) -> dict[str, Any]:
    """The schema of a type."""
    if hint in SIMPLE:
        return dict(SIMPLE[hint])
    kind, parts = get_origin(hint), get_args(hint)
    if kind is Annotated:
        return _noted(schema(parts[0]), parts[1:])
    if kind in (list, tuple):
        return {"type": "array", "items": schema(parts[0])}
    if kind is dict:
        return {"type": "object", "additionalProperties": schema(parts[1]) or True}
    if kind is Literal:
        return {**SIMPLE[type(parts[0])], "enum": list(parts)}
    if kind in (Union, UnionType):
        return _merged(parts) or {"anyOf": [schema(part) for part in parts]}
    return {"$ref": f"#/components/schemas/{hint.__name__}"}


def _merged(parts: Sequence[Any]) -> dict[str, Any] | None:
    """The schema of one of several lists of words, as one list; None where a part is anything else."""
    if any(get_origin(part) is not Literal for part in parts):
        return None
    return schema(Literal[tuple(dict.fromkeys(word for part in parts for word in get_args(part)))])


def _noted(made: dict[str, Any], notes: Sequence[Any]) -> dict[str, Any]:
    """A schema with what the notes of its type say."""
    for note in notes:
        if isinstance(note, str):
            made["description"] = note
        elif isinstance(note, Pattern):
            made["pattern"] = f"^{note.expression}$"
        elif isinstance(note, Bound):
            for part in (made, *made.get("anyOf", ())):
                part.update(_bounds(part.get("type"), note))
    return made


def _bounds(kind: object, bound: Bound) -> dict[str, int]:
    if kind == "string":
        return {"maxLength": bound.most} | ({"minLength": bound.least} if bound.least else {})
    return {"minimum": bound.least, "maximum": bound.most} if kind == "integer" else {}


def _operation(router: Router, operation: Operation) -> dict[str, Any]:
    words = _who(operation)
    parameters = [_parameter(each) for each in operation.inputs if each.source in PLACES]
    made: dict[str, Any] = {
        "operationId": operation.name,
        "tags": [router.noun],
        "summary": operation.summary,
        **({"description": words} if words else {}),
        "responses": _responses(operation),
    }
    parameters += _unread(operation)
    if _is_conditional(operation):
        parameters.append({"$ref": "#/components/parameters/IfNoneMatch"})
    if parameters:
        made["parameters"] = parameters
    if operation.body:
        made["requestBody"] = {"required": not operation.bare, **_content("application/json", operation.body)}
    if operation.open:
        made["security"] = []
    elif operation.scope:
        made["security"] = [{"bearer": [operation.scope]}]
    return made


def _who(operation: Operation) -> str:
    """Who may call, and with which scope, in words."""
    caller, scope = operation.caller, operation.scope
    needs = f"Needs a token with the scope `{scope}`." if scope else ""
    return " ".join(filter(None, (caller.who if caller else "", needs if caller and caller.must else "")))


def _responses(operation: Operation) -> dict[str, Any]:
    made = {str(operation.status): {"description": "done", **_content("application/json", *operation.replies)}}
    for also in operation.also:
        made[str(also.status)] = {"description": also.when, **_content("application/json", also.reply)}
    if _is_conditional(operation):
        made[str(operation.status)]["headers"] = {"ETag": {"$ref": "#/components/headers/ETag"}}
        made["304"] = {"$ref": "#/components/responses/Unchanged"}
    return made | {"default": {"description": "refused", **_content("application/problem+json", ProblemView)}}


def _is_conditional(operation: Operation) -> bool:
    """Whether a caller who has the reply already gets none."""
    return operation.method == "GET" and bool(operation.replies)


def _unread(operation: Operation) -> list[dict[str, Any]]:
    """Parameters in the path that the route's function does not take, for it is whoever calls that they name."""
    taken = {each.name for each in operation.inputs}
    named = [name for name in re.findall(r"{(\w+)}", operation.path) if name not in taken]
    return [_in_path(name) for name in named]


def _in_path(name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "description": PATHS[name], "schema": {"type": "string"}}


def _parameter(each: Input) -> dict[str, Any]:
    if each.source is Source.PATH:
        return _in_path(each.name)
    header = each.note(Header)
    description = next(note for note in each.notes if isinstance(note, str))
    return {
        "name": header.name if header else each.name,
        "in": PLACES[each.source],
        "required": False,
        "description": description,
        "schema": _plain(each),
    }


def _plain(each: Input) -> dict[str, Any]:
    """The schema of a parameter, which cannot be null, for it is text in a URL or a header."""
    kind = {"type": "array", "items": dict(_TEXT)} if get_origin(each.kind) is dict else None
    is_one_of = get_origin(each.kind) in (Union, UnionType)
    hint = Union[tuple(one for one in get_args(each.kind) if one is not NoneType)] if is_one_of else each.kind  # noqa: UP007
    made = _noted(kind or schema(hint), [note for note in each.notes if not isinstance(note, str)])
    return made | ({"default": each.default} if each.default and each.is_required is False else {})


def _content(media: str, *kinds: type | None) -> dict[str, Any]:
    """What a body holds: one of some classes; nothing if there are none."""
    found = [schema(kind) for kind in kinds if kind]
    made = found[0] if len(found) == 1 else {"anyOf": found}
    return {"content": {media: {"schema": made}}} if found else {}


if __name__ == "__main__":
    DOCUMENT.write_text(text())
