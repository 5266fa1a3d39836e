"""Every operation does what the OpenAPI document says, and the document says every operation."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any

import agent_api
import api
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from penstock.api import openapi
from penstock.api.app import Operation
from penstock.cli.commands.cost import PARTS
from penstock.usecases import sweep
from tests.functions.service import SITE, WORKER_TOKEN, Service, conforms
from tests.functions.stage import (
    AGENT_OPERATIONS,
    BODIES,
    BYTES,
    DIGEST,
    EVERY,
    OPERATIONS,
    Stage,
)


@pytest.fixture
def stage(service: Service) -> Stage:
    return Stage(service)


@pytest.mark.parametrize("operation", EVERY, ids=lambda operation: operation.name)
def test_an_operation_answers_as_the_document_says(stage: Stage, operation: Operation) -> None:
    answer = stage.take(operation)
    assert answer.status == operation.status, answer
    assert answer.body or answer.status == 302 or operation.method == "HEAD"
    if operation.replies:
        conforms(answer.json, *(kind.__name__ for kind in operation.replies))


def test_a_job_is_shown_with_what_it_has(stage: Stage) -> None:
    ask = stage.service.ask
    shown = ask("GET", f"/v1/jobs/{stage.job}").json
    assert (shown["state"], shown["worker"], shown["owner"]) == ("running", stage.unit(0), "ada")
    assert shown["resources"] == [{"name": "bench", "type": "bench", "state": "ready", "slot": "bench-1", "choice": ""}]
    why = ask("GET", f"/v1/jobs/{stage.waiting}/why").json
    assert (why["blocked_on"]["pool"], why["blocked_on"]["position"]) == ("resource/bench", 1)
    events = ask("GET", f"/v1/jobs/{stage.job}/events").json
    assert [event["seq"] for event in events["items"]] == list(range(1, events["next"] + 1))
    assert any(event["stream"] == "stdout" and event["payload"] == "hi" for event in events["items"])
    rest = ask("GET", f"/v1/jobs/{stage.job}/events", query={"after": str(events["next"])}).json
    assert (rest["items"], rest["next"]) == ([], events["next"])
    outputs = ask("GET", f"/v1/jobs/{stage.job}/outputs").json["items"]
    assert [(one["path"], one["size"], one["sha256"]) for one in outputs] == [("/work/x", len(BYTES), DIGEST)]


def test_the_timings_of_a_job_say_what_it_held(stage: Stage) -> None:
    stage.service.twin.pass_time(60)
    held = stage.service.ask("GET", f"/v1/jobs/{stage.job}/timings").json["held"]
    assert [(one["attempt"], one["name"], one["type"]) for one in held] == [
        (1, "bench", "bench"),
        (1, "worker", "linux"),
    ]
    assert all(one["seconds"] >= 60 > one["unused_seconds"] for one in held)


def test_what_only_a_job_may_know_is_shown_to_nobody_else(stage: Stage) -> None:
    """SEC-1: a resource's metadata, the bootstrap key, and a worker's token are in no answer to a user."""
    secrets = [stage.key(), WORKER_TOKEN, "metadata"]
    for operation in OPERATIONS:
        if operation.name != "get_openapi":
            text = stage.take(operation).body.decode()
            assert not [secret for secret in secrets if secret in text], operation.name


def test_checking_a_site_changes_nothing(stage: Stage) -> None:
    rows = dict(stage.service.twin.store.rows)
    answer = stage.service.ask("PUT", "/v1/config", BODIES["apply_site"], as_="root", query={"check": "true"})
    assert answer.json["changes"] == ["limits.boot: 600 (default) -> 60"]
    assert stage.service.twin.store.rows == rows


def test_a_site_is_applied_only_in_place_of_the_one_that_was_compared_with(stage: Stage) -> None:
    """A tag may stand in quotes, as HTTP has it."""
    ask = stage.service.ask
    base = ask("PUT", "/v1/config", BODIES["apply_site"], as_="root", query={"check": "true"}).json["base"]
    assert ask("GET", "/v1/config", as_="root").json["base"] == base
    other = {"toml": f"{BODIES['apply_site']['toml']}grace = 20\n"}
    assert ask("PUT", "/v1/config", other, as_="root", headers={"If-Match": f'"{base}"'}).json["changes"]
    answer = ask("PUT", "/v1/config", BODIES["apply_site"], as_="root", headers={"If-Match": base})
    assert (answer.status, answer.json["code"], answer.json["title"]) == (412, "site-changed", "Precondition Failed")
    assert ask("GET", "/v1/config", as_="root").json["toml"] == other["toml"]


def test_a_check_says_what_jobs_would_lose_and_what_was_changed_by_hand(stage: Stage) -> None:
    ask = stage.service.ask
    ask("PUT", "/v1/pools/target/linux/limit", {"limit": 7}, as_="root")
    answer = ask("PUT", "/v1/config", BODIES["apply_site"], as_="root", query={"check": "true"}).json
    assert answer["differences"] == [{"sign": "~", "path": "limits.boot", "before": "600 (default)", "after": "60"}]
    (drift,) = [each for each in answer["drift"] if each["pool"] == "target/linux" and each["reset"]]
    assert (drift["by"], drift["change"].partition(" -> ")[2][:7]) == ("root", "limit 7")
    assert drift["at"]
    (loss,) = [each for each in answer["losses"] if each["what"] == "target/linux"]
    assert loss["held"] or loss["waiting"]
    assert loss["summary"].startswith(f"target/linux: {loss['change']}; {loss['held']} held")


def test_a_plan_writes_nothing_and_says_what_a_submit_would_do(stage: Stage) -> None:
    rows = dict(stage.service.twin.store.rows)
    ask = BODIES["submit_job"] | {"resources": ["bench"]}
    answer = stage.service.ask("POST", "/v1/jobs", ask, query={"plan": "true"})
    assert (answer.status, stage.service.twin.store.rows) == (200, rows)
    conforms(answer.json, "PlanView")
    assert [[one["pool"] for one in step["acquires"]] for step in answer.json["steps"]] == [
        ["resource/bench"],
        ["target/linux"],
    ]
    (wait,) = answer.json["waits_for"]
    assert (wait["pool"], wait["position"], wait["expected_seconds"]) == ("resource/bench", 2, None)
    assert answer.json["would_wait"]
    assert stage.service.ask("POST", "/v1/jobs", ask, query={"plan": "false"}).status == 201


def test_the_graph_of_a_site(stage: Stage) -> None:
    found = stage.service.ask("GET", "/v1/graph", as_="root").json
    assert {"from": "resource/bench", "to": stage.job, "kind": "holds", "choice": ""} in found["edges"]
    assert {"from": stage.waiting, "to": "resource/bench", "kind": "waits", "choice": ""} in found["edges"]
    why = stage.service.ask("GET", f"/v1/jobs/{stage.waiting}/why").json
    assert why["unblocks"] == f"bench-1 is given back by {stage.job}"


def test_the_kept_document_is_fresh_and_valid() -> None:
    assert openapi.DOCUMENT.read_text(encoding="utf-8") == openapi.text(), "run python -m penstock.api.openapi"
    OpenAPIV31SpecValidator(json.loads(openapi.text())).validate()


def test_every_route_is_an_operation_and_every_operation_a_route() -> None:
    for app, operations in ((api.app, OPERATIONS), (agent_api.app, AGENT_OPERATIONS)):
        routes = [*app._static_routes, *app._dynamic_routes]
        served = {(route.method, re.sub(r"<(\w+)>", r"{\1}", route.path)) for route in routes}
        assert served == {(operation.method, operation.path) for operation in operations}


@pytest.mark.parametrize("operation", [each for each in EVERY if each.body], ids=lambda operation: operation.name)
def test_a_body_may_be_left_out_where_the_document_says_so(stage: Stage, operation: Operation) -> None:
    described = json.loads(openapi.text())["paths"][operation.path][operation.method.lower()]["requestBody"]
    assert described["required"] is not operation.bare
    stage.left_out = True
    answer = stage.take(operation)
    if operation.bare:
        assert answer.status in (operation.status, 409), answer
    else:
        assert (answer.status, answer.json["code"]) == (400, "malformed-json"), answer


def pointed(body: Any) -> Any:
    """The same, with each whole number written as 5.0."""
    if isinstance(body, dict):
        return {name: pointed(value) for name, value in body.items()}
    return [pointed(each) for each in body] if isinstance(body, list) else float(body) if type(body) is int else body


@pytest.mark.parametrize(
    "name", [name for name, body in BODIES.items() if json.dumps(pointed(body)) != json.dumps(body)]
)
def test_a_whole_number_may_have_a_point(stage: Stage, name: str) -> None:
    """As JSON Schema has it: what a program with one kind of number sends is no error, and no fault of ours."""
    operation = next(each for each in EVERY if each.name == name)
    stage.left_out = json.dumps(pointed(BODIES[name]))
    assert stage.take(operation).status == operation.status


@pytest.mark.parametrize(
    "operation", [each for each in EVERY if each.body and not each.open], ids=lambda operation: operation.name
)
def test_nobody_is_told_what_is_wrong_with_a_body(stage: Stage, operation: Operation) -> None:
    """SEC-2: who asks is looked at before what they say."""
    stage.left_out = "{"
    assert stage.take(operation, as_nobody=True).status == 401


def test_what_whoever_has_the_bytes_is_answered_is_in_the_document(stage: Stage) -> None:
    stage.publish("read_published")
    path = "/v1/public/file/ada/nightly/v1/x.bin"
    had = {"if-none-match": f'"{DIGEST}"'}
    for method, operation in (("GET", "read_published"), ("HEAD", "look_at_published")):
        (also,) = [each.also for each in OPERATIONS if each.name == operation]
        answer = stage.service.ask(method, path, headers=had)
        assert (answer.status, answer.body) == (also[0].status, b"")


def test_the_cost_of_a_job_says_what_it_held(stage: Stage) -> None:
    stage.service.twin.pass_time(60)
    cost = stage.service.ask("GET", f"/v1/jobs/{stage.job}/cost").json
    assert (cost["job"], cost["currency"], cost["is_final"], cost["final_after"]) == (stage.job, "USD", False, None)
    assert [(one["name"], one["type"], one["cost"]) for one in cost["charges"]] == [
        ("bench", "bench", "0.000000"),
        ("worker", "linux", "0.000000"),
    ]
    assert all(one["seconds"] >= 60 > one["unused_seconds"] for one in cost["charges"])
    assert Decimal(cost["total"]) == Decimal(cost["control"]) + Decimal(cost["stored"]) > 0
    assert stage.service.ask("GET", f"/v1/jobs/{stage.job}").json["cost"] is None


def test_on_a_site_with_prices_a_settled_job_shows_its_cost(stage: Stage) -> None:
    priced = SITE.replace("limit = 2", "limit = 2\nprice = 3.6", 1) + '[prices]\ncurrency = "CHF"\ndollar = 0.8\n'
    assert stage.service.ask("PUT", "/v1/config", {"toml": priced}, as_="root").status == 200
    stage.service.twin.pass_time(60)
    stage.end()
    ask = stage.service.ask
    cost = ask("GET", f"/v1/jobs/{stage.job}/cost").json
    assert (cost["currency"], cost["is_final"]) == ("CHF", False)
    assert cost["final_after"] > ask("GET", f"/v1/jobs/{stage.job}").json["times"]["settled"]
    assert 0.06 < float(cost["worker"]) < 0.07
    assert Decimal(cost["total"]) == sum(Decimal(cost[part]) for part in PARTS)
    shown = ask("GET", f"/v1/jobs/{stage.job}").json["cost"]
    assert shown == {"total": cost["total"], "unused": cost["unused"], "currency": "CHF"}
    assert ask("GET", "/v1/jobs").json["items"][-1]["cost"] is None, "a list reads no more for a new one"
    stage.service.twin.pass_time(301)
    sweep.sweep(stage.service.twin.on)
    final = ask("GET", f"/v1/jobs/{stage.job}/cost").json
    assert (final["is_final"], final["final_after"], final["total"]) == (True, None, cost["total"])
    listed = {job["id"]: job["cost"] for job in ask("GET", "/v1/jobs").json["items"]}
    assert listed[stage.job] == shown


def test_another_users_job_has_no_cost_to_see(stage: Stage) -> None:
    """SEC-2."""
    assert stage.service.ask("GET", f"/v1/jobs/{stage.job}/cost", as_="bob").status == 404
