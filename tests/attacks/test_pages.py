"""What an attacker gave as the page of a list: garbage is refused, and never an error of ours."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock import bootstrap
from penstock.api.document import document
from penstock.testing.twin import Twin
from tests.functions.conftest import twin as _twin
from tests.functions.service import Service
from tests.functions.stage import OPERATIONS, Stage

__all__ = ["_twin"]

PATHS = json.loads(document())["paths"]
LISTS = sorted(
    each.path for each in OPERATIONS
    if each.method == "GET"
    and any(one.get("name") == "page" for one in PATHS[each.path]["get"].get("parameters", ()))
)  # fmt: skip
ULID = "01KDVDNA010H104YNF3YMNPP4N"
TOKENS = [
    "", "zzz/1/x", "aaa/1/x", "nightly/v1/x.bin", "nightly/v1", "../../..", ULID, f"{ULID}.{ULID}", f".{ULID}",
    f"w-{ULID}",
    "20260101T000000000000.d-1", "x" * 128, "x" * 2000, "%", "#", "~", "\x00", "é", "oxide:hubris", "1:", "-1", "null",
]  # fmt: skip
pages = st.sampled_from(TOKENS) | st.text(max_size=140) | st.from_regex(r"[A-Za-z0-9._-]{1,128}", fullmatch=True)


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    """One for all examples: nothing is written."""
    with pytest.MonkeyPatch.context() as patch:
        twin: Twin = _twin.__wrapped__(patch)  # type: ignore[attr-defined]
        service = Service(twin)
        for name, *privileges in (("ada",), ("bob",), ("root", "admin")):
            service.add(name, *privileges)
        assert bootstrap.aws() is twin.on
        service.ask("POST", "/v1/jobs", {"script": "#!/bin/sh\n", "tags": {"set": "s-1"}}, as_="root")
        yield Stage(service)


def where(stage: Stage, path: str) -> str:
    return path.format(job=stage.job, artifact=stage.output, owner="ada", name="ada", set="s-1")


def test_there_are_lists() -> None:
    assert len(LISTS) >= 9


@pytest.mark.parametrize("path", LISTS)
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(page=pages)
def test_any_page_of_any_list(stage: Stage, path: str, page: str) -> None:
    answer = stage.service.ask("GET", where(stage, path), as_="root", query={"page": page})
    assert answer.status in (200, 400), answer
    if answer.status == 400:
        assert "page" in answer.json["detail"], answer


@pytest.mark.parametrize("path", LISTS)
@pytest.mark.parametrize("page", ["zzz/1/x", "../../..", "zzz", "\x00", "x" * 2000, "~"])
def test_garbage_is_refused(stage: Stage, path: str, page: str) -> None:
    if (path, page) == ("/v1/users", "zzz"):
        return  # it can be a user's name
    query = {"page": page, **({"series": "nightly"} if path == "/v1/published" else {})}
    assert stage.service.ask("GET", where(stage, path), as_="root", query=query).status == 400


@pytest.mark.parametrize("page", ["zzz/1/x", "aaa/1/x", "nightly/v2/x"])
def test_a_page_of_another_series(stage: Stage, page: str) -> None:
    """DynamoDB refuses a range that ends before it begins."""
    query = {"series": "nightly", "version": "v1", "page": page}
    assert stage.service.ask("GET", "/v1/published", as_="ada", query=query).status == 400
