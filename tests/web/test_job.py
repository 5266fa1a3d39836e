"""The page of a job: what it says of the job, its files and its buttons, against the API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.e2e.conftest import Local
from tests.web.browser import Console
from tests.web.conftest import Visit
from tests.web.scenes import FILE, Scene, text

WAITS = 'bmat store get go > "$PENSTOCK_WORK/report.txt"'
"""A script that ends once somebody puts `go` into the job's store."""


def go(local: Local, job: str) -> None:
    assert local.call("PUT", f"/v1/jobs/{job}/store/go", json={"value": "now"}).is_success


def running(local: Local, name: str, more: str = "") -> str:
    """A job that runs until it is told to go on."""
    job = local.submit(text(name, WAITS, more))
    local.until(lambda: local.job(job)["state"] == "running")
    return job


def facts(part: Any) -> dict[str, str]:
    """The facts of a part of the page, by their names."""
    pairs = "all => all.map((each) => [each.textContent.trim(), each.nextElementSibling.textContent.trim()])"
    return dict(part.locator("dl.facts dt").evaluate_all(pairs))


def state(console: Console) -> str:
    return str(console.page.locator("h1 .state").get_attribute("data-state"))


def test_a_job_that_succeeded(operator: Console, local: Local, scene: Scene) -> None:
    page = operator.open(f"/jobs/{scene.succeeded}")
    job = local.job(scene.succeeded)
    assert state(operator) == "succeeded"
    assert page.title() == f"{job['name']} · Penstock"
    where = operator.region("Where the job is")
    assert "The job succeeded. It settled" in where.inner_text()
    assert where.locator("time").first.get_attribute("datetime") == job["times"]["settled"]
    found = facts(operator.region("Facts"))
    assert found["Id"] == job["id"]
    assert found["Owner"] == job["owner"]
    assert found["Target"].startswith(f"target/{job['target_resolved']}")
    assert found["Worker"] == job["worker"]
    assert found["Priority"] == str(job["priority"])
    assert found["Exit code"] == str(job["exit_code"])
    timeline = operator.region("Timeline")
    timeline.get_by_text("As a table").click()
    stages = operator.rows("Stages")
    assert {"script", "waited"} <= {row["Stage"].lower() for row in stages} | {"waited"}
    assert "not over" not in {row["To"] for row in stages}
    leases = operator.rows("What was leased")
    assert [row["Unit"] for row in leases] == [job["worker"]]
    price = local.call("GET", f"/v1/jobs/{job['id']}/cost").json()
    assert price["total"] in operator.region("Price").inner_text()
    assert operator.abroad() == []


def test_commands_and_the_job_file_are_copied(operator: Console, local: Local, scene: Scene) -> None:
    page = operator.open(f"/jobs/{scene.succeeded}")
    commands = operator.region("Commands")
    for name in ("show", "timings", "tail", "outputs", "retry"):
        assert operator.copied(f"Copy {name}", within=commands) == f"penstock job {name} {scene.succeeded}"
    script = local.call("GET", f"/v1/jobs/{scene.succeeded}/script").json()
    wanted = script["script"] if script["script"] is not None else script["tasks"][0]["script"]
    assert operator.copied("Copy the script", within=operator.region("Job file")) == wanted
    assert page.locator("pre.script").first.inner_text().strip() == wanted.strip()
    page.get_by_role("navigation", name="Breadcrumb").get_by_role("link", name="Jobs").click()
    page.get_by_role("heading", name="Jobs", exact=True).wait_for()


def test_a_job_that_failed_says_why_and_what_to_do(operator: Console, local: Local, scene: Scene) -> None:
    operator.open(f"/jobs/{scene.failed}")
    job = local.job(scene.failed)
    failure = job["failure"]
    where = operator.region("Where the job is")
    assert state(operator) == "failed"
    assert job["reason"] in where.inner_text()
    found = facts(where)
    assert found["Failure"] == f"{failure['kind']}: {failure['what']}"
    assert found["What to do"] == failure["advice"]
    assert found["Exit code"] == str(failure["evidence"]["exit_code"]) == "3"
    assert where.locator(".last-lines pre").inner_text().split("\n")[: len(failure["lines"])] == failure["lines"]


