"""From a push to check runs: what is run of a commit, and how GitHub shows it."""

from __future__ import annotations

import pytest

from penstock.domain.github.commits import Stage
from penstock.domain.jobs.jobs import Outcome, Result, State
from penstock.usecases.jobs import cancel
from penstock.usecases.jobs.flow import spec_of
from penstock.usecases.logs import logs
from tests.github.fake import INSTALLATION
from tests.github.payloads import check_run, push
from tests.github.rig import CONFIG, JOBS, A, B, Rig, job


def test_a_push_runs_the_jobs_of_its_commit_and_shows_each(rig: Rig) -> None:
    assert rig.say("push", push(A)) == f"jobs of {A[:12]}"
    assert rig.set().stage is Stage.SUBMITTED
    found = rig.jobs()
    assert {name: job.owner for name, job in found.items()} == {"build": "oxide:hubris", "test": "oxide:hubris"}
    assert found["build"].request.tags == {"repository": "oxide/hubris", "commit": A, "branch": "main"}
    assert (found["build"].state, found["test"].state) == (State.ACQUIRING, State.WAITING)
    shown = rig.fake.shown("build")
    assert (shown["status"], shown["head_sha"], shown["output"]["title"]) == (
        "queued",
        A,
        "Waiting for what it needs",
    )
    assert [each["identifier"] for each in shown["actions"]] == ["cancel"]
    rig.hello(found["build"].id)
    assert rig.fake.shown("build")["status"] == "in_progress"
    logs.append(rig.on, found["build"].id, 1, "all is \x1b[31mwell\x1b[0m\n``` @oxide/all", "stdout")
    rig.finish(found["build"].id)
    shown = rig.fake.shown("build")
    assert (shown["status"], shown["conclusion"]) == ("completed", "success")
    assert shown["output"]["text"] == "    all is well\n    ``` @oxide/all\n"
    assert [each["identifier"] for each in shown["actions"]] == ["rerun"]
    rig.hello(found["test"].id)
    rig.finish(found["test"].id, Result.FAILED)
    assert rig.fake.shown("test")["conclusion"] == "failure"
    assert len(rig.fake.runs) == 2
    assert not [check.due for check in rig.checks().values() if check.due]


def test_the_env_says_where_the_commit_came_from(rig: Rig) -> None:
    rig.say("push", push(A, "feature/x"))
    spec = spec_of(rig.on, rig.jobs()["build"])
    assert spec is not None
    assert spec.env == {
        "CI": "true", "GITHUB_REPOSITORY": "oxide/hubris", "GITHUB_SHA": A, "GITHUB_BRANCH": "feature/x",
        "GITHUB_REF": "refs/heads/feature/x",
    }  # fmt: skip


def test_nothing_is_said_twice_when_nothing_is_new(rig: Rig) -> None:
    rig.say("push", push(A))
    changes = [asked for asked in rig.fake.asked if asked[0] in ("PATCH", "POST")]
    rig.later(120)
    assert [asked for asked in rig.fake.asked if asked[0] in ("PATCH", "POST")] == changes


@pytest.mark.parametrize(
    ("text", "why"),
    [(None, "not enabled in the default branch"), ("enable = false", "not enabled in the default branch")],
)
def test_a_repository_that_says_nothing_runs_nothing(rig: Rig, text: str | None, why: str) -> None:
    rig.repo.files["main"] = {CONFIG: text.encode()} if text else {}
    rig.repo.files[A][CONFIG] = b"enable = true"  # what the commit says of itself counts for nothing
    rig.say("push", push(A))
    assert (rig.set().stage, rig.set().why, rig.fake.runs) == (Stage.SETTLED, why, {})


def test_a_policy_that_is_wrong_is_shown_where_it_is(rig: Rig) -> None:
    rig.policy('enable = true\nsupersede = "sometimes"')
    rig.say("push", push(A))
    run = rig.fake.shown("penstock")
    (note,) = run["output"]["annotations"]
    assert (run["conclusion"], note["path"], note["start_line"], note["title"]) == (
        "failure",
        CONFIG,
        2,
        "line 2, column 13",
    )
    assert not rig.all_jobs()


