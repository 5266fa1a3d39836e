"""Everything wrong that can be submitted is refused in one shape, with a stable code, and leaves nothing behind."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from penstock.domain.jobs.jobs import Job
from penstock.domain.jobs.submissions import Submission
from tests.functions.service import SCRIPT, Service, refused


def headed(*lines: str) -> str:
    return "\n".join(["#!/bin/bash", *(f"#: {line}" for line in ('name = "n"', 'variety = "basic"', *lines)), "true\n"])


def nested(depth: int) -> str:
    return f'{{"script": {"[" * depth}{"]" * depth}}}'


TEXTS = {
    "not JSON": ("{", 400, "malformed-json"),
    "nothing": ("", 400, "malformed-json"),
    "no body": (None, 400, "malformed-json"),
    "a list": ("[]", 400, "bad-request"),
    "a word": ('"script"', 400, "bad-request"),
    "null": ("null", 400, "bad-request"),
    "NaN": ('{"script": NaN}', 400, "malformed-json"),
    "Infinity": ('{"priority": -Infinity}', 400, "malformed-json"),
    "a float that is infinite": (json.dumps({"script": SCRIPT})[:-1] + ', "priority": 1e999}', 400, "bad-request"),
    "a float that is too large": (json.dumps({"script": SCRIPT, "priority": 1e300}), 400, "bad-request"),
    "a whole number that is too large": (json.dumps({"script": SCRIPT, "hold_on_failure": 2**53}), 400, "bad-request"),
    "a float for a whole number": (json.dumps({"script": SCRIPT, "priority": 1.5}), 400, "bad-request"),
    "a number of 5,000 digits": ('{"priority": ' + "1" * 5000 + "}", 400, "malformed-json"),
    "a lone surrogate": ('{"script": "\\ud800"}', 400, "malformed-json"),
    "a lone surrogate in a key": ('{"\\udfff": 1}', 400, "malformed-json"),
    "nested 10,000 deep": (nested(10_000), 400, "malformed-json"),
    "nested 40 deep": (nested(40), 400, "malformed-json"),
    "10 MB": (json.dumps({"script": "x" * 10_000_000}), 413, "body-too-big"),
    "10 MB of nothing": (" " * 10_000_000, 413, "body-too-big"),
    "bytes that are no text": (b"\xff\xfe{}", 400, "malformed-json"),
    "a program": (b"\x7fELF\x00\x01", 400, "malformed-json"),
    "100,000 unknown keys": (json.dumps({f"k{number}": 1 for number in range(80_000)}), 400, "bad-request"),
    "a key of a megabyte": (json.dumps({"s" * 1_000_000: 1}), 400, "bad-request"),
}

BODIES: dict[str, tuple[dict[str, Any], int, str]] = {
    "no script": ({"script": None}, 400, "bad-request"),
    "a script that is a number": ({"script": 1}, 400, "bad-request"),
    "a script that is true": ({"script": True}, 400, "bad-request"),
    "an empty script": ({"script": ""}, 400, "bad-job-file"),
    "a script with no interpreter": ({"script": "echo"}, 400, "bad-job-file"),
    "a script of 1 MiB": ({"script": "#!/bin/sh\n" + "x" * (1024**2 - 1000)}, 413, "script-too-big"),
    "a script that swells as JSON": ({"script": "#!/bin/sh\n" + "\x01" * 150_000}, 413, "job-too-big"),
    "a script with a NUL": ({"script": SCRIPT + "\0"}, 400, "bad-job-file"),
    "a script in UTF-16": ({"script": SCRIPT.encode("utf-16-le").decode("latin-1")}, 400, "bad-job-file"),
    "a script with CRLF": ({"script": "#!/bin/bash\r\ntrue\r\n"}, 400, "bad-job-file"),
    "a header that is not TOML": ({"script": "#!/bin/sh\n#: name = \n"}, 400, "bad-job-file"),
    "an unknown key in the header": ({"script": headed('nmae = "x"')}, 400, "bad-job-file"),
    "a name of 10,000 characters": ({"name": "n" * 10_000}, 400, "bad-request"),
    "a NUL in the name": ({"name": "a\0b"}, 400, "bad-request"),
    "a newline in the name": ({"name": "a\nb"}, 400, "bad-request"),
    "a name that is a list": ({"name": ["a"]}, 400, "bad-request"),
    "a NUL in the path": ({"path": "a\0b.sh"}, 400, "bad-request"),
    "a path of 10,000 characters": ({"path": "p" * 10_000}, 400, "bad-request"),
    "a NUL in a tag": ({"tags": {"a": "\0"}}, 400, "bad-request"),
    "a NUL in a tag's name": ({"tags": {"\0": "a"}}, 400, "bad-request"),
    "tags that are numbers": ({"tags": {"a": 1}}, 400, "bad-request"),
    "tags that are a list": ({"tags": ["a=b"]}, 400, "bad-request"),
    "101 tags": ({"tags": {f"t{n}": "" for n in range(101)}}, 400, "bad-request"),
    "tags that are too long together": ({"tags": {f"t{n}": "ß" * 1000 for n in range(100)}}, 413, "job-too-big"),
    "a NUL in a variable": ({"env": {"A": "\0"}}, 400, "bad-request"),
    "a variable of ours": ({"env": {"PENSTOCK_JOB_ID": "1"}}, 400, "bad-request"),
    "variables that are too big": ({"env": {"A": "x" * 40_000}}, 400, "bad-request"),
    "a relative output rule": ({"output_rules": ["work/x"]}, 400, "bad-request"),
    "too many output rules": ({"output_rules": ["/x"] * 101}, 400, "bad-request"),
    "an output rule that is a number": ({"output_rules": [1]}, 400, "bad-request"),
    "an unknown target": ({"target": "linus"}, 422, "unknown-target"),
    "a target of 10,000 characters": ({"target": "t" * 10_000}, 400, "bad-request"),
    "a target with a newline": ({"target": "a\nb"}, 400, "bad-request"),
    "a target that nobody may have": ({"target": "closed"}, 422, "unsatisfiable"),
    "a target without the privilege": ({"target": "lab"}, 403, "privilege-missing"),
    "an alias of a target without the privilege": ({"target": "alias"}, 403, "privilege-missing"),
    "an unknown resource type": ({"resources": ["bensh"]}, 422, "unknown-resource-type"),
    "a resource without the privilege": ({"resources": ["secret"]}, 403, "privilege-missing"),
    "more benches than there are": (
        {"resources": {"a": {"type": "bench"}, "b": {"type": "bench"}}},
        422,
        "unsatisfiable",
    ),
    "options for a lock": ({"resources": {"a": {"type": "bench", "options": {"x": 1}}}}, 422, "bad-options"),
    "a resource of a type that its name is": ({"resources": {"a": {}}}, 422, "unknown-resource-type"),
    "a resource with a choice that is none": ({"resources": {"bench": {"labels": "rack =="}}}, 400, "bad-request"),
    "a choice that nothing fits": ({"resources": {"bench": {"thing": "bench-9"}}}, 422, "unsatisfiable"),
    "resources that are a word": ({"resources": "bench"}, 400, "bad-request"),
    "resources that are numbers": ({"resources": [1]}, 400, "bad-request"),
    "one resource twice": ({"resources": ["licence", "licence"]}, 400, "bad-request"),
    "a priority that is too high": ({"priority": 101}, 400, "bad-request"),
    "a priority that is far too low": ({"priority": -(10**30)}, 400, "bad-request"),
    "a priority that is text": ({"priority": "high"}, 400, "bad-request"),
    "a priority that is true": ({"priority": True}, 400, "bad-request"),
    "no time at all": ({"timeout": 0}, 400, "bad-request"),
    "negative time": ({"timeout": -1}, 400, "bad-request"),
    "ten years": ({"timeout": "3650d"}, 400, "bad-request"),
    "a time that is none": ({"timeout": "soon"}, 400, "bad-request"),
    "a time beyond reckoning": ({"timeout": 10**40}, 400, "bad-request"),
    "too many retries": ({"retries": 11}, 400, "bad-request"),
    "negative retries": ({"retries": -1}, 400, "bad-request"),
    "an input with a path for a name": ({"inputs": ["a/b"]}, 400, "bad-request"),
    "an input that is a number": ({"inputs": [1]}, 400, "bad-request"),
    "one input twice": ({"inputs": ["a", "a"]}, 400, "bad-request"),
    "26 inputs": ({"inputs": [f"f{n}" for n in range(26)]}, 400, "bad-request"),
    "a dependency on no job": ({"dependencies": {"a": {"job": "b"}}}, 422, "unknown-dependency"),
    "a dependency without a job": ({"dependencies": {"a": {}}}, 400, "bad-request"),
    "a dependency that is a word": ({"dependencies": {"a": "b"}}, 400, "bad-request"),
    "a dependency with a path for a name": ({"dependencies": {"a/b/c": {"job": "b"}}}, 400, "bad-request"),
    "a dependency on an end that is none": ({"dependencies": {"a": {"job": "b", "on": "x"}}}, 400, "bad-request"),
    "65 dependencies": ({"dependencies": {f"d{n}": {"job": "b"} for n in range(65)}}, 400, "bad-request"),
    "a file that is not enabled": ({"script": headed("enable = false")}, 422, "job-disabled"),
    "a version that is none": (
        {
            "script": headed("[[publish]]", 'from_output = "/x"', 'series = "s"', 'name = "x"'),
            "env": {"GITHUB_SHA": "a/b"},
        },
        400,
        "bad-request",
    ),
    "paths that are none": ({"script": headed('paths = ["../x"]')}, 400, "bad-job-file"),
    "without what the file does not have": ({"without": ["a"]}, 400, "bad-request"),
    "without what is no list": ({"without": "a"}, 400, "bad-request"),
    "a file that wants repositories": ({"script": headed('access_repos = ["a/b"]')}, 422, "no-repository"),
    "a file whose repository is to name its Rust": ({"script": headed("rust_toolchain = true")}, 422, "no-repository"),
    "a file that depends": ({"script": headed("[dependencies.a]", 'job = "b"')}, 422, "dependency-without-job"),
}


def submit(service: Service, body: Any, **more: Any) -> Any:
    rows, messages = dict(service.twin.store.rows), list(service.twin.queues.messages)
    answer = service.ask("POST", "/v1/jobs", body, **more)
    assert service.twin.store.rows == rows, "a refusal left rows behind"
    assert list(service.twin.queues.messages) == messages, "a refusal left messages behind"
    return answer


@pytest.mark.parametrize("name", TEXTS)
def test_a_body_that_cannot_be_read(service: Service, name: str) -> None:
    text, status, code = TEXTS[name]
    refused(submit(service, text), status, code)


@pytest.mark.parametrize("name", [name for name in TEXTS if isinstance(TEXTS[name][0], str)])
def test_a_body_that_cannot_be_read_in_base64(service: Service, name: str) -> None:
    text, status, code = TEXTS[name]
    refused(submit(service, text, encoded=True), status, code)


@pytest.mark.parametrize("name", BODIES)
def test_a_job_that_cannot_be(service: Service, name: str) -> None:
    change, status, code = BODIES[name]
    body = {key: value for key, value in ({"script": SCRIPT} | change).items() if value is not None}
    problem = refused(submit(service, body), status, code)
    assert problem["errors"] or code in ("privilege-missing", "unsatisfiable", "job-too-big"), problem


def test_every_fault_says_where(service: Service) -> None:
    body = {"script": headed('nmae = "x"', "priority = 1000"), "path": "job.sh"}
    faults = refused(submit(service, body), 400, "bad-job-file")["errors"]
    assert [(fault["file"], fault["line"]) for fault in faults] == [("job.sh", 4), ("job.sh", 5)]
    assert "`name`" in faults[0]["hint"]
    problem = refused(submit(service, {"script": SCRIPT, "tags": {"a": 1}}), 400, "bad-request")
    assert problem["errors"][0]["where"] == "tags.a"


def test_an_unknown_key_is_guessed(service: Service) -> None:
    fault = refused(submit(service, {"script": SCRIPT, "tagret": "x"}), 400, "bad-request")["errors"][0]
    assert (fault["where"], fault["hint"]) == ("tagret", "did you mean 'target'?")
    detail = refused(submit(service, {"script": SCRIPT, "target": "linus"}), 422, "unknown-target")["detail"]
    assert "did you mean 'linux'?" in detail
    detail = refused(submit(service, {"script": SCRIPT, "resources": ["bensh"]}), 422, "unknown-resource-type")[
        "detail"
    ]
    assert "did you mean 'bench'?" in detail


def test_a_key_makes_submitting_twice_the_same_as_once(service: Service) -> None:
    """JOB-1: the same Idempotency-Key and the same request are one job."""
    ask: dict[str, Any] = {"headers": {"Idempotency-Key": "k"}}
    first = service.ask("POST", "/v1/jobs", {"script": SCRIPT}, **ask)
    again = service.ask("POST", "/v1/jobs", {"script": SCRIPT}, **ask)
    assert (first.status, again.status) == (201, 201)
    assert first.json == again.json
    assert sum(isinstance(row, Job) for row in service.twin.store.rows.values()) == 1
    refused(submit(service, {"script": SCRIPT, "priority": -1}, **ask), 409, "idempotency-key-reused")
    other = service.ask("POST", "/v1/jobs", {"script": SCRIPT}, as_="bob", **ask)
    assert other.json != first.json


def test_a_release_with_more_to_say_takes_a_request_for_the_same(service: Service) -> None:
    """JOB-1: what a request does not say is not in the digest by which it is known again after an upgrade."""
    service.ask("POST", "/v1/jobs", {"script": SCRIPT}, headers={"Idempotency-Key": "k"})
    (kept,) = [row for row in service.twin.store.rows.values() if isinstance(row, Submission)]
    said = json.dumps({"path": "job.sh", "script": SCRIPT}).encode()
    assert kept.request_digest == hashlib.sha256(said).hexdigest()


@pytest.mark.parametrize("key", ["", "k" * 256, "k" * 10_000])
def test_a_key_that_is_none(service: Service, key: str) -> None:
    refused(submit(service, {"script": SCRIPT}, headers={"Idempotency-Key": key}), 400, "bad-request")


def test_a_key_in_any_letters(service: Service) -> None:
    assert service.ask("POST", "/v1/jobs", {"script": SCRIPT}, headers={"Idempotency-Key": "ключ🔑"}).status == 201


def test_what_may_be_is_accepted(service: Service) -> None:
    script = headed('target = "linux"', "retries = 0", "timeout = 5", "[tags]", 'a = "1"')
    job = service.submit(
        script=script, path="dir/x.sh", tags={"b": "2"}, env={"A": "x"}, output_rules=["/work/*"], timeout="5m",
        resources={"one": {"type": "licence"}, "two": {"type": "licence"}}, priority=-100, name="große Sache",
    )  # fmt: skip
    shown = service.ask("GET", f"/v1/jobs/{job}").json
    assert (shown["name"], shown["timeout"], shown["priority"]) == ("große Sache", 300, -100)
    assert shown["tags"] == {"a": "1", "b": "2"}
    assert [(one["name"], one["slot"]) for one in shown["resources"]] == [("one", "1"), ("two", "2")]
    assert service.ask("GET", f"/v1/jobs/{service.submit(path='dir/x.sh')}").json["name"] == "x"


TASK = {"name": "a", "script": "true"}
TASKS: dict[str, tuple[Any, str]] = {
    "no list": (TASK, "tasks must be a list"),
    "a script alone": (["true"], "tasks[0] must be a JSON object"),
    "no script": ([TASK, {"name": "b"}], "tasks[1]"),
    "an unknown field": ([{**TASK, "user": "root"}], "unknown key"),
    "a user by name": ([{**TASK, "uid": "root"}], "tasks[0].uid must be a whole number"),
    "a user that nobody can be": ([{**TASK, "uid": 2**32}], "`tasks.uid` must be from 0 to 4294967294"),
    "a folder that is relative": ([{**TASK, "workdir": "x"}], "`tasks.workdir` is not absolute"),
    "too many": ([TASK] * 65, "`tasks` has 65 entries; it may have at most 64"),
}


@pytest.mark.parametrize("what", TASKS)
def test_tasks_that_cannot_be(service: Service, what: str) -> None:
    given, message = TASKS[what]
    answer = service.ask("POST", "/v1/jobs", {"tasks": given})
    refused(answer, 400, "bad-request")
    assert message in str(answer.json)
    assert not [row for row in service.twin.store.rows.values() if isinstance(row, Job)]


def test_tasks_are_a_job_too(service: Service) -> None:
    answer = service.ask("POST", "/v1/jobs", {"name": "n", "tasks": [TASK, {**TASK, "uid": 0, "workdir": "/"}]})
    assert answer.status == 201
    assert service.ask("GET", f"/v1/jobs/{answer.json['id']}").json["name"] == "n"
