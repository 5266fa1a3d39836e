"""Artifacts, caches and published files: what the pages say and what their buttons do, against the API."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from tests.e2e.conftest import Local
from tests.web.browser import Console
from tests.web.scenes import Scene, text

MAKES = """\
#: output_rules = ["=/work/image.txt", "=/work/notes.txt"]
#: [cache.tools]
#: paths = ["tools"]
#: key = "{key}"
#: [[publish]]
#: from_output = "/work/image.txt"
#: series = "nightly"
#: name = "image.txt"
#: version = "{version}"
"""
SCRIPT = """\
cd "$PENSTOCK_WORK"
mkdir -p tools
seq 1 2000 > tools/all
echo image {version} > image.txt
echo notes > notes.txt
"""


@dataclass(frozen=True)
class Made:
    """A job that made files, saved a cache entry and published a file; with a name that no other has."""

    job: str
    name: str

    @property
    def file(self) -> str:
        return f"admin/nightly/{self.name}/image.txt"


def make(local: Local, name: str) -> Made:
    made = local.submit(
        text(f"files {name}", SCRIPT.format(version=name), MAKES.format(key=f"tools-{name}", version=name))
    )
    assert local.settled(made)["outcome"] == "succeeded", local.job(made)
    return Made(made, name)


@pytest.fixture(scope="module")
def made(local: Local, scene: Scene) -> Made:
    del scene
    return make(local, f"v{len(local.call('GET', '/v1/published').json()['items'])}")


def artifacts(local: Local, made: Made) -> dict[str, dict[str, Any]]:
    """A job's artifacts by their paths."""
    found = local.call("GET", "/v1/artifacts?limit=100").json()["items"]
    return {each["path"]: each for each in found if each["job"] == made.job}


def row_of(console: Console, made: Made, path: str) -> Any:
    """The row of one job's artifact."""
    page = console.page
    return (
        page.locator("main tbody tr")
        .filter(has=page.locator(f"a[href='/jobs/{made.job}']"))
        .filter(has_text=path)
        .first
    )


def said_of(keeper: str) -> str:
    """How the page calls what keeps an artifact."""
    kind, _, of = keeper.replace("#", "/", 1).partition("/")
    return {"job": f"job {of}", "pin": f"pin of {of}", "published": f"published as {of}", "cache": "cache entry"}[kind]


def press(console: Console, row: Any, name: str, **fields: str) -> None:
    console.press(name, within=row, **fields)


def test_artifacts_are_listed_and_downloaded(operator: Console, local: Local, made: Made) -> None:
    page = operator.open("/artifacts")
    for path, artifact in artifacts(local, made).items():
        row = row_of(operator, made, path)
        assert row.locator(f"[title='{artifact['size']} bytes']").count() == 1
        assert row.locator(".state").get_attribute("data-state") == artifact["state"]
        for keeper in artifact["owners"]:
            assert said_of(keeper) in row.inner_text()
    got = operator.download(
        lambda: row_of(operator, made, "/work/notes.txt").get_by_role("button", name="Download").click()
    )
    assert got == b"notes\n"
    listed = local.call("GET", "/v1/artifacts").json()["items"]
    operator.becomes(lambda: page.locator("main table tbody tr:has([data-title=Path])").count(), len(listed))
    assert f"{len(listed)} files" in page.get_by_role("region", name="Sizes").inner_text()
    assert operator.copied("Copy as command") == "penstock artifact list"


