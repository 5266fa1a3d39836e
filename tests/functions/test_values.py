"""A job's store over HTTP, from both sides. [SEC-1] [SEC-2]"""

from __future__ import annotations

from typing import Any

import pytest

from tests.functions.agent import call
from tests.functions.service import Service, conforms, refused
from tests.functions.stage import Stage


@pytest.fixture
def stage(service: Service) -> Stage:
    return Stage(service)


def test_a_value_goes_from_the_user_to_the_job_and_back(stage: Stage) -> None:
    path = f"/v1/jobs/{stage.job}/store"
    assert call(stage, "store/get", {"name": "who"}).json == {"there": False}
    put = stage.service.ask("PUT", f"{path}/who", {"value": "ada"})
    conforms(put.json, "ValueView")
    assert call(stage, "store/get", {"name": "who"}).json == {"there": True, "value": "ada", "secret": False}
    assert call(stage, "store/put", {"name": "answer", "value": "42"}).status == 200
    shown = stage.service.ask("GET", f"{path}/answer")
    assert (shown.json["value"], shown.json["source"]) == ("42", "")
    listed = stage.service.ask("GET", path)
    conforms(listed.json, "ValuePage")
    assert [(each["name"], each["source"]) for each in listed.json["items"]] == [("answer", ""), ("who", "ada")]


def test_a_secret_is_told_to_the_job_alone(stage: Stage) -> None:
    path = f"/v1/jobs/{stage.job}/store"
    for answer in (
        stage.service.ask("PUT", f"{path}/key", {"value": "hunter2", "secret": True}),
        stage.service.ask("GET", path),
        stage.service.ask("GET", path, as_="root"),
        stage.service.ask("GET", f"{path}/key", as_="root"),
        stage.service.ask("GET", f"/v1/jobs/{stage.job}/events"),
    ):
        assert b"hunter2" not in answer.body
    refused(stage.service.ask("GET", f"{path}/key"), 403, "secret-value")
    assert call(stage, "store/get", {"name": "key"}).json == {"there": True, "value": "hunter2", "secret": True}
    refused(call(stage, "store/get", {"name": "key"}, token="t" * 43), 403, "not-your-job")


def test_a_secret_value_is_shown_as_null(stage: Stage) -> None:
    path = f"/v1/jobs/{stage.job}/store"
    put = stage.service.ask("PUT", f"{path}/key", {"value": "hunter2", "secret": True})
    conforms(put.json, "ValueView")
    (listed,) = stage.service.ask("GET", path).json["items"]
    for shown in (put.json, listed):
        assert (shown["name"], shown["value"], shown["secret"]) == ("key", None, True)


@pytest.mark.parametrize(
    ("name", "body", "status"),
    [
        ("a", {}, 400),
        ("a", {"value": 1}, 400),
        ("a", {"value": "x", "secret": "yes"}, 400),
        ("a", {"value": "\ud800"}, 400),
        ("%00", {"value": "x"}, 400),
        ("a" * 65, {"value": "x"}, 400),
        ("a", {"value": "x" * 20_000}, 413),
    ],
    ids=str,
)
def test_what_cannot_be_put(stage: Stage, name: str, body: Any, status: int) -> None:
    answer = stage.service.ask("PUT", f"/v1/jobs/{stage.job}/store/{name}", body)
    assert answer.status in (status, 404 if name == "%00" else status)
    told = call(stage, "store/put", {"name": name, **body})
    assert told.status == status


def test_another_users_store(stage: Stage) -> None:
    """SEC-2"""
    for way, path in (("GET", ""), ("GET", "/a"), ("PUT", "/a")):
        answer = stage.service.ask(way, f"/v1/jobs/{stage.job}/store{path}", {"value": "x"}, as_="eve")
        assert answer.status in (401, 404)
