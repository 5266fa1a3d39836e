"""The shapes of requests and replies: each property is described, each view has a source, each error says where."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from types import ModuleType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest
from aws_lambda_powertools.event_handler import Response

from penstock.api import app, body, openapi, routers, workers
from penstock.api.app import Operation
from penstock.api.privileges import RefusePrivilege
from penstock.domain.commands import AgentFile, CacheName, SubmitJob
from penstock.domain.replies import Idle, InputDownloads
from penstock.domain.users.requests import REASON_CHARS
from penstock.kernel.errors import Refused
from tests.functions.stage import EVERY

NOUNS = [*{inspect.getmodule(each.call): None for each in EVERY}]


@pytest.mark.parametrize("kind", openapi.shapes(), ids=lambda kind: kind.__name__)
def test_every_property_is_described(kind: type) -> None:
    made = openapi.shape(kind)
    assert made["description"].endswith(".")
    assert not [name for name, each in made["properties"].items() if not each.get("description", "").endswith(".")]


@cache
def document() -> dict[str, Any]:
    """The OpenAPI document, made once."""
    return openapi.document()


@pytest.mark.parametrize("operation", EVERY, ids=lambda operation: operation.name)
def test_every_operation_and_its_parameters_are_described(operation: Operation) -> None:
    described = document()["paths"][operation.path][operation.method.lower()]
    assert described["summary"]
    assert not described["summary"].endswith(".")
    parameters = [shared(each) for each in described.get("parameters", ())]
    assert not [each["name"] for each in parameters if not each["description"].endswith(".")]


def shared(parameter: Mapping[str, Any]) -> Mapping[str, Any]:
    """A parameter, also one that many operations have."""
    name = str(parameter.get("$ref", "")).rpartition("/")[2]
    return document()["components"]["parameters"][name] if name else parameter


def test_names_of_operations_and_shapes_are_unique() -> None:
    names = [operation.name for operation in EVERY]
    assert len(names) == len(set(names))
    shapes = [kind.__name__ for kind in openapi.shapes()]
    assert len(shapes) == len(set(shapes))


@pytest.mark.parametrize("operation", EVERY, ids=lambda operation: operation.name)
def test_every_reply_has_a_shape(operation: Operation) -> None:
    """But for files and redirections, which are no JSON."""
    assert operation.replies or get_origin(get_type_hints(operation.call)["return"]) is Response


def test_an_optional_key_is_left_out_where_it_has_no_value() -> None:
    waits = {"idle": True, "seconds": 5, "lease_seconds": 60}
    assert app.sent(Idle(seconds=5, lease_seconds=60)) == waits
    assert app.sent(Idle(seconds=5, lease_seconds=60, held_seconds=7)) == {**waits, "held_seconds": 7}
    made = openapi.shape(Idle)
    assert made["required"] == list(waits)
    assert made["properties"]["held_seconds"]["type"] == "integer"
    assert made["properties"]["idle"]["enum"] == [True]


def test_another_key_is_null_where_it_has_no_value() -> None:
    assert app.sent(InputDownloads([], None)) == {"inputs": [], "next": None}
    assert openapi.shape(InputDownloads)["properties"]["next"]["anyOf"] == [{"type": "string"}, {"type": "null"}]


def test_every_router_is_served() -> None:
    declared = {module.router for module in NOUNS if module}
    assert declared == {*routers.ROUTERS, workers.router}


class Types:
    """What types the expressions of one function have, as far as its annotations say."""

    def __init__(self, module: ModuleType, function: ast.FunctionDef) -> None:
        self.module = module
        hints = get_type_hints(getattr(module, function.name))
        self.names: dict[str, Any] = dict(hints)
        for node in ast.walk(function):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    self.names[name] = self.of(value)
                case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation):
                    self.names[name] = eval(ast.unparse(annotation), vars(module))
                case ast.Assign(targets=[ast.Tuple(elts=names)], value=value):
                    self._unpack(names, self.of(value))
                case ast.comprehension(target=ast.Name(id=name), iter=each):
                    self.names[name] = element(self.of(each))
                case ast.comprehension(target=ast.Tuple(elts=[_, ast.Name(id=name)]), iter=ast.Call(args=[each, *_])):
                    self.names[name] = element(self.of(each))
                case ast.comprehension(target=ast.Tuple(elts=names), iter=each):
                    self._unpack(names, element(self.of(each)))

    def _unpack(self, names: Sequence[ast.expr], kind: Any) -> None:
        for target, part in zip(names, get_args(kind), strict=False):
            if isinstance(target, ast.Name):
                self.names[target.id] = part

    def of(self, node: ast.expr) -> Any:
        """The type of an expression, or None."""
        match node:
            case ast.Name(id=name):
                return self.names.get(name)
            case ast.Attribute(value=value, attr=name):
                return attributes(self.of(value)).get(name)
            case ast.Subscript(value=value):
                return self.of(value)
            case ast.Call(func=called):
                found = self._called(called)
                return get_type_hints(found).get("return") if found else None
        return None

    def of_argument(self, node: ast.expr) -> Sequence[Any]:
        """The types of an argument: those of a tuple's elements, where it is starred."""
        return get_args(self.of(node.value)) if isinstance(node, ast.Starred) else [self.of(node)]

    def _called(self, node: ast.expr) -> Any:
        match node:
            case ast.Name(id=name):
                return getattr(self.module, name, None)
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if hasattr(self.module, name):
                return getattr(getattr(self.module, name), attr)
            case ast.Attribute(value=value, attr=attr):
                return getattr(alone(self.of(value)), attr, None)
        return None