def test_why_an_artifact_is_kept(operator: Console, local: Local, made: Made) -> None:
    page = operator.open("/artifacts")
    row = row_of(operator, made, "/work/image.txt")
    row.get_by_role("button", name="Why").click()
    card = page.get_by_role("region", name="Why it is kept")
    image = artifacts(local, made)["/work/image.txt"]
    said = local.call("GET", f"/v1/artifacts/{image['id']}/why").json()
    card.get_by_text(said["summary"]).wait_for()
    rows = operator.rows("What keeps it")
    assert [(each["Why"], each["What would end that"]) for each in rows] == [
        (each["why"], each["frees"]) for each in said["keepers"]
    ]
    assert len(rows) == 2  # the job, and the published name
    assert str(image["size"]) in card.inner_text()
    assert image["sha256"] in card.inner_text()
    assert operator.copied("Copy as command", within=card) == f"penstock artifact why {image['id']}"
    assert page.url.endswith(f"?artifact={image['id']}")
    card.get_by_role("button", name="Close").click()
    card.wait_for(state="detached")
    operator.open(f"/artifacts?artifact={image['id']}")
    card.get_by_text(said["summary"]).wait_for()
    card.get_by_role("link", name=f"published as {made.file}").click()
    page.get_by_role("heading", name="Published").wait_for()
    operator.becomes(lambda: [each["File"] for each in operator.rows("Published files")], [made.file])


def test_an_artifact_is_pinned_and_unpinned(operator: Console, local: Local, made: Made) -> None:
    def owners() -> list[str]:
        return list(artifacts(local, made)["/work/notes.txt"]["owners"])

    page = operator.open("/artifacts")
    row = row_of(operator, made, "/work/notes.txt")
    row.get_by_role("button", name="Pin", exact=True).click()
    dialog = page.locator("dialog[open]")
    dialog.get_by_label("Reason").fill("evidence")
    dialog.get_by_label("For how long").fill("soon")
    dialog.get_by_role("button", name="Pin", exact=True).click()
    dialog.get_by_role("alert").get_by_text("“soon” is no duration").wait_for()
    assert "pin#admin" not in owners()
    dialog.get_by_label("For how long").fill("12h")
    dialog.get_by_role("button", name="Pin", exact=True).click()
    operator.says("/work/notes.txt is pinned")
    assert "pin#admin" in owners()
    why = local.call("GET", f"/v1/artifacts/{artifacts(local, made)['/work/notes.txt']['id']}/why").json()
    (pin,) = [each for each in why["keepers"] if each["owner"] == "pin#admin"]
    assert "evidence" in pin["why"]
    assert pin["until"]

    row.get_by_role("button", name="Pin anew").wait_for()
    press(operator, row, "Pin anew", Reason="other evidence")
    operator.until(
        lambda: "other evidence" in str(local.call("GET", f"/v1/artifacts/{why['artifact']['id']}/why").json())
    )
    press(operator, row, "Unpin")
    operator.says("no longer pinned by admin")
    assert "pin#admin" not in owners()
    row.get_by_role("button", name="Pin", exact=True).wait_for()


def test_operators_see_another_users_artifacts(operator: Console, local: Local, made: Made) -> None:
    del made
    page = operator.open("/artifacts")
    field = page.get_by_label("Of user or repository")
    field.fill("erin")
    field.press("Enter")
    page.get_by_text("There is no artifact").wait_for()
    assert page.url.endswith("?by=erin")
    assert local.call("GET", "/v1/artifacts?by=erin").json()["items"] == []
    assert operator.copied("Copy as command") == "penstock artifact list --by erin"
    page.get_by_role("navigation", name="Files").get_by_role("link", name="Caches").click()
    page.get_by_role("heading", name="Caches").wait_for()


def entries(local: Local) -> dict[str, dict[str, Any]]:
    return {each["key"]: each for each in local.call("GET", "/v1/caches").json()["items"]}


