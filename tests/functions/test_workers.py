"""What a worker may ask: only for the attempt it was made for, only with its token, only what has a shape. [SEC-2]"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from penstock import agentfile
from penstock.domain.units.units import Unit
from penstock.kernel.limits import EVENT_BATCH_BYTES, EVENT_LINE_BYTES
from penstock.testing.twin import Twin
from penstock.usecases.site import apply
from penstock.usecases.units.drivers import bootstrap_key
from tests.functions.agent import call
from tests.functions.odd import ODD, ULID
from tests.functions.service import SITE, WORKER_TOKEN, Answer, Service, refused, token_of
from tests.functions.stage import Stage

LINE = {"time": "2026-01-01T00:00:00Z", "stream": "stdout", "payload": "x"}
FILE = {"path": "/work/x", "size": 1, "sha256": "a" * 64}
CALLS: tuple[tuple[str, Any], ...] = (
    ("events", {"first": 1, "events": [LINE]}),
    ("heartbeat", {}),
    ("resources", {}),
    ("identity", {"audience": "sts.amazonaws.com"}),
    ("store/get", {"name": "a"}),
    ("store/put", {"name": "a", "value": "b"}),
    ("outputs", {"files": [FILE]}),
    ("outputs/commit", {"ids": []}),
    ("finish", {"result": "succeeded"}),
)


@pytest.fixture
def stage(service: Service) -> Stage:
    return Stage(service)


def nothing_changes(stage: Stage, what: str, body: Any, job: str = "", token: str | None = WORKER_TOKEN) -> Answer:
    rows, messages = dict(stage.service.twin.store.rows), list(stage.service.twin.queues.messages)
    answer = call(stage, what, body, job, token)
    assert stage.service.twin.store.rows == rows
    assert list(stage.service.twin.queues.messages) == messages
    return answer


@pytest.mark.parametrize(("what", "body"), CALLS, ids=[what for what, _ in CALLS])
def test_a_token_for_another_job(stage: Stage, what: str, body: Any) -> None:
    """SEC-2: a worker can act only for the attempt it was made for."""
    for job in (stage.waiting, ULID):
        refused(nothing_changes(stage, what, body, job), 403, "not-your-job")
    for token in (token_of("ada"), token_of("root"), "x" * 43, "ключ", "x" * 100_000):
        refused(nothing_changes(stage, what, body, token=token), 403, "not-your-job")
    for token in (None, ""):
        refused(nothing_changes(stage, what, body, token=token), 401, "no-token")


@pytest.mark.parametrize("name", ODD)
def test_a_job_that_is_none(stage: Stage, name: str) -> None:
    for what, body in CALLS:
        answer = nothing_changes(stage, what, body, ODD[name])
        assert answer.json["code"] in ("not-your-job", "not-found")


@pytest.mark.parametrize(("what", "body"), CALLS, ids=[what for what, _ in CALLS])
def test_a_worker_whose_job_is_settled(stage: Stage, what: str, body: Any) -> None:
    """SEC-1: a lease's credentials die with it."""
    call(stage, "finish", {"result": "succeeded"})
    stage.service.twin.run()
    refused(nothing_changes(stage, what, body), 410, "lease-gone")
    refused(stage.agent("/v1/agent/hello", stage.greeting), 410, "lease-gone")


def test_what_its_job_may_know_of_its_resources(stage: Stage) -> None:
    told = nothing_changes(stage, "resources", {})
    assert told.status == 200
    assert {name: each["type"] for name, each in told.json["resources"].items()} == {"bench": "bench"}


def test_a_users_calls_with_a_workers_token(stage: Stage) -> None:
    refused(stage.service.ask("GET", f"/v1/jobs/{stage.job}", token=WORKER_TOKEN), 401, "unknown-token")