def alone(hint: Any) -> Any:
    """A type without None."""
    if get_origin(hint) in (Union, UnionType):
        return next(each for each in get_args(hint) if each is not type(None))
    return hint


def element(hint: Any) -> Any:
    """The type of the elements of a sequence."""
    return next(iter(get_args(alone(hint))), None)


def attributes(hint: Any) -> Mapping[str, Any]:
    """The attributes of a class: its fields, and its properties."""
    kind = alone(hint)
    if not isinstance(kind, type):
        return {}
    properties = inspect.getmembers(kind, lambda each: isinstance(each, property))
    return get_type_hints(kind) | {name: get_type_hints(each.fget).get("return") for name, each in properties}


@cache
def views() -> Sequence[tuple[str, type, Sequence[Any], frozenset[str]]]:
    """Every call of `view`: where it stands, the shape, the types of the row and its parts, and what else is given."""
    return [found for module in NOUNS if module for found in _views(module)]


def _views(module: ModuleType) -> Iterator[tuple[str, type, Sequence[Any], frozenset[str]]]:
    for function in ast.parse(inspect.getsource(module)).body:
        if not isinstance(function, ast.FunctionDef):
            continue
        types = Types(module, function)
        for node in ast.walk(function):
            match node:
                case ast.Call(func=ast.Name(id="view"), args=[ast.Name(id=name), *rows], keywords=given):
                    shape = getattr(module, name)
                    more = {part for each in given if each.arg is None for part in _keys(module, each.value)}
                    where = f"{module.__name__.rpartition('.')[2]}.{function.name}: {name}"
                    kinds = [kind for row in rows for kind in types.of_argument(row)]
                    yield where, shape, kinds, frozenset({str(each.arg) for each in given} | more)


def _keys(module: ModuleType, call: ast.expr) -> Iterator[str]:
    """The keys of the dictionary that a function of the module returns."""
    assert isinstance(call, ast.Call)
    assert isinstance(call.func, ast.Name)
    made = ast.parse(inspect.getsource(getattr(module, call.func.id)))
    for node in ast.walk(made):
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Dict):
            yield from (str(key.value) for key in node.value.keys if isinstance(key, ast.Constant))