def test_a_job_that_waits_says_for_whom(operator: Console, local: Local, scene: Scene) -> None:
    page = operator.open(f"/jobs/{scene.waiting}")
    where = operator.region("Where the job is")
    operator.becomes(lambda: len(operator.rows("Who holds it")), 3)
    why = local.call("GET", f"/v1/jobs/{scene.waiting}/why").json()
    block = why["blocked_on"]
    summary = why["summary"][1:]
    for each in [*block["held_by"], *block["ahead"]]:  # the page has names where the service has ids
        summary = summary.replace(each["job"], each["job_name"] or each["job"])
    assert summary.partition("; its turn")[0] in where.inner_text()
    rows = {row["Slot"]: row["Held by"] for row in operator.rows("Who holds it")}
    assert rows == {each["slot"]: f"{each['job_name']} {each['job_owner']}" for each in block["held_by"]}
    assert f"place {block['position']} in the queue; {block['held']} of {block['limit']} held" in where.inner_text()
    assert [row["Ahead"].split()[0] for row in operator.rows("Who is ahead")] == [
        (each["job_name"] or each["job"]).split()[0] for each in block["ahead"]
    ]
    where.get_by_role("link", name="soak test").first.click()
    page.wait_for_url(f"**/jobs/{scene.running}")
    operator.becomes(lambda: state(operator), "running")


def test_a_running_job_is_cancelled(operator: Console, local: Local, scene: Scene) -> None:
    job = running(local, "to cancel")
    page = operator.open(f"/jobs/{job}")
    operator.becomes(lambda: "runs on" in operator.region("Where the job is").inner_text(), True)
    assert local.job(job)["worker"] in operator.region("Where the job is").inner_text()
    assert operator.copied("Copy cancel", within=operator.region("Commands")) == f"penstock job cancel {job}"
    operator.button("Cancel").click()
    page.locator("dialog[open]").get_by_role("button", name="Back").click()
    assert local.job(job)["state"] == "running"
    operator.press("Cancel")
    operator.says("The job is being cancelled")
    assert local.settled(job)["outcome"] == "cancelled"
    operator.becomes(lambda: state(operator), "cancelled")
    operator.button("Retry").wait_for()
    assert "The job was cancelled" in operator.region("Where the job is").inner_text()
    assert local.job(scene.running)["state"] == "running"


def test_a_job_is_submitted_again(operator: Console, local: Local, scene: Scene) -> None:
    page = operator.open(f"/jobs/{scene.failed}")
    operator.press("Retry")
    operator.says("Submitted again: this is the new job")
    operator.until(lambda: scene.failed not in page.url)
    again = page.url.rpartition("/")[2]
    assert local.job(again)["name"] == local.job(scene.failed)["name"]
    assert local.settled(again)["outcome"] == "failed"
    operator.becomes(lambda: state(operator), "failed")


def test_a_job_is_held_and_released(operator: Console, local: Local, scene: Scene) -> None:
    del scene
    job = running(local, "to hold")
    page = operator.open(f"/jobs/{job}")
    fields = {"Reason, shown to others": "the board is odd", "Also if the script succeeds": True}
    operator.press("Hold", Minutes="30", **fields)
    operator.says("What the job has is held when its script ends")
    go(local, job)
    held = local.until(lambda: local.job(job)["held"])
    assert held["reason"] == "the board is odd"
    operator.until(lambda: "Held by admin" in operator.region("Where the job is").inner_text())
    said = operator.region("Where the job is")
    assert "the board is odd" in said.inner_text()
    assert held["until"] in said.locator("time").evaluate_all("all => all.map((each) => each.dateTime)")
    assert held["units"][0]["id"] in said.inner_text()
    operator.press("Release")
    operator.says("The hold has ended")
    local.until(lambda: not local.job(job)["held"])
    operator.becomes(lambda: operator.button("Release").count(), 0)
    operator.until(lambda: all(row["Clean"] not in ("", "still leased") for row in operator.rows("What was leased")))
    page.get_by_text("Journal of").first.click()
    assert page.locator("ol.journal li").first.is_visible()


PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
PAGE = "<h1>hi</h1><script>document.title = 'owned'</script>"
DRAWING = "<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'><script>document.title = 'owned'</script></svg>"
MADE = f"""\
cd "$PENSTOCK_WORK"
echo {PICTURE} | base64 -d > dot.png
cat > page.html <<'END'
{PAGE}
END
cat > drawing.svg <<'END'
{DRAWING}
END
head -c 300 /dev/zero > zeros.bin
for i in $(seq 1 9000); do echo "line $i of it"; done > long.txt
"""


@pytest.fixture(scope="module")
def made(local: Local, scene: Scene) -> str:
    """A job with files of several kinds."""
    del scene
    job = local.submit(text("files", MADE, '#: output_rules = ["/work/*"]\n'))
    assert local.settled(job)["outcome"] == "succeeded", local.log(job)
    return job


def test_outputs_are_shown_and_nothing_of_them_runs(operator: Console, local: Local, made: str) -> None:
    page = operator.open(f"/jobs/{made}")
    outputs = local.call("GET", f"/v1/jobs/{made}/outputs").json()["items"]
    operator.becomes(
        lambda: {row["Path"] for row in operator.rows("Outputs of the job")}, {each["path"] for each in outputs}
    )
    for each in outputs:
        assert page.locator(f"[title='{each['size']} bytes']").count() >= 1
        assert page.locator(f"code[title='{each['sha256']}']").count() == 1

    def shown(path: str) -> Any:
        operator.button(f"Preview {path}").click()
        peek = page.get_by_role("figure", name=f"Preview of {path}")
        peek.wait_for()
        return peek

    assert shown("/work/page.html").locator("pre").inner_text().strip() == PAGE
    picture = shown("/work/dot.png").locator("img")
    assert picture.evaluate("each => each.decode().then(() => each.naturalWidth)") == 1
    assert picture.get_attribute("src").startswith("data:image/png")
    assert shown("/work/drawing.svg").locator("img").get_attribute("src").startswith("data:image/svg+xml")
    assert "It is no text" in shown("/work/zeros.bin").inner_text()
    long = shown("/work/long.txt")
    assert "Only the beginning is shown" in long.inner_text()
    assert long.locator("pre").inner_text().startswith("line 1 of it\nline 2 of it\n")
    assert len(long.locator("pre").inner_text()) <= 64 * 1024
    long.get_by_role("button", name="Close the preview").click()
    long.wait_for(state="detached")
    assert "owned" not in page.title()
    got = operator.download(lambda: operator.button("Download /work/long.txt").click())
    assert got == b"".join(b"line %d of it\n" % each for each in range(1, 9001))
    assert "/jobs/" in page.url  # a page of an output is downloaded, and not opened
    got = operator.download(lambda: operator.button("Download /work/page.html").click())
    assert got.decode().strip() == PAGE


def test_values_of_the_store_are_shown_and_secrets_are_not(operator: Console, local: Local, scene: Scene) -> None:
    del scene
    job = running(local, "store")
    for name, value, secret in (("address", "http://bench", False), ("token", "hidden", True)):
        body = {"value": value, "secret": secret}
        assert local.call("PUT", f"/v1/jobs/{job}/store/{name}", json=body).is_success
    operator.open(f"/jobs/{job}")
    operator.becomes(lambda: len(operator.rows("Values")), 2)
    values = local.call("GET", f"/v1/jobs/{job}/store").json()["items"]
    assert {each["name"]: each["value"] for each in values} == {"address": "http://bench", "token": None}
    rows = {row["Name"]: row["Value"] for row in operator.rows("Values")}
    assert rows == {"address": "http://bench", "token": "secret: only the job may read it"}
    assert {row["By"] for row in operator.rows("Values")} == {"admin"}
    go(local, job)
    local.settled(job)


def test_a_jobs_files_are_discarded(operator: Console, local: Local, scene: Scene) -> None:
    del scene
    job = local.submit(text("to discard", 'echo x > "$PENSTOCK_WORK/report.txt"', FILE))
    local.settled(job)
    page = operator.open(f"/jobs/{job}")
    operator.becomes(lambda: [row["Path"] for row in operator.rows("Outputs of the job")], ["/work/report.txt"])
    operator.press("Discard")
    operator.says("The job's files and its log are deleted")
    assert local.job(job)["outputs_gone"]
    operator.button("Discard").wait_for(state="detached")
    operator.region("Outputs").get_by_text("They were deleted.").wait_for()
    assert page.get_by_role("region", name="Outputs").get_by_role("button", name="Download").count() == 0