def test_what_is_wrong_in_a_job_file_is_shown_with_line_and_column(rig: Rig) -> None:
    rig.commit(A, one=b'#!/bin/bash\n#: name = "build"\n#: variety = "basic"\n#: targt = "x"\n', other=b"echo")
    rig.say("push", push(A))
    run = rig.fake.shown("build")
    (note,) = run["output"]["annotations"]
    assert (note["path"], note["start_line"], note["title"]) == (f"{JOBS}/one.sh", 4, "line 4, column 4")
    assert "targt" in note["message"]
    assert run["conclusion"] == "failure"
    assert f"{JOBS}/one.sh cannot be run" in run["output"]["summary"]
    assert "must have an interpreter line" in rig.fake.shown("other")["output"]["annotations"][0]["message"]
    assert (rig.set().stage, rig.all_jobs()) == (Stage.SUBMITTED, [])


EVIL = "@oxide/everyone ![x](https://evil.example/p.png) <img src=x>"
QUIET = "@\u200boxide/everyone \\!\\[x\\]\\(https:\u200b//evil.example/p.png\\) \\<img src=x\\>"


def test_what_a_job_file_says_is_no_markup_in_a_check(rig: Rig) -> None:
    """Neither its name, nor its target, nor the name of a job that it waits for; nor how the file is called. [SEC-2]"""
    named = f'#!/bin/bash\n#: name = "{EVIL}"\n#: variety = "basic"\n#: target = "{EVIL}"\necho\n'
    waits = f'#!/bin/bash\n#: name = "waits"\n#: variety = "basic"\n#: [dependencies.x]\n#: job = "{EVIL}"\necho\n'
    rig.commit(A, named=named.encode(), waits=waits.encode(), **{"[go](x)": b"#!/bin/bash\n#: targt = 1\n"})
    rig.say("push", push(A))
    said = {name: rig.fake.shown(name)["output"]["summary"].split("\n")[0] for name in rig.checks()}
    assert said == {
        EVIL: f"there is no target '{QUIET}'; there are: default, lab, linux",
        "waits": f"it waits for the job '{QUIET}', and none was accepted",
        "[go](x)": f"{JOBS}/\\[go\\]\\(x\\).sh cannot be run",
    }


def test_a_bad_job_file_fails_its_own_check_and_what_depends_on_it(rig: Rig) -> None:
    bad = job("build", more="#: taget = 1\n")
    rig.commit(A, build=bad, test=job("test", "build"), lint=job("lint"), sign=job("sign", "lint"))
    rig.say("push", push(A))
    assert set(rig.jobs()) == {"lint", "sign"}
    assert set(rig.checks()) == {"build", "test", "lint", "sign"}
    assert "taget" in rig.fake.shown("build")["output"]["annotations"][0]["message"]
    assert "it waits for the job 'build', and none was accepted" in rig.fake.shown("test")["output"]["summary"]
    assert rig.set().stage is Stage.SUBMITTED


def test_a_bad_job_file_is_bad_again_when_it_is_run_again(rig: Rig) -> None:
    rig.commit(A, build=job("build", more="#: taget = 1\n"), lint=job("lint"))
    rig.say("push", push(A))
    first = rig.fake.shown("build")
    rig.say("check_run", check_run(first, "ada", "rerun"))
    again = rig.fake.shown("build")
    assert again["id"] != first["id"]
    assert (again["conclusion"], len(again["output"]["annotations"])) == ("failure", 1)
    assert len(rig.all_jobs()) == 1


def test_files_that_do_not_fit_together_fail_their_own_checks(rig: Rig) -> None:
    rig.commit(A, alone=job("alone", "nobody"), a=job("a", "b"), b=job("b", "a"), good=job("good"), z=job("good"))
    rig.say("push", push(A))
    assert "there is no job `nobody`" in rig.fake.shown("alone")["output"]["annotations"][0]["message"]
    for name in ("a", "b"):
        (note,) = rig.fake.shown(name)["output"]["annotations"]
        assert "these jobs wait for each other" in note["message"]
        assert note["path"] == f"{JOBS}/{name}.sh"
    assert "is called `good` too" in rig.fake.shown(f"{JOBS}/z.sh")["output"]["annotations"][0]["message"]
    assert set(rig.jobs()) == {"good"}


def test_other_files_have_no_place_there(rig: Rig) -> None:
    rig.repo.files[A][f"{JOBS}/notes.md"] = b"x"
    rig.repo.files[A][f"{JOBS}/deep/er.md"] = b"x"
    rig.say("push", push(A))
    (note,) = rig.fake.shown(f"{JOBS}/notes.md")["output"]["annotations"]
    assert note["message"] == "only job files, which end in .sh, may be here"
    assert set(rig.jobs()) == {"build", "test"}


