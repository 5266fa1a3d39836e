"""Users, their privileges, tokens and sessions; shares; and the log of what operators did."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import httpx
import pytest

from tests.e2e.conftest import Local
from tests.web.browser import Console
from tests.web.scenes import HANGS, text


def user(local: Local, name: str) -> dict[str, Any] | None:
    """A user as the API lists them."""
    found = local.call("GET", "/v1/users?limit=1000").json()["items"]
    return next((dict(each) for each in found if each["name"] == name), None)


def tokens(local: Local, name: str) -> list[dict[str, Any]]:
    return list(local.call("GET", f"/v1/users/{name}/tokens").json()["items"])


def who(local: Local, secret: str) -> httpx.Response:
    """Who a token is, or that it is refused."""
    return local.call("GET", "/v1/whoami", headers={"authorization": f"Bearer {secret}"})


@pytest.fixture
def made(local: Local, request: pytest.FixtureRequest) -> str:
    """A user of this test alone."""
    name = f"u{abs(hash(request.node.name)) % 10**8}"
    assert local.call("POST", "/v1/users", json={"name": name}).status_code == 201
    return name


def told(console: Console, words: str) -> None:
    """Wait for the report of what an action led to."""
    console.page.locator("main section[role=status]").get_by_text(words).wait_for()


def test_a_user_is_created_and_found(operator: Console, local: Local) -> None:
    page = operator.open("/users")
    operator.press("New user", Name="oxide:bldb", Privileges="resource.bench, priority")
    page.get_by_role("heading", name="oxide:bldb", exact=True).wait_for()
    assert page.url.endswith("/users/oxide:bldb")
    found = user(local, "oxide:bldb")
    assert found is not None
    assert sorted(found["privileges"]) == ["priority", "resource.bench"]
    page = operator.open("/users?kind=repositories")
    assert {each["Name"] for each in operator.rows("Users")} == {
        each["name"] for each in local.call("GET", "/v1/users?limit=1000").json()["items"] if ":" in each["name"]
    }
    operator.choose("Kind", "operators")
    operator.becomes(lambda: [each["Name"] for each in operator.rows("Users")], ["admin"])
    operator.choose("Kind", "any")
    operator.choose("Privilege", "priority")
    operator.choose("Name", "bldb")
    operator.becomes(lambda: [each["Name"] for each in operator.rows("Users")], ["oxide:bldb"])
    assert operator.copied("As command") == "penstock user list"


def test_a_name_that_cannot_be_is_refused_in_the_question(operator: Console, local: Local) -> None:
    page = operator.open("/users")
    operator.button("New user").click()
    dialog = page.locator("dialog[open]")
    operator.field("Name", dialog).fill("Not A Name")
    dialog.get_by_role("button", name="New user").click()
    dialog.get_by_role("alert").wait_for()
    assert user(local, "Not A Name") is None


def test_privileges_are_granted_and_revoked(operator: Console, local: Local, made: str) -> None:
    page = operator.open(f"/users/{made}")
    operator.press("Grant", Privilege="target.signer")
    one = page.get_by_role("listitem").filter(has_text="target.signer")
    one.wait_for()
    assert (user(local, made) or {})["privileges"] == ["target.signer"]
    secret = local.call("POST", f"/v1/users/{made}/tokens", json={}).json()["token"]
    script = "#!/bin/bash\n" + text("signs", HANGS, '#: target = "signer"\n')
    head = {"authorization": f"Bearer {secret}"}
    job = local.call("POST", "/v1/jobs", json={"script": script}, headers=head).json()["id"]
    local.until(lambda: local.job(job)["state"] == "running")
    operator.press("Revoke", one, Also_cancel_jobs_that_hold_something_under_it=True)
    told(operator, f"{made} no longer has target.signer.")
    assert page.locator("main section[role=status] a").first.get_attribute("href") == f"/jobs/{job}"
    assert (user(local, made) or {})["privileges"] == []
    assert local.settled(job)["outcome"] == "cancelled"


def test_a_user_is_renamed(operator: Console, local: Local, made: str) -> None:
    page = operator.open(f"/users/{made}")
    operator.press("Rename", New_name=f"{made}-b")
    page.get_by_role("heading", name=f"{made}-b", exact=True).wait_for()
    found = user(local, f"{made}-b")
    assert found is not None
    assert found["former"] == [made]
    page = operator.open(f"/users/{made}")  # the former name leads there too
    page.get_by_role("heading", name=f"{made}-b", exact=True).wait_for()


def test_a_user_is_disabled_enabled_and_removed(operator: Console, local: Local, made: str) -> None:
    secret = local.call("POST", f"/v1/users/{made}/tokens", json={}).json()["token"]
    assert who(local, secret).is_success
    page = operator.open(f"/users/{made}")
    operator.press("Disable", Also_end_jobs_that_run=True)
    told(operator, f"{made} is disabled.")
    assert (user(local, made) or {})["state"] == "disabled"
    assert who(local, secret).status_code in (401, 403)
    operator.press("Enable")
    operator.says(f"{made} may act again")
    assert (user(local, made) or {})["state"] == "active"
    assert who(local, secret).is_success
    operator.press("Disable")
    operator.until(lambda: (user(local, made) or {})["state"] == "disabled")
    operator.button("Remove").click()
    dialog = page.locator("dialog[open]")
    with page.expect_response(lambda answer: answer.request.method == "DELETE") as came:
        dialog.get_by_role("button", name="Remove", exact=True).click()
    if came.value.ok:
        told(operator, f"{made} is removed.")
        assert user(local, made) is None
    else:  # so soon after it was disabled, the service may still look for jobs
        assert dialog.get_by_role("alert").inner_text() == came.value.json()["detail"]


def test_a_repository_s_name_is_given_to_the_one_that_has_it_now(operator: Console, local: Local) -> None:
    local.call("POST", "/v1/users", json={"name": "oxide:moved"})
    page = operator.open("/users/oxide:moved")
    operator.button("Transfer").click()
    dialog = page.locator("dialog[open]")
    operator.field("GitHub's id of the repository", dialog).fill("55")
    with page.expect_response(lambda answer: answer.url.endswith("/accept")) as came:
        dialog.get_by_role("button", name="Transfer", exact=True).click()
    assert came.value.request.post_data_json == {"id": 55}
    operator.says("oxide:moved is the repository that has this name now")
    done = local.call("GET", "/v1/audit").json()["items"]
    assert any("oxide:moved" in each["what"] and "55" in each["detail"] for each in done)


def test_an_own_token_is_made_shown_once_and_revoked(erin: Console, local: Local) -> None:
    page = erin.open("/tokens")
    erin.button("New token").click()
    dialog = page.locator("dialog[open]")
    erin.field("Name", dialog).fill("for the bench")
    dialog.get_by_label("only this:").check()
    dialog.get_by_role("checkbox", name="read").check()
    lasts = erin.field("Lasts", dialog)
    assert lasts.locator("option").all_inner_texts() == ["as long as this session", "an hour", "4 hours", "8 hours"]
    lasts.select_option("4 hours")
    dialog.get_by_role("button", name="New token").click()
    shown = page.get_by_role("dialog", name="The new token", exact=True)
    secret = shown.locator("[data-secret]").inner_text()
    made = who(local, secret).json()["token"]
    assert made["scopes"] == ["read"]
    life = datetime.fromisoformat(made["expires"]) - datetime.fromisoformat(made["created"])
    assert round(life / timedelta(hours=1)) == 4  # the clock is read once for each of the two
    shown.get_by_role("button", name="I have it").click()
    shown.wait_for(state="detached")  # a dialog that is closed is not seen any more, and leaves the page a moment later
    erin.until(lambda: secret not in page.content())
    row = erin.row("Tokens", made["id"])
    assert "for the bench" in row.inner_text()
    erin.press("Revoke", row)
    erin.says("The token is revoked")
    assert who(local, secret).status_code == 401
    row.wait_for(state="detached")
    page.locator("summary").filter(has_text="that are over").click()
    assert [each["state"] for each in tokens(local, "erin") if each["id"] == made["id"]] == ["revoked"]
    assert "for the bench" in erin.row("Tokens that are over", made["id"]).inner_text()


def test_an_operator_makes_and_revokes_the_token_of_another(operator: Console, local: Local, made: str) -> None:
    page = operator.open(f"/users/{made}")
    operator.button("New token").click()
    dialog = page.locator("dialog[open]")
    operator.field("Name", dialog).fill("theirs")
    dialog.get_by_role("button", name="New token").click()
    shown = page.get_by_role("dialog", name="The new token", exact=True)
    secret = shown.locator("[data-secret]").inner_text()
    shown.get_by_role("button", name="I have it").click()
    found = who(local, secret).json()
    assert (found["name"], found["token"]["by"]) == (made, "admin")
    operator.press("Revoke", operator.row("Tokens", "theirs"))
    operator.says("The token is revoked")
    assert who(local, secret).status_code == 401


def test_another_session_is_ended_and_one_s_own(visit: Callable[..., Console], local: Local, made: str) -> None:
    secret = local.call("POST", f"/v1/users/{made}/tokens", json={}).json()["token"]
    here, there = visit(), visit()
    there.sign_in(secret)
    here.sign_in(secret)
    page = here.open("/tokens")
    assert len(here.rows("Sessions")) == 2
    other = page.get_by_role("region", name="Sessions").get_by_role("row").filter(has_not_text="this one").nth(1)
    here.press("End", other)
    here.says("The session is revoked")
    assert sum(each["state"] == "good" and each["kind"] == "session" for each in tokens(local, made)) == 1
    there.page.get_by_text("Your session has ended.").wait_for()
    here.press("End", here.row("Sessions", "this one"))
    page.get_by_text("This page is for users").wait_for()
    assert not [each for each in tokens(local, made) if each["state"] == "good" and each["kind"] == "session"]


def test_shares_say_who_used_what(operator: Console, local: Local) -> None:
    operator.open("/shares")
    said = local.call("GET", "/v1/shares").json()["items"]
    assert said
    rows = operator.until(lambda: operator.rows("Shares"))
    assert [(each["Owner"], each["Weight"]) for each in rows] == [(each["owner"], f"{each['weight']}") for each in said]
    for row, share in zip(rows, said, strict=True):
        stands = (
            "above" if share["used"] > share["entitled"] else "below" if share["used"] < share["entitled"] else "at"
        )
        assert f"{stands} its part" in row["Stands"]
    assert operator.copied("As command") == "penstock share list"


def test_the_audit_log_has_what_operators_did(operator: Console, local: Local, made: str) -> None:
    local.call("PUT", f"/v1/users/{made}/privileges/priority")
    page = operator.open("/audit")
    rows = operator.rows("What operators did")
    said = local.call("GET", "/v1/audit").json()
    count = len(said["items"])
    assert [(each["Did"], each["What"]) for each in rows[:5]] == [(e["did"], e["what"]) for e in said["items"][:5]]
    assert operator.row("What operators did", f"user {made}").locator("td[data-title=What] a").get_attribute(
        "href"
    ) == (f"/users/{made}")
    if said["next"]:
        operator.button("Show more").click()
        operator.until(lambda: len(operator.rows("What operators did")) > count)
    operator.choose("Since", "1h")
    operator.choose("Who", "nobody")
    page.get_by_text("Nothing like that was done.").wait_for()
    assert page.url.endswith("/audit?since=1h&who=nobody")
    assert operator.copied("As command") == "penstock audit list --since 1h --who nobody"


def test_the_audit_log_is_filtered_by_what_was_done_to_what_and_when(
    operator: Console, local: Local, made: str
) -> None:
    local.call("PUT", f"/v1/users/{made}/privileges/priority")
    for verb in ("pause", "resume"):
        local.call("POST", f"/v1/pools/target/shut/{verb}")
    page = operator.open(f"/audit?did=grant&what=user+{made}")
    operator.becomes(lambda: {(each["Did"], each["What"]) for each in deeds(operator)}, {("grant", f"user {made}")})
    operator.choose("Did", "pause")
    operator.choose("What", "pool target/")
    operator.becomes(lambda: {each["Did"] for each in deeds(operator)}, {"pause"})
    assert {each["What"] for each in deeds(operator)} >= {"pool target/shut"}
    assert operator.copied("As command") == "penstock audit list --did pause --what 'pool target/'"
    operator.choose("Until", "30d")
    page.get_by_text("Nothing like that was done.").wait_for()
    assert page.url.endswith("/audit?did=pause&what=pool+target%2F&until=30d")
    page = operator.open("/audit?did=paused")
    page.get_by_text("“paused” is no action. There are accept repository, account diff,").wait_for()
    page = operator.open("/audit?since=whenever")
    page.get_by_text("“whenever” is no time.").wait_for()


def deeds(operator: Console) -> list[dict[str, str]]:
    return operator.rows("What operators did")