HELLOS: dict[str, tuple[dict[str, Any], int, str]] = {
    "no worker": ({"worker": None}, 400, "bad-request"),
    "a worker that is none": ({"worker": "w-none"}, 401, "wrong-key"),
    "a worker of 10,000 characters": ({"worker": "w" * 10_000}, 400, "bad-request"),
    "a worker with a newline": ({"worker": "w\n"}, 401, "wrong-key"),
    "a wrong key": ({"key": "0" * 64}, 401, "wrong-key"),
    "a key of other letters": ({"key": "ключ"}, 401, "wrong-key"),
    "an empty key": ({"key": ""}, 401, "wrong-key"),
    "another token": ({"token": "x" * 43}, 409, "token-taken"),
    "a weak token": ({"token": "x" * 42}, 422, "weak-token"),
    "a token with blanks": ({"token": " " * 43}, 422, "weak-token"),
    "a token with a newline": ({"token": "x" * 43 + "\n"}, 422, "weak-token"),
    "a token that is a number": ({"token": 1}, 400, "bad-request"),
    "a host without end": ({"host": "h" * 10_000}, 400, "bad-request"),
    "an unknown key": ({"works": 1}, 400, "bad-request"),
}


@pytest.mark.parametrize("name", HELLOS)
def test_a_hello_that_is_none(stage: Stage, name: str) -> None:
    change, status, code = HELLOS[name]
    body = {key: value for key, value in (stage.greeting | change).items() if value is not None}
    rows = dict(stage.service.twin.store.rows)
    refused(stage.agent("/v1/agent/hello", body), status, code)
    assert stage.service.twin.store.rows == rows


def test_a_resource_cannot_say_hello(stage: Stage) -> None:
    refused(stage.agent("/v1/agent/hello", stage.greeting | {"worker": stage.unit(1)}), 401, "wrong-key")


