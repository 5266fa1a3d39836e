"""Whatever is sent to whichever operation, the answer is no 5xx, and a refusal has the one shape."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.api.app import Operation
from tests.functions.service import SCHEMAS, WORKER_TOKEN, Service, is_problem, token_of
from tests.functions.stage import BODIES, EVERY, Stage

WORDS = st.text(max_size=40) | st.sampled_from(
    ["linux", "bench", "hand", "ada", "root", "target", "resource", "1", "true", "\0", "%2F"]
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | WORDS
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=4), max_leaves=12
)
KEYS = sorted({key for schema in SCHEMAS.values() for key in schema["properties"]})
SETTINGS = settings(
    max_examples=3,  # tests/fuzz makes more, from the document
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@st.composite
def bodies(draw: st.DrawFn, operation: Operation) -> Any:
    """A body that is right but for a key or two, or any JSON, or any text or bytes."""
    kind = draw(st.sampled_from(["near", "near", "near", "any", "text", "bytes", "none"]))
    if kind == "text":
        return draw(st.text())
    if kind == "bytes":
        return draw(st.binary())
    if kind == "any":
        return draw(VALUES)
    if kind == "none":
        return None
    known = list(getattr(operation.body, "__dataclass_fields__", {})) or KEYS
    near = dict(BODIES.get(operation.name, {}))
    near.update(draw(st.dictionaries(st.sampled_from(known) | st.sampled_from(KEYS), VALUES, max_size=2)))
    return near


@pytest.fixture
def stage(service: Service) -> Stage:
    made = Stage(service)
    made.tested = service.ask("POST", "/v1/factories/hand/test", as_="root").json["id"]
    service.twin.run()
    return made


@pytest.mark.parametrize("operation", EVERY, ids=lambda operation: operation.name)
def test_no_request_is_our_fault(stage: Stage, operation: Operation) -> None:
    rows = dict(stage.service.twin.store.rows)

    @SETTINGS
    @given(data=st.data())
    def anything(data: st.DataObject) -> None:
        stage.service.twin.store.rows.clear()
        stage.service.twin.store.rows.update(rows)
        known = st.sampled_from([stage.job, stage.waiting, stage.tested, stage.output, stage.unit(0), stage.unit(1)])
        ids = {name: data.draw(known | WORDS, name) for name in _parameters(operation)}
        query = data.draw(st.dictionaries(st.sampled_from(["tag", *operation.query]) | WORDS, WORDS, max_size=3))
        body = data.draw(bodies(operation), "body")
        body = json.dumps(body) if not isinstance(body, str | bytes | None) else body
        token = data.draw(st.sampled_from([token_of("root"), token_of("ada"), WORKER_TOKEN]) | WORDS, "token")
        answer = stage.service.ask(
            operation.method, operation.path.format(**ids), body, token=token, query=query,
            headers=data.draw(st.dictionaries(st.just("idempotency-key"), WORDS)),
        )  # fmt: skip
        assert answer.status < 500, answer
        if answer.status >= 400:
            is_problem(answer)

    anything()


def _parameters(operation: Operation) -> list[str]:
    return [part[1:-1] for part in operation.path.split("/") if part.startswith("{")]