@pytest.mark.parametrize(("where", "shape", "rows", "given"), views(), ids=[where for where, *_ in views()])
def test_every_field_of_a_view_has_a_source(
    where: str, shape: type, rows: Sequence[Any], given: frozenset[str]
) -> None:
    """A field that is not given is an attribute of the row, or of a part of it that is named."""
    names = {each.name for each in fields(shape)}
    assert given - {"None"} <= names
    assert not list(missing(shape, rows, given))


def missing(shape: type, rows: Sequence[Any], given: frozenset[str] = frozenset()) -> Iterator[str]:
    """The fields of a shape, and of the shapes in it, that none of the rows has. The first row that has one counts."""
    known = [attributes(row) for row in rows]
    assert all(known), "the row's type is not known: annotate it"
    found = {name: kind for each in reversed(known) for name, kind in each.items()}
    for name, hint in get_type_hints(shape).items():
        if name not in given and name not in found:
            yield f"{shape.__name__}.{name}"
        elif name not in given and (inner := dataclass_in(hint)) and (source := dataclass_in(found[name])) != inner:
            yield from missing(inner, [source])


def dataclass_in(hint: Any) -> Any:
    """The dataclass that a type is, or that its elements are."""
    if is_dataclass(hint):
        return hint
    return next((found for each in get_args(hint) if (found := dataclass_in(each))), None)


def wrong(kind: type, raw: str) -> list[tuple[str | None, str, str | None]]:
    """What is wrong with a body."""
    with pytest.raises(Refused) as caught:
        body.parse(kind, raw)
    assert (caught.value.status, caught.value.code) == (400, "bad-request")
    return [(fault.where, fault.message, fault.hint) for fault in caught.value.faults]


@pytest.mark.parametrize(
    ("kind", "raw", "expected"),
    [
        (SubmitJob, "[]", [(None, "the body must be a JSON object", None)]),
        (CacheName, '{"name": "deps"}', [("paths", "paths is missing", None)]),
        (SubmitJob, '{"path": 1}', [("path", "path must be a string", None)]),
        (
            SubmitJob,
            '{"script": "x", "scirpt": "x", "priority": "high"}',
            [
                ("scirpt", "unknown key 'scirpt'", "did you mean 'script'?"),
                ("priority", "priority must be a whole number or null", None),
            ],
        ),
        (
            SubmitJob,
            '{"script": "x", "tags": {"a": 1}}',
            [("tags.a", "tags.a must be a string", None)],
        ),
        (
            SubmitJob,
            '{"script": "x", "resources": ["a", 2]}',
            [("resources[1]", "resources[1] must be a string", None)],
        ),
        (
            SubmitJob,
            '{"script": "x", "resources": "a"}',
            [("resources", "resources must be a list or an object or null", None)],
        ),
        (AgentFile, '{"path": "x", "size": true, "sha256": ""}', [("size", "size must be a whole number", None)]),
        (
            AgentFile,
            '{"path": "%s", "size": 1, "sha256": ""}' % ("x" * 1025),
            [("path", "path must have at most 1024 characters", None)],
        ),
        (RefusePrivilege, '{"reason": ""}', [("reason", f"reason must have 1 to {REASON_CHARS} characters", None)]),
        (
            workers.AgentOutputs,
            '{"files": [{"path": "x", "sise": 1, "sha256": ""}]}',
            [
                ("files[0].sise", "unknown key 'sise'", "did you mean 'size'?"),
                ("files[0].size", "files[0].size is missing", None),
            ],
        ),
        (
            workers.AgentFinish,
            '{"result": "succeded"}',
            [
                (
                    "result",
                    "result must be one of succeeded, failed, cancelled, timed_out, broken, unprepared",
                    "did you mean 'succeeded'?",
                )
            ],
        ),
    ],
)
def test_an_error_says_where_it_is_and_what_was_meant(kind: type, raw: str, expected: list[Any]) -> None:
    assert wrong(kind, raw) == expected
