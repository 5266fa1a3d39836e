"""Requests made from the OpenAPI document, right ones and wrong ones, and what must hold for each answer.

Schemathesis makes them from the document that the API serves. Ids that there are, queries that mean something and
bodies that are right but for a key are mixed in, for else almost all that is answered is that there is no such thing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi import checks
from werkzeug.test import Client

from penstock.api import openapi
from penstock.api.app import Operation
from penstock.api.problems import TITLES
from penstock.domain.users.users import WHOLE
from tests.functions.service import SITE as OTHER_SITE
from tests.functions.stage import BODIES, DIGEST, HEADERS
from tests.fuzz.preparations import PREPARATIONS
from tests.fuzz.stage import TOKEN, Stage

EVERY = [*openapi.users(), *openapi.agents()]
CHECKS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
    checks.negative_data_rejection,
]
REFUSED = [str(status) for status in TITLES if status < 500]
SETTINGS = {"checks": {"negative_data_rejection": {"expected-statuses": REFUSED}}}
"""What is wrong may be refused for another reason, as that the attempt is over, which is looked at first."""

QUERY: Mapping[str, list[str]] = {
    "plan": ["true", "0"], "check": ["true", "1"], "now": ["true", "false"], "limit": ["1", "100"],
    "after": ["0", "1"], "last": ["2"], "state": ["running", "settled"], "target": ["linux"], "tag": ["a=b", "a"],
    "owner": ["ada"], "who": ["ada", "root"], "since": ["2026-01-01T00:00:00Z", "0001-01-01T00:00:00+23:59"],
    "series": ["nightly"], "version": ["v1"], "within": ["60"], "by": ["ada"], "page": ["x"],
}  # fmt: skip
"""Values that mean something, by the parameter."""

ODD = st.text(max_size=20) | st.sampled_from(["..", "%2F", "a/b", "0", "\u00e4", "~", "#", "?", "x" * 200])


@cache
def _load(stage: Stage) -> Any:
    """The document as the API serves it, but for the tokens: whose request it is, is chosen here."""
    served = Client(stage.door).get("/v1/openapi.json").json
    assert served
    del served["security"], served["components"]["securitySchemes"]
    found = schemathesis.openapi.from_dict(served, config=schemathesis.Config.from_dict(SETTINGS))
    found.app = stage.door
    return found


def drive(stage: Stage, operation: Operation, size: int, number: int = 0) -> None:
    """So many right and so many wrong requests of one operation. Raises what a check finds, with the request."""
    stage.begin(PREPARATIONS.get(operation.name, lambda stage: None))
    _requests(stage, operation, GenerationMode.POSITIVE, size, number)
    if operation.body:  # every text is right in a path or a query, so a request without a body cannot be wrong
        _requests(stage, operation, GenerationMode.NEGATIVE, size, number)


def _requests(stage: Stage, operation: Operation, mode: GenerationMode, size: int, number: int) -> None:
    described = _load(stage)[operation.path][operation.method]

    @seed(number)
    @settings(
        max_examples=size, deadline=None, database=None, phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck), print_blob=False,
    )  # fmt: skip
    @given(data=st.data())
    def anything(data: st.DataObject) -> None:
        case = data.draw(described.as_strategy(generation_mode=mode))
        _mix(stage, operation, case, data.draw)
        if mode is GenerationMode.POSITIVE:
            _near(stage, operation, case, data.draw)
        _ask(stage, operation, case, data.draw)

    anything()


def _mix(stage: Stage, operation: Operation, case: Case, draw: Callable[..., Any]) -> None:
    """What there is in place of some of what was made up."""
    real = {**stage.real, **_names(operation), **_jobs(stage, operation)}
    for name in list(case.path_parameters or {}):
        drawn = draw(st.sampled_from(real[name]) if draw(st.integers(0, 9)) else ODD)
        case.path_parameters[name] = drawn.replace("?", "%3F")  # which the client that sends it leaves as it is
    if operation.name in ("read_shared_events", "read_shared_segment") and draw(st.integers(0, 3)):
        case.query["key"] = stage.key_of_log
    for name in list(case.query or {}):
        if name in QUERY and draw(st.booleans()):
            case.query[name] = draw(st.sampled_from(QUERY[name]))


def _names(operation: Operation) -> dict[str, list[str]]:
    """What `name` and `sort` may be, where only some of what there is makes sense."""
    names = {
        "/v1/factories/": ["hand", "lab"], "/v1/wells/": ["hand"], "/v1/targets/": ["linux", "benches"],
        "/v1/resource-types/": ["bench", "licence"], "/v1/users/": ["ada", "root"], "/v1/published/": ["x.bin"],
        "/v1/public/": ["x.bin"], "/v1/jobs/": ["answer", "x"], "/v1/canaries/": ["licence"],
    }  # fmt: skip
    if operation.name in ("remove_user", "ask_privilege", "refuse_privilege"):
        return {"name": ["eve"], "privilege": ["resource.bench"]}
    if operation.path.startswith("/v1/pools/"):
        return {"sort": ["target"], "name": ["linux", "big"]}
    known = next((each for start, each in names.items() if operation.path.startswith(start)), None)
    users = {"user": ["ada", "root"]} if operation.name == "accept_repository" else {}
    return users | ({"name": known} if known else {}) | ({"sort": ["resource"]} if "canaries" in operation.path else {})


def _jobs(stage: Stage, operation: Operation) -> dict[str, list[str]]:
    """Which job it may be, mostly, for an answer to be that it was done."""
    if operation.path.startswith("/v1/agent/"):
        return {"job": [stage.running] * 4 + [stage.settled]}
    if "/inputs" in operation.path:
        return {"job": [stage.given] * 4 + [stage.running]}
    if operation.name in ("read_segment", "read_shared_events", "read_shared_segment"):
        return {"job": [stage.running]}
    if operation.path.endswith("/review"):
        return {"job": [stage.reviewed]}
    if operation.name == "get_provenance":
        return {"job": [stage.settled]}
    if operation.name == "publish_output":
        return {"job": [stage.settled], "output": [stage.published]}
    return {"job": [stage.tested]} if operation.name == "get_factory_test" else {}


def _near(stage: Stage, operation: Operation, case: Case, draw: Callable[..., Any]) -> None:
    """A body that is right in all but a few keys, in place of some that only have the right shape."""
    good = {**_said(stage), **BODIES}.get(operation.name)
    if isinstance(good, dict) and isinstance(case.body, dict) and draw(st.integers(0, 3)):
        kept = draw(st.sets(st.sampled_from(sorted(case.body)), max_size=1)) if case.body else set()
        case.body = {**good, **{name: case.body[name] for name in kept}}


def _said(stage: Stage) -> dict[str, Any]:
    """Right bodies that name what there is."""
    parts = {"id": stage.big or stage.output, "first": 1, "sha256": [DIGEST]}
    ask = {name: BODIES["agent_save_cache"][name] for name in ("name", "paths", "key")}
    return {
        "agent_hello": {"worker": stage.worker, "key": stage.key, "token": TOKEN, "host": "here"},
        "agent_commit": {"ids": [stage.output]},
        "agent_parts": parts,
        "agent_cache_parts": parts,
        "ask_privilege": {"reason": "the new boards"},
        "take_login": {"secret": stage.login["secret"]},
        "agent_commit_cache": {"id": stage.archive, **ask},
        "apply_site": {"toml": OTHER_SITE},
        "begin_session": {"token": stage.ada},
    }


def _ask(stage: Stage, operation: Operation, case: Case, draw: Callable[..., Any]) -> None:
    """One request of somebody, and what must hold of its answer."""
    tokens = {
        "root": stage.root, "ada": stage.ada, "eve": stage.eve, "worker": TOKEN, "nobody": None, "stranger": "x" * 43
    }  # fmt: skip
    mine = ["root", "ada"] if operation in openapi.users() or operation.need != WHOLE else ["worker"]
    mine = ["eve"] if operation.name == "ask_privilege" else mine
    who = draw(st.sampled_from([*mine, *mine, *mine, *tokens]), "who")
    token = tokens[who]
    stage.again()
    ours = HEADERS.get(operation.name, {})
    answer = case.call(headers={**ours, **({"Authorization": f"Bearer {token}"} if token else {})})
    stage.met[operation.name, answer.status_code] += 1
    case.validate_response(answer, checks=CHECKS)
    declared = {operation.status, *(each.status for each in operation.also)}
    assert answer.status_code in declared | TITLES.keys() - {500, 503}, f"{answer.status_code} is not declared"
    if not operation.open and who in ("nobody", "stranger"):
        assert answer.status_code in (401, 403, 404, 410), f"{who} is answered {answer.status_code}"
