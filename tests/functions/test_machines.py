"""Machines by need, over HTTP: what is asked for, what is shown of it, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.testing.site import site_toml
from tests.functions.service import SCRIPT, SITE, Service

FAMILY = site_toml(
    factories={},
    targets={
        "small": {"machine": {"cpus": 2, "memory": "4GiB"}},
        "large": {"machine": {"cpus": 8, "memory": "32GiB", "gpu": 1, "arch": "x86_64"}, "limit": 2},
        "any": {"machines": ["small", "large"], "price_band": 2},
    },
)
CHOSEN = 'large is the cheapest of any that fits memory = "16GiB", gpu = 1'


@pytest.fixture
def lab(service: Service) -> Service:
    answer = service.ask("PUT", "/v1/config", {"toml": SITE.replace("[wells", f"{FAMILY}[wells", 1)}, as_="root")
    assert answer.status == 200, answer
    service.twin.run()
    return service


def test_a_job_shows_which_target_it_got_and_why(lab: Service) -> None:
    job = lab.submit(target="any", machine={"memory": "16GiB", "gpu": 1})
    shown = lab.ask("GET", f"/v1/jobs/{job}").json
    assert (shown["target"], shown["target_resolved"], shown["chosen"]) == ("any", "large", CHOSEN)
    assert lab.ask("GET", f"/v1/jobs/{job}/why").json["chosen"] == CHOSEN
    plain = lab.submit()
    assert lab.ask("GET", f"/v1/jobs/{plain}").json["chosen"] is None
    assert lab.ask("GET", f"/v1/jobs/{plain}/why").json["chosen"] is None


def test_a_plan_says_it_beforehand(lab: Service) -> None:
    ask = {"script": SCRIPT, "target": "any", "machine": {"memory": "16GiB", "gpu": 1}}
    found = lab.ask("POST", "/v1/jobs", ask, query={"plan": "true"}).json
    assert (found["target"], found["target_resolved"]) == ("any", "large")
    assert found["sentences"][0] == f"the job would acquire a worker of large ({CHOSEN})"


@pytest.mark.parametrize(
    ("machine", "status", "code", "where"),
    [
        ({"cpus": 9}, 422, "unsatisfiable", "machine"),
        ({"cpus": "9"}, 400, "bad-request", "machine.cpus"),
        ({"memory": 16}, 400, "bad-request", "machine.memory"),
        ({"ram": "16GiB"}, 400, "bad-request", "machine.ram"),
        ({"arch": {}}, 400, "bad-request", "machine.arch"),
        ([1], 400, "bad-request", "machine"),
        ("4 cpus", 400, "bad-request", "machine"),
    ],
)
def test_what_cannot_be_had_is_refused(lab: Service, machine: Any, status: int, code: str, where: str) -> None:
    answer = lab.ask("POST", "/v1/jobs", {"script": SCRIPT, "target": "any", "machine": machine})
    assert (answer.status, answer.json["code"]) == (status, code)
    assert [each["where"] for each in answer.json["errors"]] == [where]


def test_the_nearest_is_named(lab: Service) -> None:
    answer = lab.ask("POST", "/v1/jobs", {"script": SCRIPT, "target": "any", "machine": {"cpus": 9}})
    assert answer.json["detail"] == (
        "no machine of any fits cpus = 9: the nearest is large: cpus = 9 is 1 more than its 8"
    )


def test_everybody_sees_what_machines_have_as_the_site_says_it(lab: Service) -> None:
    shown = {each["name"]: each["settings"] for each in lab.ask("GET", "/v1/targets").json["items"]}
    assert shown["large"]["machine"] == {"cpus": 8, "memory": "32GiB", "gpu": 1, "arch": "x86_64"}
    assert (shown["any"]["machines"], shown["any"]["price_band"]) == (["small", "large"], 2.0)
    assert [shown["linux"][key] for key in ("machine", "machines", "price_band")] == [None, [], None]


def test_a_family_has_no_pool_to_resize(lab: Service) -> None:
    assert lab.ask("GET", "/v1/pools/target/any", as_="root").status == 404
