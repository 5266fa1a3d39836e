"""Published files over HTTP: read by anybody, or by those who may, and by nobody else. [SEC-2]"""

from __future__ import annotations

from typing import Any

import pytest

from tests.functions.service import Answer, Service, conforms, refused
from tests.functions.stage import BYTES, DIGEST, Stage

AS = {"series": "nightly", "version": "v1", "name": "x.bin"}
FILE = "ada/nightly/v1/x.bin"


@pytest.fixture
def stage(service: Service) -> Stage:
    made = Stage(service)
    made.end()
    return made


def publish(stage: Stage, as_: str = "ada", **other: str) -> Answer:
    return stage.service.ask("POST", f"/v1/jobs/{stage.job}/outputs/{stage.output}/publish", AS | other, as_=as_)


def read(stage: Stage, as_: str | None = None, way: str = "GET", file: str = FILE, **headers: str) -> Answer:
    return stage.service.ask(way, f"/v1/public/file/{file}", as_=as_, headers=headers)


def test_it_is_published_once_and_said_so_after_that(stage: Stage) -> None:
    first, again = publish(stage), publish(stage)
    assert (first.status, again.status) == (201, 200)
    conforms(first.json, "PublishedView")
    assert first.json == again.json
    assert (first.json["url"], first.json["sha256"]) == (f"/v1/public/file/{FILE}", DIGEST)
    listed = stage.service.ask("GET", "/v1/published")
    conforms(listed.json, "PublishedPage")
    assert listed.json["items"] == [first.json]
    assert stage.service.ask("GET", f"/v1/published/{FILE}").json == first.json
    refused(publish(stage, "bob"), 404, "job-not-found")
    refused(publish(stage, name="a/b"), 400, "bad-request")


def test_anybody_is_led_to_the_bytes_with_their_name_and_digest(stage: Stage) -> None:
    publish(stage)
    led = read(stage)
    assert (led.status, led.body) == (302, b"")
    assert led.headers["location"].startswith(f"memory://artifacts/{stage.output}")
    assert led.headers["etag"] == f'"{DIGEST}"'
    assert led.headers["content-disposition"] == 'attachment; filename="x.bin"'
    looked = read(stage, way="HEAD")
    assert (looked.status, looked.headers["content-length"], looked.body) == (200, str(len(BYTES)), b"")
    assert looked.headers["etag"] == led.headers["etag"]
    for known in (f'"{DIGEST}"', f'"x", W/"{DIGEST}"'):
        assert read(stage, **{"if-none-match": known}).status == 304
    assert read(stage, **{"if-none-match": '"x"'}).status == 302


def test_what_may_not_be_read_is_as_good_as_none(stage: Stage) -> None:
    publish(stage)
    put = stage.service.ask("PUT", "/v1/series/ada", {"series": "nightly", "access": "private"})
    conforms(put.json, "AccessPage")
    for way in ("GET", "HEAD"):
        for who in (None, "bob"):
            hidden, none = read(stage, who, way), read(stage, who, way, "ada/nightly/v1/none")
            assert (hidden.status, none.status) == (404, 404)
        assert read(stage, "ada", way).status in (200, 302)
    assert stage.service.ask("GET", "/v1/published", as_="bob", query={"owner": "ada"}).json["items"] == []
    refused(stage.service.ask("GET", f"/v1/published/{FILE}", as_="bob"), 404, "published-file-not-found")
    refused(stage.service.ask("POST", f"/v1/published/{FILE}/sign", as_="bob"), 404, "published-file-not-found")
    refused(stage.service.ask("DELETE", f"/v1/published/{FILE}", as_="bob"), 404, "published-file-not-found")
    refused(stage.service.ask("GET", "/v1/series/ada", as_="bob"), 404, "user-not-found")
    asked = {"series": "nightly", "access": "privilege", "privilege": "releases"}
    assert stage.service.ask("PUT", "/v1/series/ada", asked).json["items"][0]["privilege"] == "releases"
    stage.service.ask("PUT", "/v1/users/bob/privileges/releases", as_="root")
    assert read(stage, "bob").status == 302
    assert (
        stage.service.ask("POST", f"/v1/published/{FILE}/sign", {"expires_in": 60}, as_="bob").json["expires_in"] == 60
    )
    refused(stage.service.ask("DELETE", f"/v1/published/{FILE}", as_="bob"), 403, "privilege-missing")
    assert stage.service.ask("PUT", "/v1/series/ada", {"series": "nightly"}).json["items"] == []
    assert read(stage).status == 302


def test_a_token_that_is_none_is_said(stage: Stage) -> None:
    publish(stage)
    answer = stage.service.ask("GET", f"/v1/public/file/{FILE}", token="x" * 43, as_=None)
    refused(answer, 401, "unknown-token")


def test_what_was_withdrawn_is_gone_and_known(stage: Stage) -> None:
    publish(stage)
    gone = stage.service.ask("DELETE", f"/v1/published/{FILE}")
    conforms(gone.json, "PublishedView")
    assert (gone.json["withdrawn_by"], gone.json["withdrawn"] is not None) == ("ada", True)
    refused(read(stage), 410, "withdrawn")
    assert read(stage, way="HEAD").status == 410
    assert stage.service.ask("GET", "/v1/published").json["items"] == []
    assert stage.service.ask("GET", f"/v1/published/{FILE}").json == gone.json


@pytest.mark.parametrize(
    ("way", "path", "body"),
    [
        ("GET", "/v1/published?owner=A", None),
        ("GET", "/v1/published?page=x", None),
        ("GET", "/v1/published?version=v", None),
        ("GET", "/v1/published?limit=0", None),
        ("PUT", "/v1/series/ada", {"series": "s", "access": "nobody"}),
        ("PUT", "/v1/series/ada", {"series": "s", "access": "privilege"}),
        ("PUT", "/v1/series/ada", {"access": "private"}),
    ],
)
def test_what_cannot_be_asked(stage: Stage, way: str, path: str, body: Any) -> None:
    at, _, query = path.partition("?")
    refused(stage.service.ask(way, at, body, query=dict([query.split("=")]) if query else {}), 400, "bad-request")


def test_a_job_that_ended_well_published_what_its_file_says(stage: Stage) -> None:
    script = (
        '#!/bin/bash\n#: name = "b"\n#: variety = "basic"\n#: [[publish]]\n#: from_output = "/work/none"\n'
        '#: series = "s"\n#: name = "n"\n#: version = "v2"\n'
    )
    job = stage.service.submit(script=script, env={"GITHUB_SHA": "c0ffee"})
    bad = stage.service.ask("POST", "/v1/jobs", {"script": script.replace("v2", "v/2")})
    assert (bad.status, bad.json["errors"][0]["line"]) == (400, 8)
    assert job
