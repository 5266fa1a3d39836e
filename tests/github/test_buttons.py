"""Outsiders' commits are approved one by one; and jobs are cancelled and run again from GitHub. [SEC-2]"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from penstock.domain.github import checks
from penstock.domain.github.commits import Stage
from penstock.domain.jobs.jobs import Outcome, State
from penstock.kernel.rows import Replace
from penstock.usecases.github import check_runs, client, commits
from penstock.usecases.users import users
from tests.github.fake import Repo
from tests.github.payloads import check_run, check_suite, pull_request, push
from tests.github.rig import A, B, Rig, job


def press(rig: Rig, name: str, button: str, by: str = "ada") -> str:
    """Press a button of the latest check run of a name; "" is GitHub's own Re-run."""
    return rig.say("check_run", check_run(rig.fake.shown(name), by, button))


def test_an_outsiders_commit_waits_for_approval(rig: Rig) -> None:
    rig.say("pull_request", pull_request(A))
    assert (rig.set().stage, rig.all_jobs()) == (Stage.AWAITING, [])
    run = rig.fake.shown("penstock")
    assert (run["conclusion"], run["head_sha"]) == ("action_required", A)
    assert [each["identifier"] for each in run["actions"]] == ["approve"]
    assert not [asked for asked in rig.fake.asked if "jobs" in asked[1]]  # its files are not even looked at
    assert press(rig, "penstock", "approve") == "approved by ada"
    assert set(rig.jobs()) == {"build", "test"}
    assert (rig.set().approved_by, rig.set().outsider) == ("ada", True)
    assert rig.fake.shown("penstock")["conclusion"] == "success"
    assert len([run for run in rig.fake.runs.values() if run["name"] == "penstock"]) == 1
    assert rig.jobs()["build"].request.tags["pull_request"] == "12"