def test_too_many_files_and_too_large_ones(rig: Rig) -> None:
    rig.commit(A, **{f"j{number}": job(f"j{number}") for number in range(33)})
    rig.say("push", push(A))
    assert "there may be 32" in rig.fake.shown("penstock")["output"]["summary"]
    rig.commit(B, big=job("big") + b"#" * 256 * 1024)
    rig.say("push", push(B))
    assert "more than 262144 bytes" in rig.fake.shown("big")["output"]["summary"]
    rig.commit(A, **{f"j{number}": job(f"j{number}") for number in range(32)})
    rig.commit("d" * 40, **{f"j{number}": job(f"j{number}") for number in range(32)})
    rig.say("push", push("d" * 40))
    assert len(rig.jobs("d" * 40)) == 32


def test_a_matrix_of_too_many_jobs(rig: Rig) -> None:
    axis = ", ".join(f'"{number}"' for number in range(101))
    rig.commit(A, many=job("many", more=f"#: [matrix]\n#: n = [{axis}]\n"))
    rig.say("push", push(A))
    assert "these are 101 jobs; a commit may have 100" in rig.fake.shown("penstock")["output"]["summary"]


def test_a_matrix_is_a_check_for_each_of_its_jobs(rig: Rig) -> None:
    rig.commit(A, many=job("many", more='#: [matrix]\n#: n = ["1", "2"]\n'), last=job("last", "many"))
    rig.say("push", push(A))
    assert len(rig.jobs()) == 3
    assert len(rig.jobs()["last"].request.dependencies) == 2


def test_a_commit_without_jobs(rig: Rig) -> None:
    rig.commit(A)
    rig.say("push", push(A))
    assert (rig.set().stage, rig.set().why) == (Stage.SETTLED, f"there is no job in {JOBS}")


def test_a_repository_that_is_no_user_is_told_so(rig: Rig) -> None:
    rig.twin.store.rows.pop(rig.user.key)
    rig.say("push", push(A))
    assert "oxide:hubris is no user of this site" in rig.fake.shown("penstock")["output"]["summary"]


def test_a_job_that_is_refused_says_why_and_so_do_those_behind_it(rig: Rig) -> None:
    rig.commit(A, build=job("build", more='#: target = "lab"\n'), test=job("test", "build"), other=job("other"))
    rig.say("push", push(A))
    assert set(rig.jobs()) == {"other"}
    assert "target.lab" in rig.fake.shown("build")["output"]["summary"]
    assert "it waits for the job 'build', and none was accepted" in rig.fake.shown("test")["output"]["summary"]
    assert rig.fake.shown("test")["conclusion"] == "failure"
    assert rig.set().stage is Stage.SUBMITTED


def test_a_repository_that_the_site_does_not_serve(rig: Rig) -> None:
    payload = push(A)
    payload["repository"]["full_name"] = "mallory/hubris"
    assert rig.say("push", payload) == "ignored: the site does not serve this repository"
    assert rig.fake.asked == []


def test_a_delivery_that_comes_twice_is_one(rig: Rig) -> None:
    assert rig.hook("push", push(A), id="one") == "stored"
    rig.twin.run()
    assert rig.hook("push", push(A), id="one") == "known"
    rig.twin.run()
    assert rig.say("push", push(A)) == f"jobs of {A[:12]}"
    assert len(rig.all_jobs()) == len(rig.fake.runs) == 2


def test_a_token_permits_one_repository_and_only_what_is_needed(rig: Rig) -> None:
    rig.say("push", push(A))
    (minted,) = rig.fake.tokens.values()
    assert minted.repositories == [55]
    assert minted.permissions == {"checks": "write", "contents": "read", "members": "read", "pull_requests": "read"}
    assert rig.set().installation == INSTALLATION
    rig.twin.pass_time(3400)
    rig.commit(B, build=job("build"))
    rig.say("push", push(B, "other"))
    assert len(rig.fake.tokens) == 2


def test_a_job_is_cancelled_by_its_user_and_shown_so(rig: Rig) -> None:
    rig.say("push", push(A))
    cancel.cancel(rig.on, rig.user, rig.jobs()["build"].id)
    rig.twin.run()
    assert rig.fake.shown("build")["conclusion"] == "cancelled"
    assert rig.jobs()["test"].end.outcome is Outcome.FAILED
