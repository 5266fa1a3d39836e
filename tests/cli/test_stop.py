"""penstock site, and the stops of factories and wells."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Run
from tests.cli.service import POOL, Service

STOP = {
    "scope": "factory/ec2",
    "by": "root",
    "since": "2026-01-01T10:00:00Z",
    "reason": "a new image",
    "drains": True,
    "is_spread": True,
}


def asked(service: Service) -> list[tuple[str, object]]:
    return [(path, body) for method, path, _, body in service.asked if method == "POST"]


def test_the_site_is_paused_and_resumed(penstock: Run, service: Service) -> None:
    said = penstock("site", "pause", "--reason", "a move").stdout
    assert said == "the site is paused; `penstock site resume` ends that\n"
    assert penstock("site", "resume").stdout == "the site is open again\n"
    assert penstock("site", "resume", "--reason", "done").exit_code == 0
    assert asked(service) == [
        ("/v1/site/pause", {"reason": "a move"}),
        ("/v1/site/resume", {}),
        ("/v1/site/resume", {"reason": "done"}),
    ]


@pytest.mark.parametrize(("noun", "path"), [("factory", "factories"), ("well", "wells")])
def test_factories_and_wells_are_stopped_and_started(penstock: Run, service: Service, noun: str, path: str) -> None:
    verbs = {"disable": "is disabled", "drain": "is drained"}
    for verb, said in verbs.items():
        assert penstock(noun, verb, "ec2", "--reason", "a new image").stdout.startswith(f"{noun} ec2 {said}")
    assert penstock(noun, "enable", "ec2").stdout == f"{noun} ec2 is enabled\n"
    assert asked(service) == [
        *((f"/v1/{path}/ec2/{verb}", {"reason": "a new image"}) for verb in verbs),
        (f"/v1/{path}/ec2/enable", {}),
    ]


@pytest.mark.parametrize("words", [("site", "pause"), ("factory", "drain", "ec2"), ("well", "disable", "ec2")])
def test_what_stops_others_needs_a_reason(penstock: Run, service: Service, words: tuple[str, ...]) -> None:
    refused = penstock(*words)
    assert refused.exit_code == 2
    assert "--reason" in refused.stderr
    assert asked(service) == []


def test_stops_are_listed(penstock: Run, service: Service) -> None:
    assert "neither the site nor a factory or well is paused" in penstock("site", "stops").stderr
    service.stops = [STOP, STOP | {"scope": "site", "drains": False, "is_spread": False}]
    lines = penstock("site", "stops").stdout.splitlines()
    assert lines[1].split()[0] == "factory/ec2"
    assert "yes  " in lines[1]
    assert "in force" in lines[1]
    assert lines[1].endswith("a new image")
    assert "being brought to all pools" in lines[2]
    assert json.loads(penstock("site", "stops", "--json").stdout) == service.stops


@pytest.mark.parametrize(
    ("scope", "said"), [("site", "paused with the whole site by root"), ("well/lab", "paused with well lab by root")]
)
def test_a_pool_says_that_all_of_its_kind_is_paused(
    penstock: Run, monkeypatch: pytest.MonkeyPatch, scope: str, said: str
) -> None:
    stop = {"by": "root", "at": "2026-01-01T10:00:00Z", "reason": "a move", "scope": scope}
    monkeypatch.setitem(POOL, "pause", stop)
    assert f"{said} 2026-01-01T10:00:00Z: a move" in penstock("pool", "show", "resource/bench").stdout
