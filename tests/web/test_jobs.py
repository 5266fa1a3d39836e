"""The list of jobs: what it shows is asked of the API, and what its buttons did too."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from tests.e2e.conftest import Local
from tests.web.browser import PHONE, Console
from tests.web.conftest import Visit
from tests.web.scenes import FAMILY, PAIR, Scene, all_settled, family, members, text

pytestmark = pytest.mark.usefixtures("scene")

IDS = "rows => rows.map((row) => row.querySelector('[data-title=Job] a').getAttribute('href').split('/').at(-1))"


def shown(console: Console) -> list[str]:
    """The ids of the jobs that are listed. Jobs of a set stand together, so their order is not the API's."""
    return list(console.page.locator("main tbody tr:not(.group)").evaluate_all(IDS))


def unfolded(console: Console) -> list[str]:
    """The ids of all jobs that are listed, with those of sets that are closed at first, sorted."""
    for closed in console.page.locator("tr.group button[aria-expanded=false]").all():
        closed.click()
    return sorted(shown(console))


def listed(local: Local, query: str) -> list[str]:
    return [each["id"] for each in local.call("GET", f"/v1/jobs?{query}").json()["items"]]


def address(console: Console) -> list[tuple[str, str]]:
    return parse_qsl(urlsplit(console.page.url).query)


@pytest.fixture(scope="module")
def tagged(local: Local) -> str:
    """A job of its own target, with a tag."""
    job = local.submit(text("paint", "true", '#: target = "ubuntu-24.04"\n'), "-T", "colour=green")
    local.settled(job)
    return job


FILTERS = [
    ("State", "failed", "state=failed&state=failed"),
    ("Name", "unit*", "name=unit*"),
    ("Since", "1d", ""),
    ("Target", "ubuntu-24.04", "target=ubuntu-24.04"),
    ("Tag", "colour=green", "tag=colour%3Dgreen"),
]


def test_filters_stand_in_the_address_and_are_those_of_the_service(
    operator: Console, local: Local, tagged: str
) -> None:
    for label, value, query in FILTERS:
        page = operator.open("/")
        role = "combobox" if label == "State" else "searchbox"
        field = page.get_by_role("search", name="Filter jobs").get_by_role(role, name=label, exact=True)
        if label == "State":
            field.select_option(value)
        else:
            field.click()
            page.keyboard.type(value)
            assert address(operator) == []  # nothing is looked for while somebody types
            field.press("Enter")
        operator.becomes(lambda: address(operator), [(label.lower(), value)])
        wanted = sorted(listed(local, query.partition("&")[0]))
        assert wanted, label
        operator.becomes(lambda: unfolded(operator), wanted)
        operator.open(urlsplit(page.url).path + "?" + urlsplit(page.url).query)  # the address alone says it
        operator.becomes(lambda: unfolded(operator), wanted)
    assert tagged in shown(operator)
    operator.button("Do not look for the tag colour=green").click()
    operator.becomes(lambda: address(operator), [])


def test_a_filter_that_is_none_is_said_to_be_wrong_and_nothing_is_asked(operator: Console) -> None:
    for query, said in (("since=soon", "“soon” is no time"), ("tag=green", "“green” is no tag")):
        operator.page.goto(f"{operator.url}/?{query}")
        operator.page.get_by_role("alert").get_by_text(said).wait_for()
    assert not [
        each
        for each in operator.requests
        if "soon" in each.partition("/v1/")[2] or "tag=green" in each.partition("/v1/")[2]
    ]


def test_the_command_lists_the_same_jobs(operator: Console, local: Local) -> None:
    operator.open("/?state=failed&name=unit*&all=true")
    command = operator.copied("Copy as command")
    assert command == "penstock job list --state failed --name 'unit*' --all"
    found = local.json("job", "list", "--state", "failed", "--name", "unit*", "--all")
    assert [each["id"] for each in found] == shown(operator)


def test_operators_see_everybodys_jobs_if_they_want(operator: Console, visit: Visit, local: Local) -> None:
    local.cli("user", "create", "dora")
    token = json.loads(local.cli("token", "create", "--user", "dora", "--json").stdout)["token"]
    made = local.call(
        "POST",
        "/v1/jobs",
        json={"name": "of dora", "tasks": [{"name": "only", "script": "true"}]},
        headers={"authorization": f"Bearer {token}"},
    )
    assert made.is_success, made.text
    job = made.json()["id"]

    operator.open("/")
    assert job not in shown(operator)
    operator.page.get_by_label("Everybody").check()
    operator.becomes(lambda: job in shown(operator), True)
    assert address(operator) == [("all", "true")]
    operator.page.get_by_label("Owner", exact=True).fill("dora")
    operator.page.keyboard.press("Enter")
    operator.becomes(lambda: (address(operator), shown(operator)), ([("owner", "dora")], [job]))

    dora = visit()
    dora.sign_in(token)
    dora.open("/")
    dora.becomes(lambda: shown(dora), [job])
    assert dora.page.get_by_label("Everybody").count() == 0
    assert dora.page.get_by_role("link", name="Everything").count() == 0
    assert dora.page.get_by_role("link", name="Commits").count() == 0