def test_inputs_and_jobs_before_it_are_shown(operator: Console, local: Local, scene: Scene) -> None:
    data = local.folder / "data.txt"
    data.write_text("sent along\n")
    rule = f"build={scene.failed},on=always"
    job = local.submit(text("after", 'cat "$PENSTOCK_INPUT/data.txt"'), "-i", str(data), "-d", rule)
    local.settled(job)
    page = operator.open(f"/jobs/{job}")
    operator.becomes(lambda: [row["Input"] for row in operator.rows("Inputs")], ["data.txt"])
    (row,) = operator.rows("Inputs")
    (known,) = local.call("GET", f"/v1/jobs/{job}/inputs").json()["items"]
    assert row["There"] == "✓ uploaded"
    assert row["Size"] == f"{known['size']} B"
    (before,) = operator.rows("Dependencies")
    assert before["Dependency"] == "build"
    assert before["Goes on when it"] == "has settled"
    operator.becomes(lambda: operator.rows("Dependencies")[0]["Job"].split()[-1], "failed")
    operator.region("Inputs and dependencies").get_by_role("link", name="unit tests").click()
    page.wait_for_url(f"**/jobs/{scene.failed}")


@pytest.fixture(scope="module")
def deploys(local: Local, scene: Scene) -> Callable[[], str]:
    """Submits a job of carla's that asks for the environment that the operator reviews."""
    del scene
    local.call("POST", "/v1/users", json={"name": "carla"})
    token = local.call("POST", "/v1/users/carla/tokens", json={}).json()["token"]
    asks = '#: target = "signer"\n#: environment = "production"\n'
    body = {"script": f"#!/bin/bash\n{text('deploy', 'echo deployed', asks)}"}

    def submit() -> str:
        headers = {"authorization": f"Bearer {token}"}
        made = local.call("POST", "/v1/jobs", json=body, headers=headers)
        assert made.is_success, made.text
        return str(made.json()["id"])

    return submit


def test_a_job_that_asks_for_an_environment_is_approved(
    operator: Console, local: Local, deploys: Callable[[], str]
) -> None:
    job = deploys()
    operator.open(f"/jobs/{job}")
    card = operator.region("Environment")
    card.get_by_text("It waits for an approval").wait_for()
    review = local.call("GET", f"/v1/jobs/{job}/review").json()
    assert "target.signer" in facts(card)["Gets the privileges"]
    assert facts(card)["Reviewers"] == ", ".join(review["reviewers"])
    assert "echo deployed" in card.locator("pre").inner_text()
    operator.press("Approve")
    operator.says("Approved")
    assert local.settled(job)["outcome"] == "succeeded"
    assert local.job(job)["approved_by"] == "admin"
    card.get_by_text("Approved by admin.").wait_for()
    operator.becomes(lambda: state(operator), "succeeded")


def test_a_job_that_asks_for_an_environment_is_refused(
    operator: Console, local: Local, deploys: Callable[[], str]
) -> None:
    job = deploys()
    operator.open(f"/jobs/{job}")
    operator.press("Refuse")
    operator.says("Refused")
    assert local.settled(job)["outcome"] == "failed"
    operator.becomes(lambda: state(operator), "failed")
    assert operator.button("Approve").count() == 0


def test_a_job_that_is_not_there_or_not_ones_own_is_said_to_be_so(
    visit: Visit, local: Local, scene: Scene, plain: str
) -> None:
    assert local.job(scene.running)["owner"] == "admin"
    erin = visit()
    erin.sign_in(plain)
    for job in (scene.running, "01AAAAAAAAAAAAAAAAAAAAAAAA"):
        erin.page.goto(f"{erin.url}/jobs/{job}")
        said = erin.page.get_by_role("alert")
        said.wait_for()
        assert "404" in said.inner_text()
        assert erin.page.get_by_role("heading", name="There is no such job").count() == 1
        assert erin.page.get_by_role("button", name="Cancel").count() == 0
