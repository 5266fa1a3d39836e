"""What options there are, and which a submit or a plan refuses, and where they stand."""

from __future__ import annotations

import pytest

from penstock.ports import Option
from tests.functions.service import Service, conforms, refused

FILE = """#!/bin/bash
#: name = "x"
#: variety = "basic"
#: [resources.one]
#: type = "bench"
#: [resources.two]
#: type = "licence"
#: options = { versoin = "15" }
true
"""
TABLES = FILE.replace('#: options = { versoin = "15" }', '#: [resources.two.options]\n#: versoin = "15"')
DOTTED = FILE.replace('#: options = { versoin = "15" }', '#: options.versoin = "15"')


@pytest.fixture
def served(service: Service, monkeypatch: pytest.MonkeyPatch) -> Service:
    known = [Option("version", "string", "of the server", "16", ["15", "16"]), Option("tags", "list")]
    monkeypatch.setattr("penstock.drivers.wells.lock.LockWell.options", staticmethod(lambda well, kind: known))
    monkeypatch.setattr("penstock.drivers.wells.lock.LockWell.objections", staticmethod(lambda options: []))
    return service


@pytest.mark.parametrize("query", [{}, {"plan": "true"}])
@pytest.mark.parametrize(("script", "line", "column"), [(FILE, 8, 4), (TABLES, 8, 19), (DOTTED, 8, 4)])
def test_wrong_options_in_a_file(served: Service, query: dict[str, str], script: str, line: int, column: int) -> None:
    answer = served.ask("POST", "/v1/jobs", {"script": script, "path": "ci/job.sh"}, query=query)
    (fault,) = refused(answer, 422, "bad-options")["errors"]
    assert fault == {
        "message": "there is no option 'versoin'; did you mean 'version'?",
        "where": "resources.two.options", "file": "ci/job.sh", "line": line, "column": column, "hint": None,
    }  # fmt: skip


def test_wrong_options_in_a_request_stand_in_no_file(served: Service) -> None:
    asked = {"script": FILE, "resources": {"a": {"type": "bench", "options": {"version": "14"}}}}
    (fault,) = refused(served.ask("POST", "/v1/jobs", asked), 422, "bad-options")["errors"]
    assert (fault["where"], fault["file"], fault["line"]) == ("resources.a.options", None, None)
    assert fault["message"] == "option 'version' cannot be '14'; allowed are: 15, 16"


def test_right_options_are_taken(served: Service) -> None:
    assert served.submit(script=FILE.replace("versoin", "version"))


def test_options_are_bounded(served: Service) -> None:
    for options in ({"tags": ["x" * 9000]}, {"tags": [[[[[[[[[1]]]]]]]]]}):
        refused(
            served.ask("POST", "/v1/jobs", {"script": FILE, "resources": {"a": {"type": "bench", "options": options}}}),
            400,
            "bad-request",
        )


def test_a_resource_type_shows_its_options(served: Service) -> None:
    shown = served.ask("GET", "/v1/resource-types/bench").json
    conforms(shown, "ResourceTypeView")
    assert shown["options"] == [
        {"name": "version", "kind": "string", "meaning": "of the server", "default": "16", "allowed": ["15", "16"]},
        {"name": "tags", "kind": "list", "meaning": "", "default": None, "allowed": []},
    ]


def test_a_well_that_does_not_say_shows_none(served: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served.twin.drivers, "options", lambda *told: None)
    assert served.ask("GET", "/v1/resource-types/bench").json["options"] is None
