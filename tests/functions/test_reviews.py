"""Reviews over HTTP: what a job says of its environment, and who may look and decide. [SEC-2]"""

from __future__ import annotations

from penstock.domain.jobs.jobs import spec_key
from tests.functions.service import SITE, Service, refused
from tests.functions.stage import ASKS, ENVIRONMENT


def asked(service: Service) -> str:
    service.ask("PUT", "/v1/config", {"toml": SITE + ENVIRONMENT}, as_="root")
    return str(service.ask("POST", "/v1/jobs", {"script": ASKS}).json["id"])


def test_a_job_says_what_it_asks_for_and_who_approved(service: Service) -> None:
    job = asked(service)
    before = service.ask("GET", f"/v1/jobs/{job}").json
    assert (before["environment"], before["approved_by"], before["state"]) == ("production", None, "waiting")
    answer = service.ask("POST", f"/v1/jobs/{job}/review", {}, as_="root")
    assert (answer.status, answer.json["by"], answer.json["script"]) == (200, "root", ASKS)
    after = service.ask("GET", f"/v1/jobs/{job}").json
    assert (after["approved_by"], after["state"]) == ("root", "queued")
    plain = service.ask("GET", f"/v1/jobs/{service.submit()}").json
    assert (plain["environment"], plain["approved_by"]) == (None, None)


def test_who_reviews_finds_it(service: Service) -> None:
    job = asked(service)
    (found,) = service.ask("GET", "/v1/reviews", as_="root").json["items"]
    assert (found["job"], found["environment"], found["owner"], found["source"]) == (job, "production", "ada", {})
    assert service.ask("GET", "/v1/reviews").json == {"items": [], "next": None}


def test_what_it_may_use_is_shown_and_a_script_that_is_gone_is_not(service: Service) -> None:
    service.ask("PUT", "/v1/config", {"toml": SITE + ENVIRONMENT}, as_="root")
    first = service.submit()
    ask = {"script": ASKS + "true\n" * 5000, "env": {"LEVEL": "3"}, "inputs": ["data"]}
    ask |= {"dependencies": {"build": {"job": first}}}
    job = service.ask("POST", "/v1/jobs", ask).json["id"]
    shown = service.ask("GET", f"/v1/jobs/{job}/review", as_="root").json
    assert (shown["env"], shown["inputs"]) == ({"LEVEL": "3"}, ["data"])
    assert shown["dependencies"] == [{"name": "build", "job": first, "on": "success", "copy_outputs": True}]
    del service.twin.store.rows[spec_key(job)]
    gone = service.ask("GET", f"/v1/jobs/{job}/review", as_="root").json
    assert (gone["env"], gone["script"]) == ({}, None)


def test_its_owner_looks_and_decides_nothing(service: Service) -> None:
    job = asked(service)
    shown = service.ask("GET", f"/v1/jobs/{job}/review").json
    assert (shown["reviewers"], shown["by"]) == (["root"], None)
    refused(service.ask("POST", f"/v1/jobs/{job}/review", {}), 403, "not-a-reviewer")
    refused(service.ask("GET", f"/v1/jobs/{job}/review", as_="bob"), 404, "job-not-found")


def test_what_is_refused_has_failed(service: Service) -> None:
    job = asked(service)
    assert service.ask("POST", f"/v1/jobs/{job}/review", {"refuse": True}, as_="root").status == 200
    found = service.ask("GET", f"/v1/jobs/{job}").json
    assert (found["outcome"], found["reason"]) == ("failed", "root refused it for the environment production")