def test_the_button_is_there_as_soon_as_the_check_is(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another function may take its message in the moment in which it is sent."""
    enqueue, shown = rig.forge.enqueue, []

    def and_show(message: Mapping[str, Any], after: int = 0) -> None:
        if "check" in message and not shown:
            shown.append(message)
            check_runs.sync(rig.on, checks.key_of(message["check"]))
        else:
            enqueue(message, after)

    monkeypatch.setattr(rig.forge, "enqueue", and_show)
    rig.say("pull_request", pull_request(A))
    assert shown
    assert [each["identifier"] for each in rig.fake.shown("penstock")["actions"]] == ["approve"]
    assert press(rig, "penstock", "approve") == "approved by ada"


def test_a_set_that_moved_meanwhile_is_not_written_over(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """A newer commit comes while it is looked up whether an outsider may have jobs run: that one's news stand."""
    members = client.is_member

    def and_newer(*asked: Any) -> bool:
        if rig.set(A).stage is Stage.PLANNED and not rig.set(A).why:
            was = rig.set(A)
            assert rig.on.store.commit([Replace(was, replace(was, why="heard again"))])
        return members(*asked)

    monkeypatch.setattr(client, "is_member", and_newer)
    rig.say("pull_request", pull_request(A))
    assert rig.set(A).why == "heard again"
    assert (rig.set(A).stage, rig.set(A).due is not None) == (Stage.PLANNED, True)
    assert not rig.fake.runs, "there is a check of what was not decided"


@pytest.mark.parametrize("who", ["eve", "bob", "mem", "mallory"])
def test_only_who_may_write_approves(rig: Rig, who: str) -> None:
    rig.say("pull_request", pull_request(A))
    assert press(rig, "penstock", "approve", who) == f"ignored: {who} may not write to oxide/hubris"
    assert (rig.set().stage, rig.all_jobs()) == (Stage.AWAITING, [])


def test_an_approval_is_of_one_commit_and_of_no_other(rig: Rig) -> None:
    rig.commit(B, evil=job("evil"))
    rig.say("pull_request", pull_request(A))
    rig.say("pull_request", pull_request(B, 13))
    assert rig.set(B).stage is Stage.AWAITING
    old, new = rig.fake.runs.values()
    assert (old["head_sha"], new["head_sha"]) == (A, B)
    press_old = check_run(old, "ada", "approve")
    rig.say("check_run", press_old)
    assert (rig.set(B).stage, rig.set(B).approved_by) == (Stage.AWAITING, "")
    press_old["check_run"]["head_sha"] = B  # a button of one commit's check that claims to be of another
    assert rig.say("check_run", press_old) == "ignored: this check is not, or no longer, ours"
    assert rig.set(B).stage is Stage.AWAITING
    assert not [each for each in rig.all_jobs() if each.request.tags["commit"] == B]


def test_another_apps_buttons_and_another_repositorys_are_not_ours(rig: Rig) -> None:
    rig.fake.repos[56] = Repo("oxide/other", 56, rights={"eve": "admin"})
    rig.say("pull_request", pull_request(A))
    asked = check_run(rig.fake.shown("penstock"), "ada", "approve", app=1)
    assert rig.say("check_run", asked) == "ignored: another App's"
    elsewhere = check_run(rig.fake.shown("penstock"), "eve", "approve")
    elsewhere["repository"] |= {"id": 56, "full_name": "oxide/other"}
    assert rig.say("check_run", elsewhere) == "ignored: nothing is known of this commit"
    assert rig.set().stage is Stage.AWAITING


@pytest.mark.parametrize(
    ("policy", "author", "sender", "runs", "outsider"),
    [
        ("", "ada", "", True, False),  # may write
        ("", "mem", "", True, False),  # a member of the organisation
        ("", "bob", "", False, True),  # may only read
        ("", "mem", "eve", False, True),  # a member's, that an outsider pushed to
        ("", "eve", "mem", False, True),  # an outsider's, that a member reopened
        ('allow_users = ["EVE"]', "eve", "", True, True),
        ('allow_users = ["eve"]', "eve", "ada", True, True),
        ('allow_users = ["eve"]', "eve", "dependabot[bot]", False, True),
        ('allow_users = ["dependabot[bot]"]', "dependabot[bot]", "", True, True),
        ('allow_users = ["ada"]', "ada", "mem", True, False),
        ("org_only = false", "mallory", "", True, True),
        ("org_only = false", "ada", "mem", True, False),
    ],
)
def test_whose_commits_are_run_at_once(
    rig: Rig, policy: str, author: str, sender: str, *, runs: bool, outsider: bool
) -> None:
    """Who is let run unasked does not belong to the repository for that."""
    rig.policy(f"enable = true\n{policy}")
    rig.say("pull_request", pull_request(A, author=author, sender=sender))
    assert (rig.set().stage, bool(rig.all_jobs())) == ((Stage.SUBMITTED, True) if runs else (Stage.AWAITING, False))
    assert rig.set().outsider is outsider


def test_who_brings_an_outsiders_commit_into_the_repository_answers_for_it(rig: Rig) -> None:
    rig.say("pull_request", pull_request(A))
    rig.say("push", push(A, "main", "eve"))
    assert rig.set().stage is Stage.AWAITING
    rig.say("push", push(A, "main", "ada"))
    assert rig.set().stage is Stage.SUBMITTED
    assert len(rig.all_jobs()) == 2


def test_approving_twice_or_what_needs_none_changes_nothing(rig: Rig) -> None:
    rig.say("pull_request", pull_request(A))
    press(rig, "penstock", "approve")
    assert press(rig, "penstock", "approve") == "ignored: nothing awaits approval"
    assert press(rig, "build", "approve") == "ignored: there is nothing to approve"
    assert len(rig.all_jobs()) == 2


def test_cancel_ends_a_job_and_those_that_wait_for_it(rig: Rig) -> None:
    rig.say("push", push(A))
    assert press(rig, "build", "cancel", "bob") == "ignored: bob may not write to oxide/hubris"
    assert press(rig, "build", "cancel") == "cancelled by ada"
    found = rig.jobs()
    assert (found["build"].end.outcome, found["test"].end.outcome) == (Outcome.CANCELLED, Outcome.FAILED)
    assert rig.fake.shown("build")["conclusion"] == "cancelled"
    assert press(rig, "build", "cancel") == "ignored: there is nothing to cancel"
    assert press(rig, "build", "explode") == "ignored: an unknown button"


@pytest.mark.parametrize("button", ["", "rerun"])
def test_a_re_run_runs_what_depends_on_it_as_well(rig: Rig, button: str) -> None:
    rig.commit(A, build=job("build"), test=job("test", "build"), last=job("last", "test"), other=job("other"))
    rig.say("push", push(A))
    first = rig.jobs()
    rig.hello(first["build"].id)
    rig.finish(first["build"].id)
    old = rig.fake.shown("build")
    assert press(rig, "build", button) == "3 to be run again"
    again = rig.jobs()
    assert {name for name in first if again[name].id != first[name].id} == {"build", "test", "last"}
    assert again["test"].request.dependencies[0].job == again["build"].id
    assert [each.end.outcome for each in rig.all_jobs() if each.id == first["last"].id] == [Outcome.CANCELLED]
    assert again["build"].state is State.ACQUIRING
    assert rig.fake.shown("build")["id"] != old["id"]
    assert rig.fake.shown("build")["status"] == "queued"
    assert len(rig.all_jobs()) == 7
    named = [run for run in rig.fake.runs.values() if run["name"] == "test"]
    assert [(run["status"], run.get("conclusion")) for run in named] == [("completed", "cancelled"), ("queued", None)]
    assert (named[0]["output"]["title"], old["conclusion"]) == ("Run again", "success")
    gone = rig.say("check_run", check_run(old, "ada", "cancel"))  # the button of a run that is over
    assert gone == "ignored: this check is not, or no longer, ours"
    assert press(rig, "test", button) == "2 to be run again"
    assert rig.jobs()["build"].id == again["build"].id


def test_a_re_run_of_all(rig: Rig) -> None:
    rig.say("push", push(A))
    first = rig.jobs()
    assert rig.say("check_suite", check_suite(A, "eve")) == "ignored: eve may not write to oxide/hubris"
    assert rig.say("check_suite", check_suite(A, "ada")) == "2 to be run again"
    assert not {each.id for each in first.values()} & {each.id for each in rig.jobs().values()}
    assert rig.say("check_suite", check_suite(B, "ada")) == "ignored: nothing is known of this commit"


def test_a_re_run_is_no_approval(rig: Rig) -> None:
    rig.say("pull_request", pull_request(A))
    assert press(rig, "penstock", "") == "0 to be run again"
    rig.say("check_suite", check_suite(A, "ada"))
    assert (rig.set().stage, rig.all_jobs()) == (Stage.AWAITING, [])


def test_what_was_refused_can_be_tried_again(rig: Rig) -> None:
    rig.commit(A, build=job("build", more='#: target = "lab"\n'), test=job("test", "build"))
    rig.say("push", push(A))
    assert not rig.all_jobs()
    users.change_privilege(rig.on, "oxide:hubris", "target.lab", grant=True)
    assert press(rig, "build", "rerun") == "2 to be run again"
    assert set(rig.jobs()) == {"build", "test"}


def test_what_is_wrong_with_a_policy_can_be_put_right_and_tried_again(rig: Rig) -> None:
    rig.policy("enable = yes")
    rig.say("push", push(A))
    assert rig.fake.shown("penstock")["conclusion"] == "failure"
    rig.policy("enable = true")
    press(rig, "penstock", "")
    assert rig.fake.shown("penstock")["conclusion"] == "success"
    assert len(rig.all_jobs()) == 2


def test_what_was_shown_of_an_earlier_run_ends_though_nothing_is_run_again_yet(rig: Rig) -> None:
    """Who dies between the two leaves a check run that nobody else would ever end."""
    rig.say("push", push(A))
    (old,) = [run for run in rig.fake.runs.values() if run["name"] == "test"]
    rig.hook("check_run", check_run(rig.fake.shown("build"), "ada", "rerun"))
    rig.step({"delivery": rig.id})
    (check,) = [row for name, row in rig.checks().items() if name == "test"]
    assert (check.job, check.past) == ("", (1,))
    rig.step({"check": check.id})
    assert (old["status"], old["conclusion"]) == ("completed", "cancelled")
    (check,) = [row for name, row in rig.checks().items() if name == "test"]
    assert (check.past, check.begun, check.due) == ((), False, None)
    rig.twin.run()
    assert rig.fake.shown("test")["status"] == "queued"


def test_a_check_run_of_an_earlier_run_of_which_nobody_knows_ends_as_well(rig: Rig) -> None:
    """GitHub made it, and whoever had it made died before noting that."""
    rig.say("push", push(A))
    was = rig.checks()["test"]
    assert rig.on.store.commit([Replace(was, replace(was, run_id=0, shown=""))])
    press(rig, "build", "rerun")
    assert [run.get("conclusion") for run in rig.fake.runs.values() if run["name"] == "test"] == ["cancelled", None]


def test_what_ended_stays_as_it_ended(rig: Rig) -> None:
    rig.say("push", push(A))
    rig.hello(rig.jobs()["build"].id)
    rig.finish(rig.jobs()["build"].id)
    assert rig.checks()["build"].over
    press(rig, "build", "rerun")
    assert rig.checks()["build"].past == ()
    assert [run.get("conclusion") for run in rig.fake.runs.values() if run["name"] == "build"] == ["success", None]


def test_who_dies_in_a_re_run_is_followed_by_one_who_goes_on(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check whose button it was is another run's only together with the set: who comes after finds it as it was."""
    rig.say("push", push(A))
    rig.hello(rig.jobs()["build"].id)
    rig.finish(rig.jobs()["build"].id)
    rig.hook("check_run", check_run(rig.fake.shown("build"), "ada", "rerun"))
    with monkeypatch.context() as patch:
        patch.setattr(commits, "_plan_again", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            rig.step({"delivery": rig.id})
    assert [(name, row.run) for name, row in rig.checks().items()] == [("build", 1), ("test", 2)]
    rig.step({"delivery": rig.id})
    rig.twin.run()
    assert [(name, row.run, bool(row.job)) for name, row in rig.checks().items()] == [
        ("build", 2, True),
        ("test", 2, True),
    ]


def test_a_job_that_was_not_recorded_is_run_again_as_well(rig: Rig) -> None:
    """Who submitted it died, or stands still, before its check says so."""
    rig.say("push", push(A))
    rig.hello(rig.jobs()["build"].id)
    rig.finish(rig.jobs()["build"].id)
    was, old = rig.checks()["test"], rig.jobs()["test"]
    assert rig.on.store.commit([Replace(was, replace(was, job=""))])
    assert press(rig, "build", "rerun") == "2 to be run again"
    assert rig.jobs()["test"].id != old.id
    assert [each.end.outcome for each in rig.all_jobs() if each.id == old.id] == [Outcome.CANCELLED]


def test_a_check_that_never_got_a_job_is_not_due_for_ever(rig: Rig) -> None:
    """Who was to submit it died, and then a newer commit took its place."""
    rig.say("push", push(A))
    was = rig.checks()["test"]
    assert rig.on.store.commit([Replace(was, replace(was, job="", run_id=0, due=rig.now()))])
    rig.step({"check": was.id})
    assert (rig.checks()["test"].due, rig.checks()["test"].busy) == (None, None)
