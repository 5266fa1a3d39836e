"""Makes the OpenAPI document from `operations` and the classes of `wire`. Run by `make openapi`, never in a function.

Needs pydantic, which only developers install: functions get the finished document and check requests against it.
"""

from __future__ import annotations

import json
import re
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter

from penstock.web.agentoperations import AGENT_OPERATIONS
from penstock.web.operation import Operation
from penstock.web.operations import OPERATIONS
from penstock.wire import Bound, ProblemView

DOCUMENT = Path(__file__).with_name("openapi.json")
REFERENCES = "#/components/schemas/{model}"


def document() -> dict[str, Any]:
    """The whole document."""
    operations = (*OPERATIONS, *AGENT_OPERATIONS)
    kinds = {kind for operation in operations for kind in (operation.body, operation.reply) if kind}
    kinds |= {kind for operation in operations for _, _, kind in operation.also if kind}
    schemas: dict[str, Any] = {}
    for kind in sorted({*kinds, ProblemView}, key=lambda kind: kind.__name__):
        schemas |= _schemas(kind)
    paths: dict[str, Any] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Penstock", "version": "1", "description": "The gate in front of scarce things."},
        "security": [{"bearer": []}],
        "paths": paths,
        "components": {
            "schemas": dict(sorted(schemas.items())),
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }


@cache
def text() -> str:
    """The document as it is kept in the repository."""
    return json.dumps(document(), indent=1, ensure_ascii=False) + "\n"


def _schemas(kind: type) -> dict[str, Any]:
    schema = TypeAdapter(kind).json_schema(ref_template=REFERENCES)
    found: dict[str, Any] = schema.pop("$defs", {})
    found[kind.__name__] = schema
    for name, part in found.items():
        part["additionalProperties"] = False
        _bound(_class(kind, name), part)
        _rename(part)
    return found


def _rename(schema: dict[str, Any]) -> None:
    """Name fields as they are sent: see `entry.reply`."""
    schema["properties"] = {name.rstrip("_"): part for name, part in schema["properties"].items()}
    if "required" in schema:
        schema["required"] = [name.rstrip("_") for name in schema["required"]]


def _class(kind: type, name: str) -> type:
    """The class of a name, among a class and those of its fields."""
    if kind.__name__ == name:
        return kind
    for hint in get_type_hints(kind).values():
        for inner in (hint, *get_args(hint)):
            for candidate in (inner, *get_args(inner)):
                if is_dataclass(candidate) and isinstance(candidate, type):
                    try:
                        return _class(candidate, name)
                    except LookupError:
                        continue
    raise LookupError(name)


def _bound(kind: type, schema: dict[str, Any]) -> None:
    """Write the Bounds of a class's fields into its schema."""
    hints = get_type_hints(kind, include_extras=True)
    for field in fields(kind):
        for hint in (hints[field.name], *get_args(hints[field.name])):
            for note in get_args(hint)[1:] if get_origin(hint) is Annotated else ():
                if isinstance(note, Bound):
                    _write(schema["properties"][field.name], note)


def _write(schema: dict[str, Any], bound: Bound) -> None:
    for part in (schema, *schema.get("anyOf", ())):
        if part.get("type") == "string":
            part |= {"maxLength": bound.most}
        elif part.get("type") == "integer":
            part |= {"minimum": bound.least, "maximum": bound.most}


def _operation(operation: Operation) -> dict[str, Any]:
    named = re.findall(r"{(\w+)}", operation.path)
    parameters = [_parameter(name, "path") for name in named] + [_parameter(name, "query") for name in operation.query]
    made: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "responses": {
            str(operation.status): {"description": "done", **_content("application/json", operation.reply)},
            **{
                str(status): {"description": said, **_content("application/json", kind)}
                for status, said, kind in operation.also
            },
            "default": {"description": "refused", **_content("application/problem+json", ProblemView)},
        },
    }
    if operation.name in ("submit_job", "test_factory"):
        parameters.append({"name": "Idempotency-Key", "in": "header", "schema": {"type": "string"}})
    if parameters:
        made["parameters"] = parameters
    if operation.body:
        made["requestBody"] = {"required": not operation.bare, **_content("application/json", operation.body)}
    if operation.open:
        made["security"] = []
    return made


def _parameter(name: str, where: str) -> dict[str, Any]:
    return {"name": name, "in": where, "required": where == "path", "schema": {"type": "string"}}


def _content(media: str, kind: type | None) -> dict[str, Any]:
    if kind is None:
        return {}
    return {"content": {media: {"schema": {"$ref": REFERENCES.format(model=kind.__name__)}}}}


if __name__ == "__main__":
    DOCUMENT.write_text(text())