def test_views_are_chosen_saved_and_deleted(operator: Console, local: Local) -> None:
    page = operator.open("/")
    views = page.get_by_role("navigation", name="Views")
    for name, query in (("Waiting now", "state=waiting&all=true"), ("Everything", "all=true"), ("Mine", "")):
        views.get_by_role("link", name=name, exact=True).click()
        operator.becomes(lambda query=query: address(operator), parse_qsl(query))
        assert views.get_by_role("link", name=name, exact=True).get_attribute("aria-current") == "page"
        operator.becomes(lambda: unfolded(operator), sorted(listed(local, query)))
    views.get_by_role("link", name="Failed today").click()
    operator.becomes(lambda: dict(address(operator)), {"state": "failed", "since": "today", "all": "true"})
    assert operator.button("Save view").count() == 0  # it is one already

    operator.open("/?name=unit*")
    operator.press("Save view", Name="units")
    operator.says("Saved in this browser")
    operator.open("/")
    views.get_by_role("link", name="units").click()
    operator.becomes(lambda: address(operator), [("name", "unit*")])
    operator.button("Delete the view units").click()
    operator.open("/")
    assert views.get_by_role("link", name="units").count() == 0


def test_selected_jobs_are_cancelled_or_retried(operator: Console, local: Local, scene: Scene) -> None:
    waits = local.submit(text("to cancel", "true", '#: resources = ["bench"]\n'))
    page = operator.open("/")
    for job in (waits, scene.failed):
        page.get_by_role("checkbox", name=job).check()
    selected = page.get_by_role("region", name="Selected jobs")
    assert "2 jobs selected" in selected.inner_text()
    assert operator.copied("Copy as commands") == f"penstock job cancel {waits}\npenstock job retry {scene.failed}"

    operator.press("Retry 1")
    operator.says("1 job submitted once more")
    found = local.call("GET", "/v1/jobs?name=unit tests").json()["items"]
    assert len(found) > 1
    assert found[0]["id"] != scene.failed
    operator.becomes(lambda: found[0]["id"] in shown(operator), True)
    assert local.job(waits)["state"] != "settled"

    page.get_by_role("checkbox", name=waits).check()
    operator.button("Cancel 1").click()
    page.locator("dialog[open]").get_by_role("button", name="Back").click()
    assert local.job(waits)["state"] != "settled"
    operator.press("Cancel 1")
    operator.says("1 job being cancelled")
    assert local.settled(waits)["outcome"] == "cancelled"
    state = page.locator("tr").filter(has=page.locator(f"a[href$='{waits}']")).locator(".state")
    operator.becomes(lambda: state.get_attribute("data-state"), "cancelled")


def test_all_or_none_are_selected(operator: Console) -> None:
    page = operator.open("/?state=running")
    count = len(shown(operator))
    operator.button(f"Select all {count}").click()
    assert page.locator("main tbody input:checked").count() >= count
    assert operator.button(f"Cancel {count}").is_visible()
    operator.button("Select none").click()
    assert page.get_by_role("region", name="Selected jobs").count() == 0
    assert page.locator("main tbody input:checked").count() == 0


def small_pages(console: Console, size: int) -> None:
    """Let the service answer with smaller pages: what the page does with several of them is the same."""

    def ask(route: Any) -> None:
        url = route.request.url
        route.continue_(url=f"{url}{'&' if '?' in url else '?'}limit={size}")

    console.page.route("**/v1/jobs?*", ask)
    console.page.route("**/v1/jobs", ask)


def test_more_jobs_are_shown_by_the_button_and_by_keys(operator: Console, local: Local) -> None:
    small_pages(operator, 2)
    operator.open("/?since=1d")
    operator.becomes(lambda: unfolded(operator), sorted(listed(local, "limit=2")))
    operator.button("Show more").click()
    operator.becomes(lambda: unfolded(operator), sorted(listed(local, "limit=4")))
    for _ in range(5):  # at the last one, j loads more
        operator.page.keyboard.press("j")
    operator.becomes(lambda: unfolded(operator), sorted(listed(local, "limit=6")))


