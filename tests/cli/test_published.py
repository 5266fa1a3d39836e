"""penstock published, and job publish."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.artifacts import BYTES
from tests.cli.conftest import Run
from tests.cli.published import FILE, GONE, SERIES
from tests.cli.service import Service

FULL = "alice/nightly/v1/trace.bin"
AS = ("--series", "nightly", "--version", "v1", "--name", "trace.bin")


def test_an_output_is_published_by_its_path(penstock: Run, service: Service) -> None:
    result = penstock("job", "publish", service.add(), "/work/out/log.txt", *AS)
    assert (result.exit_code, result.stdout) == (0, f"{FULL} is published\n")
    assert service.asked[-1][1:2] + service.asked[-1][3:] == (
        "/v1/jobs/j1/outputs/o1/publish",
        {"series": "nightly", "version": "v1", "name": "trace.bin"},
    )
    assert f"published get {FULL}" in result.stderr
    service.add()
    again = penstock("job", "publish", "j2", "/work/out/log.txt", *AS)
    assert "; job j1 published the same bytes before" in again.stdout
    told = json.loads(penstock("job", "publish", "j1", "/work/out/log.txt", *AS, "--json").stdout)
    assert told == FILE | {"job": "j1"}


def test_published_files_are_listed(penstock: Run, service: Service) -> None:
    head, line = penstock("published", "list").stdout.splitlines()
    assert head.split() == ["FILE", "SIZE", "SHA256", "PUBLISHED", "JOB"]
    assert line.split()[0] == FULL
    asked = ("--owner", "ann", "--series", "s", "--version", "v", "--limit", "3", "--json")
    assert json.loads(penstock("published", "list", *asked).stdout) == [FILE]
    assert service.paths("GET")[-1] == "/v1/published?owner=ann&series=s&version=v&limit=3"
    assert "nothing is published" in penstock("published", "list", "--owner", "bob").stderr


def test_one_is_shown(penstock: Run) -> None:
    shown = penstock("published", "show", FULL).stdout
    assert FULL in shown
    assert "withdrawn" not in shown.replace("withdrawn_by", "")
    assert "bob" in penstock("published", "show", "alice/nightly/v0/trace.bin").stdout
    assert json.loads(penstock("published", "show", FULL, "--json").stdout) == FILE


@pytest.mark.parametrize("name", ["alice", "alice/s/v", "alice//v/n", "a/b/c/d/e"])
@pytest.mark.parametrize("verb", ["show", "get", "unpublish"])
def test_a_wrong_name_of_a_published_file(penstock: Run, verb: str, name: str) -> None:
    result = penstock("published", verb, name)
    assert (result.exit_code, "is not OWNER/SERIES/VERSION/NAME" in result.stderr) == (2, True)


def test_a_published_file_is_downloaded_under_its_name(penstock: Run) -> None:
    assert penstock("published", "get", FULL).exit_code == 0
    assert Path("trace.bin").read_bytes() == BYTES
    Path("there").mkdir()
    told = json.loads(penstock("published", "get", FULL, "there", "--json").stdout)
    assert told["file"] == "there/trace.bin"


def test_a_published_file_is_withdrawn(penstock: Run, service: Service) -> None:
    assert penstock("published", "unpublish", FULL).stdout == f"{FULL} is withdrawn\n"
    assert service.paths("DELETE") == [f"/v1/published/{FULL}"]
    assert json.loads(penstock("published", "unpublish", FULL, "--json").stdout) == GONE


def test_access_is_shown(penstock: Run) -> None:
    assert "* (all others)" in penstock("published", "access").stdout
    assert "all that is published is public" in penstock("published", "access", "--owner", "ann").stderr
    assert json.loads(penstock("published", "access", "--json").stdout) == SERIES["items"]


@pytest.mark.parametrize(
    ("words", "sent", "said"),
    [
        (["--private"], {"access": "private"}, "is private"),
        (["--public"], {"access": "public"}, "is public"),
        (["--as-others"], {}, "is as the others"),
        (["--privilege", "p"], {"access": "privilege", "privilege": "p"}, "needs p"),
    ],
)
def test_access_is_set(penstock: Run, service: Service, words: list[str], sent: dict[str, str], said: str) -> None:
    result = penstock("published", "access", "nightly", *words)
    assert (result.exit_code, result.stdout) == (0, f"series nightly of alice {said}\n")
    assert service.asked[-1][1:2] + service.asked[-1][3:] == ("/v1/series/alice", {"series": "nightly", **sent})


def test_access_options_that_exclude_each_other(penstock: Run) -> None:
    assert "do not go together" in penstock("published", "access", "s", "--public", "--privilege", "p").stderr
    assert "say of which SERIES" in penstock("published", "access", "--public").stderr