def test_cache_entries_are_listed_downloaded_and_deleted(operator: Console, local: Local, made: Made) -> None:
    other = make(local, f"{made.name}-other")
    page = operator.open("/caches")
    key = f"tools-{made.name}"
    rows = {row["Key"]: row for row in operator.rows("Entries of caches")}
    assert set(rows) == set(entries(local))
    assert rows[key]["Cache"] == "tools"
    assert rows[key]["Scope"] == entries(local)[key]["scope"]
    assert page.locator(f"[title='{entries(local)[key]['size']} bytes']").count() >= 1
    meter = page.get_by_role("meter")
    assert float(meter.get_attribute("value")) == sum(each["size"] for each in entries(local).values())
    got = operator.download(
        lambda: page.get_by_role("button", name=f"Download the archive of {key}", exact=True).click()
    )
    assert len(got) == entries(local)[key]["size"]
    assert operator.copied("Copy as command") == "penstock cache list"

    row = page.locator("main tbody tr").filter(has_text=f"tools-{other.name}")
    press(operator, row, "Delete")
    operator.says(f"The entry of tools with the key tools-{other.name} is deleted")
    assert f"tools-{other.name}" not in entries(local)
    assert key in entries(local)
    row.wait_for(state="detached")

    owner = page.get_by_label("Owner", exact=True)
    owner.fill("erin")
    owner.press("Enter")
    page.get_by_text("There is no entry").wait_for()
    assert operator.copied("Copy as command") == "penstock cache list --owner erin"


def published(local: Local, name: str) -> dict[str, Any]:
    return dict(local.call("GET", f"/v1/published/{name}").json())


def test_published_files_are_listed_downloaded_and_withdrawn(operator: Console, local: Local, made: Made) -> None:
    other = make(local, f"{made.name}-withdrawn")
    page = operator.open("/published")
    rows = {row["File"]: row for row in operator.rows("Published files")}
    assert set(rows) == {
        "/".join(each[part] for part in ("owner", "series", "version", "name"))
        for each in local.call("GET", "/v1/published").json()["items"]
    }
    row = page.locator("main tbody tr").filter(has_text=made.file)
    assert row.locator(f"[title='SHA-256: {published(local, made.file)['sha256']}']").count() == 1
    got = operator.download(lambda: page.get_by_role("button", name=f"Download {made.file}", exact=True).click())
    assert got == f"image {made.name}\n".encode()
    assert operator.copied("Copy address", within=row) == local.running.url + f"/v1/public/file/{made.file}"

    gone = page.locator("main tbody tr").filter(has_text=other.file)
    press(operator, gone, "Withdraw")
    operator.says(f"{other.file} is withdrawn")
    assert published(local, other.file)["withdrawn_by"] == "admin"
    assert local.call("GET", f"/v1/public/file/{other.file}").status_code == 410
    gone.wait_for(state="detached")
    assert published(local, made.file)["withdrawn"] is None

    for label, value in (("Series", "nightly"), ("Version", made.name)):
        field = page.get_by_label(label, exact=True).first
        field.fill(value)
        field.press("Enter")
    operator.becomes(lambda: [each["File"] for each in operator.rows("Published files")], [made.file])
    assert operator.copied("Copy as command") == f"penstock published list --series nightly --version {made.name}"


def access(local: Local) -> dict[str, tuple[str, str]]:
    rules = local.call("GET", "/v1/series/admin").json()["items"]
    return {each["series"]: (each["access"], each["privilege"]) for each in rules}


def test_who_may_read_a_series_is_set_and_removed(operator: Console, local: Local, made: Made) -> None:
    page = operator.open("/published")
    card = page.get_by_role("region", name="Who may read the series of admin", exact=True)
    card.get_by_role("button", name="Set a rule").click()
    dialog = page.locator("dialog[open]")
    dialog.locator("[name=series]").fill("nightly")
    dialog.locator("[name=access]").select_option("privilege")
    dialog.get_by_role("button", name="Set a rule").click()
    dialog.get_by_role("alert").get_by_text("Name the privilege").wait_for()
    assert "nightly" not in access(local)
    dialog.locator("[name=privilege]").fill("images")
    dialog.get_by_role("button", name="Set a rule").click()
    operator.says("The rule is set")
    assert access(local)["nightly"] == ("privilege", "images")
    card.get_by_role("cell", name="users with a privilege: images").wait_for()
    assert operator.copied("Copy as command", within=card) == "penstock published access --owner admin"
    row = card.locator("tbody tr").filter(has_text="nightly")
    press(operator, row, "Remove")
    operator.says("The rule of nightly is removed")
    assert "nightly" not in access(local)
    row.wait_for(state="detached")
    assert published(local, made.file)["withdrawn"] is None