def test_keys_go_through_the_list(operator: Console) -> None:
    page = operator.open("/?state=running")
    jobs = shown(operator)
    assert len(jobs) > 1

    def focused() -> str:
        return str(page.evaluate("document.activeElement.getAttribute('href') ?? ''")).rpartition("/")[2]

    for key, job in (("j", jobs[0]), ("j", jobs[1]), ("k", jobs[0]), ("ArrowDown", jobs[1]), ("ArrowUp", jobs[0])):
        page.keyboard.press(key)
        assert focused() == job, key
    page.keyboard.press("x")
    assert page.get_by_role("checkbox", name=jobs[0]).is_checked()
    page.keyboard.press("x")
    assert not page.get_by_role("checkbox", name=jobs[0]).is_checked()
    page.keyboard.press("/")
    name = page.get_by_label("Name", exact=True)
    assert name.evaluate("each => each === document.activeElement")
    page.keyboard.type("jkx")
    assert name.input_value() == "jkx"  # typed, and nothing else
    name.fill("")
    name.blur()
    page.keyboard.press("j")
    operator.becomes(focused, jobs[0])
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/jobs/{jobs[0]}")


def test_the_list_is_live(operator: Console, local: Local) -> None:
    operator.open("/")
    job = local.submit(text("just now", "true"))
    operator.becomes(lambda: job in shown(operator), True)
    row = operator.page.locator("tr").filter(has=operator.page.locator(f"a[href$='{job}']"))
    operator.becomes(lambda: row.locator(".state").get_attribute("data-state"), "succeeded")
    assert local.job(job)["outcome"] == "succeeded"


def test_jobs_of_a_set_stand_together_and_large_sets_are_closed(operator: Console, local: Local) -> None:
    its = family(local, FAMILY)
    all_settled(local, its)
    jobs = {each["id"] for each in members(local, its).values()}
    page = operator.open("/")
    head = operator.button(f"Jobs of set {its}")
    assert head.get_attribute("aria-expanded") == "false"
    assert not jobs & set(shown(operator))
    said = page.locator("tr.group").filter(has_text=its).inner_text()
    for word in ("10 loaded", "2 failed", "8 succeeded"):
        assert word in said, said
    page.get_by_label(f"Select the jobs of set {its} that are loaded").check()
    assert operator.button("Retry 10").is_visible()
    head.click()
    assert jobs <= set(shown(operator))
    page.get_by_label(f"Select the jobs of set {its} that are loaded").uncheck()
    page.get_by_role("link", name=its).click()
    page.get_by_role("heading", name=f"Set {its}").wait_for()


def test_on_a_phone_a_button_opens_the_filters(visit: Visit, local: Local) -> None:
    phone = visit(PHONE)
    phone.sign_in(local.running.token)
    page = phone.open("/")
    name = page.get_by_label("Name", exact=True)
    assert not name.is_visible()
    phone.button("Filters").click()
    name.fill("unit*")
    name.press("Enter")
    phone.becomes(lambda: unfolded(phone), sorted(listed(local, "name=unit*")))
    assert phone.overflow() == 0


COMMIT = "0123456789abcdef0123456789abcdef01234567"


def test_a_commit_leads_to_its_jobs(operator: Console, local: Local) -> None:
    """No repository is installed at this cloud, so commits and what one has are answered here."""
    its = family(local, PAIR)
    page = operator.open("/")
    page.get_by_role("link", name="Commits").click()
    page.get_by_text("No commit has come from GitHub yet").wait_for()
    assert local.call("GET", "/v1/github/commits").json()["items"] == []

    commit = {
        "repository": "oxide/hubris",
        "commit": COMMIT,
        "branch": "main",
        "pull_request": None,
        "stage": "running",
    }
    body = {"items": [{**commit, "why": "", "approved_by": None, "since": "2026-01-01T00:00:00Z"}], "next": None}
    page.route("**/v1/github/commits*", lambda route: route.fulfill(json=body))
    jobs = local.call("GET", f"/v1/sets/{its}").json()
    page.route(f"**/v1/sets/{COMMIT}*", lambda route: route.fulfill(json=jobs))
    operator.open("/commits")
    assert operator.copied("Copy as command") == "penstock github status"
    page.get_by_role("link", name=COMMIT[:12]).click()
    page.get_by_role("heading", name=f"Commit {COMMIT[:12]}").wait_for()
    page.get_by_role("heading", name="What depends on what").wait_for()
    assert f"GET {local.running.url}/v1/sets/{COMMIT}?owner=oxide%3Ahubris" in operator.requests
    links = page.locator("main tbody [data-title=Job] a").evaluate_all("all => all.map((each) => each.pathname)")
    assert links == [f"/jobs/{each['id']}" for each in jobs["items"]]
