"""From a signed webhook over the API to check runs at GitHub, by jobs that real workers run."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import httpx
import pytest

from tests.e2e.github import Front, front, unsigned
from tests.github.payloads import check_run, pull_request, push

pytestmark = pytest.mark.xdist_group("github")  # a cloud of its own

A, B, C = "a" * 40, "b" * 40, "c" * 40
HEAD = '#!/bin/bash\n#: name = "{name}"\n#: variety = "basic"\n#: skip_clone = true\n{more}\n'
ASKS = """
import sys, urllib.request
url = "{url}/repos/oxide/hubris/contents/README"
head = {{"authorization": f"Bearer {{sys.stdin.read().strip()}}", "accept": "application/vnd.github.raw+json"}}
print("GitHub says:", urllib.request.urlopen(urllib.request.Request(url, headers=head)).read().decode())
"""
BUILD = """
cat > "$PENSTOCK_WORK/asks.py" <<'end'{asks}end
bmat store get GITHUB_TOKEN | {python} "$PENSTOCK_WORK/asks.py"
echo "$GITHUB_REPOSITORY $GITHUB_SHA" | tee "$PENSTOCK_WORK/image.txt"
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    with front(tmp_path_factory.mktemp("github")) as found:
        yield found


def file(name: str, script: str, more: str = "") -> str:
    """A job file."""
    return HEAD.format(name=name, more=more) + script


def build(made: Front) -> str:
    """A job that reads something at GitHub with its token, and keeps an output."""
    script = BUILD.format(asks=ASKS.format(url=made.fake.url), python=sys.executable)
    return file("build", script, '#: output_rules = ["/work/image.txt"]')


def test_a_push_becomes_jobs_and_check_runs_that_may_be_run_again(made: Front) -> None:
    after = '#: [dependencies.built]\n#: job = "build"'
    made.commit(A, build=build(made), test=file("test", "cat $PENSTOCK_INPUT/built/work/image.txt\n", after))
    made.repo.files["main"]["README"] = b"read me"
    assert unsigned(made.local).status_code == 401
    made.say("push", push(A))
    first, second = made.check("build", A), made.check("test", A)
    assert (first["conclusion"], second["conclusion"]) == ("success", "success"), (first, second)
    assert {"    GitHub says: read me", f"    oxide/hubris {A}"} <= set(first["output"]["text"].splitlines())
    assert f"    oxide/hubris {A}" in second["output"]["text"]
    assert f"- [/work/image.txt]({made.local.running.url}/jobs/" in first["output"]["summary"]
    made.say("check_run", check_run(first, "ada", "rerun"))
    again = made.check("build", A, not_run=first["id"])
    assert again["conclusion"] == made.check("test", A, not_run=second["id"])["conclusion"] == "success"
    jobs = made.local.json("job", "list", "--owner", "oxide:hubris", "-T", f"commit={A}")
    assert sorted(job["name"] for job in jobs) == ["build", "build", "test", "test"]
    assert len(made.fake.runs) == 4
    tokens = [each for each in made.fake.tokens.values() if each.permissions == {"contents": "read"}]
    assert len(tokens) == 4  # each job has one for its ~/.netrc
    made.local.until(lambda: all(each.until <= made.fake.now() for each in tokens))  # they were revoked
    made.local.put_back()


def test_a_newer_commit_takes_the_place_of_one_whose_job_still_runs(made: Front) -> None:
    made.commit(B, old=file("old", "tail -f /dev/null\n"))
    made.commit(C, new=file("new", "true\n"))
    made.repo.ends["pull/12"] = B
    made.say("pull_request", pull_request(B, author="ada"))
    assert made.running("old")["head_sha"] == B
    made.repo.ends["pull/12"] = C
    made.say("pull_request", pull_request(C, author="ada", action="synchronize"))
    assert made.check("new", C)["conclusion"] == "success"
    assert made.check("old", B)["conclusion"] == "cancelled"
    made.local.put_back()


def test_somebody_signs_in_with_github_in_a_browser(made: Front) -> None:
    """With the permissions of the deployed function, and cookies as API Gateway passes them."""
    local = made.local
    assert local.call("PUT", "/v1/users/admin/github", json={"id": 4242, "login": "ada-l"}).status_code == 200
    with httpx.Client(base_url=local.running.url, trust_env=False, timeout=60) as browser:
        begun = browser.get("/v1/session/github")
        back = made.fake.consent(begun.headers["location"], 4242, "ada-l")
        kept = {"cookie": begun.headers["set-cookie"].partition(";")[0]}  # httpx keeps no Secure cookies over http
        done = browser.get("/v1/session/github/callback", params=back, headers=kept)
        assert (done.status_code, done.headers.get("location")) == (302, "/"), done.text
        session, over = done.headers.get_list("set-cookie")
        assert over.startswith("__Host-penstock-github=; ")
        shown = {"cookie": session.partition(";")[0], "penstock-console": "1", "origin": local.running.url}
        assert browser.get("/v1/whoami", headers=shown).json()["token"]["kind"] == "session"
        assert browser.delete("/v1/session", headers=shown).json() == {"ended": True}
        assert browser.get("/v1/whoami", headers=shown).status_code == 401