WRONG: dict[str, tuple[str, Any, int, str]] = {
    "events of no number": ("events", {"events": []}, 400, "bad-request"),
    "events that are words": ("events", {"first": 1, "events": ["x"]}, 400, "bad-request"),
    "an event with no time": ("events", {"first": 1, "events": [LINE | {"time": "soon"}]}, 400, "bad-request"),
    "an event with a huge year": ("events", {"first": 1, "events": [LINE | {"time": "9" * 30}]}, 400, "bad-request"),
    "an event without end": ("events", {"first": 1, "events": [LINE | {"stream": "s" * 65}]}, 400, "bad-request"),
    "501 events": ("events", {"first": 1, "events": [LINE] * 501}, 413, "batch-too-big"),
    "too many bytes": ("events", {"first": 1, "events": [LINE | {"payload": "x" * 2000}] * 100}, 413, "batch-too-big"),
    "too many wide bytes": (
        "events",
        {"first": 1, "events": [LINE | {"payload": "ß" * 1000}] * 100},
        413,
        "batch-too-big",
    ),
    "lines that swell as JSON": (
        "events",
        {"first": 1, "events": [LINE | {"payload": "\0" * 1000}] * 100},
        413,
        "batch-too-big",
    ),
    "10 MB of events": ("events", {"first": 1, "events": [LINE | {"payload": "x" * 10**7}]}, 413, "body-too-big"),
    "a number of no event": ("events", {"first": -(10**40), "events": [LINE]}, 400, "bad-request"),
    "event nothing": ("events", {"first": 0, "events": [LINE]}, 400, "bad-request"),
    "a result that is none": ("finish", {"result": "lost"}, 400, "bad-request"),
    "no result": ("finish", {}, 400, "bad-request"),
    "an exit code that is text": ("finish", {"result": "failed", "exit_code": "1"}, 400, "bad-request"),
    "a reason without end": ("finish", {"result": "failed", "reason": "r" * 10_000}, 400, "bad-request"),
    "files that are paths": ("outputs", {"files": ["/x"]}, 400, "bad-request"),
    "a relative path": ("outputs", {"files": [FILE | {"path": "x"}]}, 400, "bad-request"),
    "a path without end": ("outputs", {"files": [FILE | {"path": "/" * 2000}]}, 400, "bad-request"),
    "no digest": ("outputs", {"files": [FILE | {"sha256": "x"}]}, 400, "bad-request"),
    "a digest with a newline": ("outputs", {"files": [FILE | {"sha256": "a" * 63 + "\n"}]}, 400, "bad-request"),
    "a negative size": ("outputs", {"files": [FILE | {"size": -1}]}, 400, "bad-request"),
    "a size that is too big": ("outputs", {"files": [FILE | {"size": 10**15}]}, 413, "output-too-big"),
    "a size that no program counts to": ("outputs", {"files": [FILE | {"size": 10**40}]}, 400, "bad-request"),
    "101 files": ("outputs", {"files": [FILE] * 101}, 413, "too-many-outputs"),
    "an output that is none": ("outputs/commit", {"ids": ["x" * 10_000]}, 404, "output-not-found"),
    "outputs that are numbers": ("outputs/commit", {"ids": [1]}, 400, "bad-request"),
    "what is not JSON": ("finish", "{", 400, "malformed-json"),
    "what is no text": ("finish", b"\xff", 400, "malformed-json"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_call_that_cannot_be(stage: Stage, name: str) -> None:
    what, body, status, code = WRONG[name]
    refused(nothing_changes(stage, what, body), status, code)


def test_bytes_that_have_not_arrived_are_not_committed(stage: Stage) -> None:
    """ART-1: a row says that bytes exist only after somebody looked."""
    output = call(stage, "outputs", {"files": [FILE]}).json["uploads"][0]["id"]
    refused(nothing_changes(stage, "outputs/commit", {"ids": [output]}), 409, "output-incomplete")


def test_the_widest_batch_that_an_agent_sends_is_kept(stage: Stage) -> None:
    """Whatever a line of the longest length holds, one such line fits."""
    for number, char in enumerate('\0\x1b"\\\n', 2):
        body = {"first": number, "events": [LINE | {"payload": char * EVENT_LINE_BYTES}]}
        assert call(stage, "events", body).status == 200
    lines = [LINE | {"payload": "x" * (EVENT_BATCH_BYTES // 500)}] * 500
    assert call(stage, "events", {"first": 7, "events": lines}).status == 200


def test_lines_sent_twice_are_kept_once(stage: Stage) -> None:
    for _ in range(3):
        assert call(stage, "events", {"first": 2, "events": [LINE | {"payload": "once"}]}).status == 200
    shown = stage.service.ask("GET", f"/v1/jobs/{stage.job}/events").json["items"]
    assert sum(event["payload"] == "once" for event in shown) == 1


def test_what_a_machine_shows_of_itself_reaches_its_factory(
    service: Service, twin: Twin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEC-2: and what is too long for it does not."""
    shown = []

    def identity_mismatch(given: dict[str, str], made: dict[str, Any]) -> str:
        shown.append(given)
        return "it is another"

    monkeypatch.setattr(twin.drivers.hand, "identity_mismatch", identity_mismatch, raising=False)
    apply.apply(twin.on, "root", SITE.replace('"hand"', '"hand"\nidentity = "papers"', 1), "site.toml")
    service.submit()
    (unit,) = (row for row in twin.store.rows.values() if isinstance(row, Unit))
    hello = {"worker": unit.id, "key": bootstrap_key(twin.on.signing_key(), unit.id), "token": WORKER_TOKEN}
    papers = {"document": '{\n  "instanceId" : "é"\n}', "signature": "c2ln\nbmVk"}
    refused(service.ask("POST", "/v1/agent/hello", hello | papers, as_=None), 401, "wrong-machine")
    refused(service.ask("POST", "/v1/agent/hello", hello, as_=None), 401, "no-identity")
    assert shown == [papers, {"document": "", "signature": ""}]
    refused(service.ask("POST", "/v1/agent/hello", hello | {"document": "x" * 8193}, as_=None), 400, "bad-request")
    assert len(shown) == 2


def test_anybody_is_led_to_the_agent(service: Service) -> None:
    """The function itself sends nothing of the file, whoever asks and however often."""
    led = service.ask("GET", "/v1/agent/agent.pyz", as_=None)
    assert (led.status, led.body) == (302, b"")
    assert led.headers["etag"] == f'"{agentfile.digest()}"'
    assert led.headers["location"] == f"memory://{agentfile.digest()}.pyz"


def test_a_function_that_was_not_told_where_the_agent_is_says_so(service: Service) -> None:
    """Clients try again: this is so while a deployment updates the function."""
    service.twin.on = replace(service.twin.on, agent_file=None)
    refused(service.ask("GET", "/v1/agent/agent.pyz", as_=None), 503, "no-agent-file")
