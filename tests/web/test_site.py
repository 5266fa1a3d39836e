"""The site: what a configuration would change, applying it, and tests of factories."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import Local
from tests.web.browser import Console
from tests.web.conftest import SITE

TEXT = "The site's configuration, as TOML"


@pytest.fixture(autouse=True)
def put_back(local: Local) -> Iterator[None]:
    """The other tests have their site again."""
    yield
    local.apply(SITE)


def written(local: Local) -> str:
    """The configuration in force."""
    return str(local.call("GET", "/v1/config").json()["toml"])


def limit(local: Local, pool: str) -> int:
    return int(local.call("GET", f"/v1/pools/{pool}").json()["limit"])


def write(console: Console, text: str) -> None:
    console.page.get_by_label(TEXT).fill(text)


def check(console: Console) -> None:
    console.button("Check").click()
    console.page.locator(".configuration .side h3, .configuration .side [role=alert]").first.wait_for()


MORE = '\n[targets.another]\nfactory = "here"\nlimit = 3\n'


def test_what_would_change_is_shown_and_applied_as_shown(operator: Console, local: Local) -> None:
    page = operator.open("/site")
    before = written(local)
    assert page.get_by_label(TEXT).input_value() == before
    assert operator.button("Apply").is_disabled()
    write(operator, before + MORE)
    check(operator)
    assert written(local) == before
    rows = operator.rows("Keys that differ")
    assert [(each["Is"].split()[-1], each["Key"]) for each in rows] == [("added", "targets.another")]
    operator.press("Apply")
    operator.says("The configuration is applied")
    assert written(local) == before + MORE
    assert limit(local, "target/another") == 3
    page.get_by_text("✓ Applied.").wait_for()
    operator.until(lambda: any(each["Target"] == "target/another" for each in operator.rows("Targets")))


def test_before_something_goes_somebody_is_asked(operator: Console, local: Local) -> None:
    operator.open("/site")
    before = written(local)
    less = before.replace("[targets.shut]                  # nothing is made for it: jobs wait\n", "[targets.open]\n")
    assert less != before
    write(operator, less)
    check(operator)
    signs = {each["Key"]: each["Is"].split()[-1] for each in operator.rows("Keys that differ")}
    assert (signs["targets.shut"], signs["targets.open"]) == ("removed", "added")
    operator.button("Apply").click()
    dialog = operator.page.locator("dialog[open]")
    assert "removes 1 of them" in dialog.inner_text()
    dialog.get_by_role("button", name="Back").click()
    assert written(local) == before
    operator.press("Apply")
    operator.says("The configuration is applied")
    assert local.call("GET", "/v1/targets/shut").status_code == 404


def test_a_mistake_is_named_with_its_line(operator: Console, local: Local) -> None:
    page = operator.open("/site")
    before = written(local)
    wrong = before.replace("limit = 12", 'limit = "many"')
    asked = local.call("PUT", "/v1/config?check=true", json={"toml": wrong, "path": "site.toml"}).json()
    (fault,) = asked["errors"]
    write(operator, wrong)
    check(operator)
    alert = page.locator(".configuration").get_by_role("alert")
    assert fault["message"] in alert.inner_text()
    place = alert.get_by_role("button", name=f"Line {fault['line']}", exact=True)
    place.click()
    at = page.evaluate("[document.activeElement.tagName, document.activeElement.selectionStart]")
    assert at[0] == "TEXTAREA"
    assert wrong[: at[1]].count("\n") + 1 == fault["line"]
    assert operator.button("Apply").is_disabled()
    operator.button("Take back my changes").click()
    assert page.get_by_label(TEXT).input_value() == before


def test_what_somebody_else_applied_meanwhile_is_not_overwritten(
    operator: Console, local: Local, tmp_path: Path
) -> None:
    page = operator.open("/site")
    before = written(local)
    write(operator, before + MORE)
    check(operator)
    theirs = tmp_path / "site.toml"
    theirs.write_text(before.replace("amount = 64", "amount = 60"))
    local.apply(theirs)
    operator.button("Apply").click()
    if page.locator("dialog[open]").count():
        page.locator("dialog[open]").get_by_role("button", name="Apply").click()
    page.get_by_text("Somebody applied another configuration meanwhile").first.wait_for()
    assert "amount = 60" in written(local)
    assert limit(local, "quota/vcpus") == 60
    keys = {each["Key"] for each in operator.rows("Keys that differ")}
    assert keys == {"targets.another", "quotas.vcpus.amount"}
    if page.locator("dialog[open]").count():
        page.locator("dialog[open]").get_by_role("button", name="Back").click()
    operator.button("Drop mine, and take that one").click()
    assert "amount = 60" in page.get_by_label(TEXT).input_value()


def test_a_file_is_opened_and_what_was_written_stays(operator: Console, local: Local, tmp_path: Path) -> None:
    file = tmp_path / "other.toml"
    file.write_text(written(local) + MORE)
    page = operator.open("/site")
    with page.expect_file_chooser() as chosen:
        operator.button("Open a file").click()
    chosen.value.set_files(file)
    operator.becomes(lambda: page.get_by_label(TEXT).input_value(), file.read_text())
    page.get_by_role("link", name="Shares", exact=True).first.click()
    page.get_by_role("heading", name="Shares", exact=True).wait_for()
    page.get_by_role("link", name="Site", exact=True).first.click()
    operator.becomes(lambda: page.get_by_label(TEXT).input_value(), file.read_text())
    operator.button("Take back my changes").click()
    assert written(local) == page.get_by_label(TEXT).input_value()


def test_a_factory_is_tested(operator: Console, local: Local) -> None:
    page = operator.open("/site")
    row = operator.row("Factories and wells", "here")
    operator.press("Test", row, Target="ubuntu-24.04")
    operator.says("A test of here has begun")
    job = page.url.partition("test=here")[2].lstrip("%2F/")
    assert job
    page.get_by_text("✓ All checks passed.").wait_for()
    said = local.call("GET", f"/v1/factories/here/tests/{job}").json()
    rows = operator.rows("Checks")
    assert [each["Check"] for each in rows] == [each["check"] for each in said["checks"]]
    assert {each["State"].split()[-1] for each in rows} == {"holds"}


def test_what_the_site_is_made_of(erin: Console, local: Local) -> None:
    page = erin.open("/site")
    erin.becomes(lambda: page.locator("main .loading").count(), 0)
    for table, path, column in (("Targets", "targets", "Target"), ("Resource types", "resource-types", "Type")):
        names = {each["name"] for each in local.call("GET", f"/v1/{path}").json()["items"]}
        assert {each[column].partition("/")[2] or each[column] for each in erin.rows(table)} == names
    assert page.get_by_label(TEXT).count() == 0
    assert erin.button("Test").count() == 0
    row = erin.row("Resource types", "resource/licence")
    row.locator("td[data-title=Settings] summary").click()
    assert "limit" in row.inner_text()
