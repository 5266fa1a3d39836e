"""The front end for GitHub: what is heard, what policy lets happen, and what is shown."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from penstock.domain.artifacts.artifacts import Artifact
from penstock.domain.github import checks, commits, deliveries, policy, tokens
from penstock.domain.github.checks import Annotation, CheckRun
from penstock.domain.github.commits import CheckSet, Stage, Tip
from penstock.domain.github.deliveries import Delivery, Event, ListCheck, Malformed, Pause, Payload
from penstock.domain.github.policy import Policy
from penstock.domain.jobfile import Problem
from penstock.domain.jobs.jobs import Job, JobLimits, Outcome, Report, Request, Result, State, Times
from penstock.domain.jobs.reviews import Review
from penstock.domain.jobs.store import Value
from penstock.domain.site import parse
from penstock.domain.site.site import GitHubApp, Site
from penstock.kernel.errors import Fault

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
A = "a" * 40
EVENT = Event("push", "", 0, 99, "oxide/hubris", 55, "ada", A, "heads/main", "main", people=("ada",))
SET = commits.new_set(EVENT, NOW)
JOB = Job(
    id="J",
    name="build",
    owner="oxide:hubris",
    request=Request(target="t", target_resolved="t", needs=()),
    state=State.QUEUED,
    times=Times(NOW),
    limits=JobLimits(timeout=60, queue_seconds=60, grace=1),
)


def payload(**more: Any) -> dict[str, Any]:
    return {
        "ref": "refs/heads/main", "after": A, "repository": {"id": 55, "full_name": "Oxide/Hubris", "private": False},
        "sender": {"login": "ada"}, "installation": {"id": 99}, **more,
    }  # fmt: skip


def test_a_push() -> None:
    assert deliveries.read("push", payload(deleted=False)) == EVENT
    assert deliveries.read("push", payload(deleted=True)) is None
    assert deliveries.read("push", payload(ref="refs/tags/v1")) is None
    assert deliveries.read("push", payload(after="b" * 64)) == replace(EVENT, sha="b" * 64)
    for ref in ("refs/heads/", "refs/heads/a b", "refs/heads/a\n", "refs/heads/" + "x" * 256):
        with pytest.raises(Malformed):
            deliveries.read("push", payload(ref=ref))


def test_a_pull_request_is_the_work_of_all_who_touched_it() -> None:
    pull = {"number": 12, "user": {"login": "eve"}, "head": {"sha": A}}
    found = deliveries.read("pull_request", payload(action="synchronize", pull_request=pull))
    assert found is not None
    assert (found.line, found.number, found.people, found.branch) == ("pull/12", 12, ("ada", "eve"), "")
    assert deliveries.read("pull_request", payload(action="closed")) is None


def test_buttons() -> None:
    run = {"app": {"id": 7}, "head_sha": A, "external_id": "55/x/0/1"}
    again = deliveries.read("check_run", payload(action="rerequested", check_run=run))
    assert again is not None
    assert (again.asked, again.check, again.app, again.line) == ("rerun", "55/x/0/1", 7, "")
    more = {"requested_action": {"identifier": "approve"}}
    asked = deliveries.read("check_run", payload(action="requested_action", check_run=run, **more))
    assert asked is not None
    assert asked.asked == "approve"
    suite = {"app": {"id": 7}, "head_sha": A}
    all_ = deliveries.read("check_suite", payload(action="rerequested", check_suite=suite))
    assert all_ is not None
    assert (all_.asked, all_.sha, all_.check) == ("rerun", A, "")


@pytest.mark.parametrize("id", [0, -1, 1.5, True, "1", None, 2**53])
def test_numbers_of_githubs(id: Any) -> None:
    with pytest.raises(Malformed, match="is no number of GitHub"):
        deliveries.read("push", payload(installation={"id": id}))
    largest = deliveries.read("push", payload(installation={"id": 2**53 - 1}))
    assert largest is not None


def test_what_is_not_text_or_looks_wrong_says_where() -> None:
    with pytest.raises(Malformed, match="is no text"):
        deliveries.read("push", payload(sender=[]))
    with pytest.raises(Malformed, match="does not look"):
        deliveries.read("push", payload(repository={"id": 55, "full_name": "../../x"}))
    assert deliveries.is_id("a-1")
    assert not deliveries.is_id("a#1")
    assert not deliveries.is_relevant("star", "created")


def test_where_rows_are_and_how_long_they_are_known() -> None:
    row = Delivery(id="d", name="push", action="", event=EVENT, received=NOW, due=LATER)
    assert (row.key.pk, row.key.sk, row.deadline, row.expiry) == (
        "delivery#d",
        "delivery",
        LATER,
        NOW + deliveries.KEPT_FOR,
    )
    assert row.place.name == "deliveries"
    assert (SET.key.sk, SET.deadline, SET.expiry, SET.owner) == (
        "checkset",
        NOW,
        NOW + commits.KEPT_FOR,
        "oxide:hubris",
    )
    assert SET.place.sort.endswith(f".{A}.55")
    tip = Tip(repository_id=55, line="heads/main", sha=A, since=NOW)
    assert (tip.key.sk, tip.expiry) == ("tip#heads/main", NOW + commits.KEPT_FOR)
    check = checks.new_check(SET, 3, "build", (), NOW)
    assert (check.key.sk, check.deadline, check.expiry) == ("check#003", NOW, NOW + commits.KEPT_FOR)
    assert checks.key_of(check.external_id) == checks.key_of(check.id) == check.key
    assert (ListCheck(at=NOW).key.sk, Pause(installation=9, until=LATER).key.sk) == ("look", "pause#9")
    assert Pause(installation=9, until=LATER).expiry == LATER


def test_policy() -> None:
    assert policy.parse("enable = true") == Policy(enable=True)
    assert policy.parse("enable = true\nsomething = 'else'\n[more]\nx = 1") == Policy(enable=True)
    whole = 'enable = true\norg_only = false\nallow_users = ["a"]\nsupersede = "all"\n[permissions]\nissues = "write"'
    assert policy.parse(whole) == Policy(True, False, ("a",), "all", {"issues": "write"})
    for text, line in (
        ("enable = 1", 1),
        ("enable", 1),
        ('\nallow_users = ["a b"]', 2),
        ('supersede = "x"', 1),
        ('[permissions]\nchecks = "write"', 2),
        ('[permissions]\nissues = "admin"', 2),
        ("permissions = 7", 1),
        ('trusted_refs = ["main"]', 1),
        ('trusted_refs = ["refs/heads/ma?n"]', 1),
    ):
        found = policy.parse(text)
        assert isinstance(found, tuple), text
        assert (found[0].line, found[0].file) == (line, policy.PATH)


def test_what_policy_lets_happen() -> None:
    assert not Policy().lets("ada")
    assert Policy(org_only=False).lets("ada")
    assert Policy(allow_users=("Ada",)).lets("aDa")
    by = {name: Policy(supersede=name) for name in ("none", "pull-requests", "all")}
    assert [by[name].supersedes("pull/1") for name in by] == [False, True, True]
    assert [by[name].supersedes("heads/pull/1") for name in by] == [False, False, True]
    some = Policy(permissions={"contents": "write"})
    assert some.granted(outsider=False) == {"contents": "write"}
    assert some.granted(outsider=True) == {"contents": "read"}


def test_which_refs_a_repository_trusts() -> None:
    some = policy.parse('trusted_refs = ["refs/heads/main", "refs/heads/release/*"]')
    assert isinstance(some, Policy)
    lines = ("heads/main", "heads/release/1/b", "heads/mainly", "heads/a/main", "heads/Main", "pull/1")
    assert [some.trusts(line) for line in lines] == [True, True, False, False, False, False]
    assert [Policy().trusts(line) for line in lines] == [True] * len(lines)
    assert not Policy(trusted_refs=()).trusts("heads/main")


def test_a_commit_comes_from_a_line_that_is_trusted_if_it_ends_one() -> None:
    """SEC-2: its jobs are told of a branch only if that ends with the commit now."""
    only_main, only_pulls = Policy(trusted_refs=("refs/heads/main",)), Policy(trusted_refs=("refs/pull/*",))
    patch = replace(SET, branch="patch", number=12, lines=("heads/patch", "pull/9", "heads/main"))
    moved = commits.to_trusted_line(patch, only_main)
    assert (moved.branch, moved.number, moved.line) == ("main", 0, "heads/main")
    assert commits.to_trusted_line(moved, only_main) is moved
    pulled = commits.to_trusted_line(patch, only_pulls)
    assert (pulled.branch, pulled.number, pulled.line) == ("", 9, "pull/9")
    assert commits.to_trusted_line(patch, Policy()) is patch
    gone = replace(patch, lines=("heads/patch",), left=("heads/main",))
    assert commits.to_trusted_line(gone, only_main) is gone


def test_a_commit_whose_jobs_were_not_trusted_is_due_when_it_ends_another_line() -> None:
    ran = replace(SET, outsider=True, stage=Stage.SUBMITTED, due=None)
    assert commits.update_line(ran, "heads/main", LATER, is_tip=True).due == LATER
    assert commits.update_line(ran, "heads/main", LATER, is_tip=False).due == LATER
    for other in (replace(ran, outsider=False), replace(ran, stage=Stage.AWAITING), replace(ran, stage=Stage.SETTLED)):
        assert commits.update_line(other, "heads/main", LATER, is_tip=True).due is None


def test_a_check_that_waits_for_a_limit_says_so_until_a_newer_commit_comes() -> None:
    new = checks.new_check(SET, 1, "build", (), NOW)
    waits = checks.postponed(new, "the limit is 1", LATER)
    assert (waits.waits, waits.due, waits.job) == (True, LATER, "")
    shown = checks.postponed_output(waits.told, superseded=False)
    assert (shown["status"], shown["actions"]) == ("queued", [])
    assert shown["output"]["summary"] == "the limit is 1. The job is submitted as soon as the limit allows it."
    over = checks.postponed_output(waits.told, superseded=True)
    assert (over["status"], over["conclusion"], over["actions"]) == ("completed", "cancelled", [checks.RERUN])
    later = (checks.submitted(waits, "J1", NOW), checks.refused(waits, "no", NOW), checks.rerun(waits, NOW))
    assert [(each.waits, each.told) for each in later] == [(False, ""), (False, "no"), (False, "")]


def test_lines_come_and_go() -> None:
    one = commits.update_line(SET, "heads/main", NOW, is_tip=True)
    assert one.lines == ("heads/main",)
    assert commits.update_line(one, "heads/main", NOW, is_tip=True) is one
    assert commits.update_line(one, "heads/main", NOW, is_tip=False).lines == ()
    two = replace(commits.update_line(one, "pull/1", NOW, is_tip=True), due=None, stage=Stage.SUBMITTED)
    less = commits.remove_line(two, "pull/1", LATER)
    assert (less.lines, less.left, less.due) == (("heads/main",), ("pull/1",), None)
    none = commits.remove_line(less, "heads/main", LATER)
    assert (none.lines, none.left, none.due) == ((), ("pull/1", "heads/main"), LATER)
    assert commits.remove_line(none, "heads/main", LATER).left == none.left
    back = commits.update_line(none, "pull/1", LATER, is_tip=True)
    assert (back.lines, back.left) == (("pull/1",), ("heads/main",))
    assert commits.update_line(SET, "pull/1", LATER, is_tip=False).left == ("pull/1",)
    for stage in (Stage.SETTLED, Stage.SUPERSEDED):
        assert commits.remove_line(replace(one, stage=stage, due=None), "heads/main", LATER).due is None
    assert commits.is_obsolete(none, Policy())
    assert not commits.is_obsolete(back, Policy(supersede="all"))
    assert not commits.is_obsolete(SET, Policy())


def test_who_brought_a_commit() -> None:
    assert commits.add_people(SET, ("ada",), LATER) is SET
    assert commits.add_people(SET, (), LATER) is SET
    more = commits.add_people(SET, ("eve",), LATER)
    assert (more.people, more.stage, more.due) == ((("ada",), ("eve",)), Stage.PLANNED, NOW)
    awaits = commits.move_to(SET, Stage.AWAITING, "why", outsider=True)
    assert (awaits.due, awaits.outsider, awaits.why) == (None, True, "why")
    again = commits.add_people(replace(awaits, tries=3), ("eve",), LATER)
    assert (again.stage, again.due, again.tries) == (Stage.PLANNED, LATER, 0)
    full = replace(SET, people=tuple((str(n),) for n in range(commits.MAX_PEOPLE)))
    assert commits.add_people(full, ("eve",), LATER) is full
    assert commits.add_people(replace(full, people=full.people[1:]), ("eve",), LATER) is not full


def test_approval_and_re_runs() -> None:
    awaits = commits.move_to(SET, Stage.AWAITING, "why")
    let = commits.approve(replace(awaits, tries=3), "ada", LATER)
    assert (let.stage, let.approved_by, let.due, let.why, let.tries) == (Stage.PLANNED, "ada", LATER, "", 0)
    assert commits.approve(let, "bob", LATER) is let
    assert commits.plan_again(awaits, LATER) is awaits
    old = replace(commits.move_to(SET, Stage.SUPERSEDED, "old"), left=("pull/1",), tries=3)
    anew = commits.plan_again(old, LATER)
    assert (anew.stage, anew.left, anew.due, anew.tries) == (Stage.PLANNED, (), LATER, 0)
    assert commits.move_to(replace(SET, outsider=True, tries=3), Stage.SUBMITTED).outsider
    assert commits.move_to(replace(SET, tries=3), Stage.SUBMITTED).tries == 0
    assert [commits.pause(tries) for tries in (0, 1, 4, 5, 99)] == [
        timedelta(minutes=minutes) for minutes in (1, 2, 16, 30, 30)
    ]


def check(number: int, name: str, *needs: str) -> CheckRun:
    return checks.new_check(SET, number, name, needs, NOW)


def test_what_is_behind_a_check() -> None:
    rows = [check(1, "a"), check(2, "b", "a"), check(3, "c", "b"), check(4, "d"), check(5, "e", "d", "a")]
    assert [each.name for each in checks.with_dependents(rows, rows[0])] == ["a", "b", "c", "e"]
    assert [each.name for each in checks.with_dependents(rows, rows[2])] == ["c"]
    assert [each.name for each in checks.with_dependents(rows, rows[3])] == ["d", "e"]


def test_a_check_and_its_runs() -> None:
    done = replace(checks.submitted(check(1, "a"), "J", LATER), run_id=9, shown="x", begun=True, tries=2, due=None)
    again = checks.rerun(done, LATER)
    assert (again.run, again.job, again.run_id, again.begun, again.due) == (2, "", 0, False, LATER)
    assert (again.shown, again.told, again.annotations, again.tries) == ("", "", (), 0)
    assert again.external_id != done.external_id
    assert checks.submit_key(again) != checks.submit_key(done)
    assert checks.submit_key(check(1, "b")) != checks.submit_key(check(1, "a"))
    assert len(checks.submit_key(replace(done, sha="b" * 64, repository_id=2**53))) <= 255
    assert [len(checks.own_key(one)) for one in (done, again)] == [256, 256], "no caller of the API can send it"
    assert checks.own_key(again) != checks.own_key(done)
    no = checks.refused(done, "why", LATER, [Annotation("p", 1, 1, "m")])
    assert (no.told, no.annotations, no.due) == ("why", (Annotation("p", 1, 1, "m"),), LATER)
    assert checks.submitted(no, "K", LATER).told == ""


def test_what_a_jobs_check_says() -> None:
    said = checks.job_output(JOB, [], [], "https://x")
    assert (said["status"], said["output"]["title"], said["actions"]) == ("queued", "Queued", [checks.CANCEL])
    assert "conclusion" not in said
    runs = replace(JOB, state=State.RUNNING, times=replace(JOB.times, started=LATER))
    said = checks.job_output(runs, [], [], "https://x")
    assert (said["status"], said["started_at"]) == ("in_progress", "2026-01-01T01:00:00Z")
    ended = replace(
        runs, state=State.SETTLED, end=replace(runs.end, outcome=Outcome.FAILED, reason="it <b>said</b> @oxide/all so")
    )
    said = checks.job_output(ended, [], [], "https://x")
    assert (said["status"], said["conclusion"], said["actions"]) == ("completed", "failure", [checks.RERUN])
    assert "completed_at" not in said
    assert "\\<b\\>said\\</b\\> @\u200boxide/all" in said["output"]["summary"]
    done = checks.job_output(replace(ended, times=replace(runs.times, settled=LATER)), [], [], "https://x")
    assert done["completed_at"] == "2026-01-01T01:00:00Z"


def test_a_check_says_who_may_approve_and_has_the_button_until_somebody_did() -> None:
    waits = replace(JOB, state=State.WAITING, review=Review("production", LATER))
    said = checks.job_output(waits, [], [], "https://x", "bert or octo_cat at GitHub")
    assert (said["status"], said["output"]["title"]) == ("queued", "Waiting for a review")
    assert said["actions"] == [checks.REVIEW, checks.CANCEL]
    asked = "Waits until bert or octo\\_cat at GitHub approves it for the environment production."
    assert asked in said["output"]["summary"]
    gone = checks.job_output(waits, [], [], "https://x")
    assert "the environment production is gone." in gone["output"]["summary"]
    done = checks.job_output(replace(waits, review=Review("production", LATER, by="bert")), [], [], "https://x")
    assert (done["output"]["title"], done["actions"]) == ("Waiting for other jobs", [checks.CANCEL])


@pytest.mark.parametrize(
    ("outcome", "result", "says"),
    [
        (Outcome.SUCCEEDED, Result.SUCCEEDED, "success"),
        (Outcome.FAILED, Result.FAILED, "failure"),
        (Outcome.FAILED, Result.TIMED_OUT, "timed_out"),
        (Outcome.CANCELLED, Result.TIMED_OUT, "cancelled"),
        (Outcome.ERRORED, None, "failure"),
        (Outcome.FAILED, None, "failure"),
        (None, None, "neutral"),
    ],
)
def test_conclusions(outcome: Outcome | None, result: Result | None, says: str) -> None:
    report = Report(result, "why", NOW) if result else None
    assert (
        checks.conclusion(replace(JOB, end=replace(JOB.end, outcome=outcome), run=replace(JOB.run, report=report)))
        == says
    )


def test_the_last_lines_can_do_nothing() -> None:
    lines = [f"line {number}" for number in range(30)]
    assert checks.tail(lines).splitlines() == [f"    line {number}" for number in range(10, 30)]
    assert checks.tail(["x" * 100]) == "    " + "x" * 90 + "\n"
    assert checks.tail(["\x1b[1;31mred\x1b[0m\x07\r\n# <img>"]) == "    red# <img>\n"
    assert checks.tail([]) == ""


def test_outputs_are_listed_and_only_so_many() -> None:
    some = [Artifact(id=f"{n}.J", attempt=1, path=f"/a_{n}", size=n, sha256="", by="ada", time=NOW) for n in range(27)]
    summary = checks.job_output(JOB, [], some, "https://x")["output"]["summary"]
    assert "- [/a\\_0](https://x/jobs/J) (0 bytes)" in summary
    assert (summary.count("- ["), summary.splitlines()[-1]) == (25, "- and 2 more")
    assert "more" not in checks.job_output(JOB, [], some[:25], "https://x")["output"]["summary"]


def test_details_lead_to_the_job_in_the_console() -> None:
    assert checks.job_output(JOB, [], [], "https://x")["details_url"] == "https://x/jobs/J"


def test_what_a_check_without_a_job_says() -> None:
    notes = [Annotation("a.sh", 3, 4, "it is *wrong*")]
    said = checks.message_output("cannot be", notes, approval=False)
    assert (said["conclusion"], said["actions"]) == ("failure", [checks.RERUN])
    assert said["output"]["summary"] == "cannot be\n\n- a.sh:3:4: it is \\*wrong\\*"
    assert said["output"]["annotations"][0]["start_line"] == 3
    asks = checks.message_output("please", (), approval=True)
    assert (asks["conclusion"], asks["actions"], asks["output"]["summary"]) == (
        "action_required",
        [checks.APPROVE],
        "please",
    )
    assert checks.annotation(Problem("a", 1, 2, "m", "do")) == Annotation("a", 1, 2, "m (do)")
    assert checks.annotation(Fault("m"), "p") == Annotation("p", 1, 1, "m")


def test_when_a_check_is_looked_at_again() -> None:
    def after(minutes: float) -> float:
        now = NOW + timedelta(minutes=minutes)
        due = checks.next_check(JOB, now)
        assert due is not None
        return (due - now).total_seconds() / 60

    assert [after(minutes) for minutes in (0, 10, 30, 100, 1000)] == [1, 1, 3, 10, 10]
    assert checks.next_check(replace(JOB, state=State.SETTLED), NOW) is None


def test_tokens_age() -> None:
    value = Value(job="J", name=tokens.NAME, sealed="x", by=tokens.BY, time=NOW)
    ages = (0, 29, 30, 54, 55)
    assert [tokens.is_fresh(value, NOW + timedelta(minutes=age)) for age in ages] == [True, True, False, False, False]
    assert [tokens.is_expired(value, NOW + timedelta(minutes=age)) for age in ages] == [
        False,
        False,
        False,
        False,
        True,
    ]
    assert not tokens.is_fresh(None, NOW)
    assert not tokens.is_expired(None, NOW)
    mine = replace(value, by="ada")
    assert tokens.is_fresh(mine, NOW + timedelta(days=1))
    assert not tokens.is_expired(mine, NOW + timedelta(days=1))


def test_a_token_that_is_to_be_revoked() -> None:
    row = tokens.Minted(job="J", id="T", installation=9, sealed="x", made=NOW, due=NOW)
    assert (row.key, row.deadline, row.expiry) == (tokens.minted_key("J", "T"), NOW, NOW + timedelta(hours=2))
    assert tokens.sealed_as("J", "T") != tokens.sealed_as("J", "U") != tokens.sealed_as("K", "T")
    assert [tokens.is_dead(row, NOW + timedelta(minutes=age)) for age in (0, 59, 60)] == [False, False, True]
    assert tokens.recheck(row, NOW) == replace(row, due=NOW + tokens.RECHECK_INTERVAL)
    again = tokens.count_try(tokens.count_try(row, NOW), NOW)
    assert (again.tries, again.due) == (2, NOW + timedelta(minutes=2))


def test_runs_whose_check_run_has_not_ended_are_remembered() -> None:
    first = check(1, "build")
    assert checks.rerun(first, NOW).past == ()
    shown = replace(first, begun=True, run_id=7)
    second = checks.rerun(shown, NOW)
    assert (second.past, second.over, second.begun) == ((1,), False, False)
    assert (second.external_id, second.external_id_of(1)) == (f"{second.id}/2", shown.external_id)
    assert checks.rerun(replace(second, begun=True), NOW).past == (1, 2)
    assert checks.rerun(replace(second, begun=True, over=True), NOW).past == (1,)
    ended = checks.rerun(replace(shown, over=True), NOW)
    assert (ended.past, ended.over) == ((), False)


def test_how_far_back_one_looks() -> None:
    assert deliveries.since(None, NOW) == NOW - timedelta(days=3)
    assert deliveries.since(ListCheck(at=NOW - timedelta(minutes=5)), NOW) == NOW - timedelta(minutes=65)
    assert deliveries.since(ListCheck(at=NOW - timedelta(days=9)), NOW) == NOW - timedelta(days=3)


def test_the_sites_app() -> None:
    found = parse.parse('[github]\napp = 12\nrepositories = ["Oxide/Hubris", "acme/*"]', "site.toml")
    assert isinstance(found, Site)
    assert found.github == GitHubApp(12, ("oxide/hubris", "acme/*"))
    serves = found.github.serves
    assert [serves(each) for each in ("oxide/hubris", "oxide/other", "acme/x", "acme2/x")] == [True, False, True, False]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("app = 0\nrepositories = []", "must be from 1"),
        ("app = 1", "no `repositories`"),
        ('app = 1\nrepositories = ["hubris"]', "is not a repository"),
        ('app = 1\nrepositories = []\napi = "http://example.com"', "is not the URL of an API"),
        ('app = 1\nrepositories = []\napi = ""', "is empty"),
        ("app = 1\nrepositories = []\nkey = 1", "unknown key"),
    ],
)
def test_what_is_no_app(text: str, says: str) -> None:
    found = parse.parse(f"[github]\n{text}", "site.toml")
    assert isinstance(found, tuple)
    assert says in found[0].message


@pytest.mark.parametrize("api", ["https://github.example.com/api/v3", "http://127.0.0.1:8080", "https://x:8443"])
def test_other_apis(api: str) -> None:
    found = parse.parse(f'[github]\napp = 1\nrepositories = []\napi = "{api}"', "site.toml")
    assert isinstance(found, Site)
    assert found.github is not None
    assert found.github.api == api


def test_rows_are_what_they_seem() -> None:
    assert isinstance(SET, CheckSet)
    assert (SET.stage, SET.people, SET.branch, SET.number) == (Stage.PLANNED, (("ada",),), "main", 0)


def test_a_payload_is_remembered_by_its_content() -> None:
    digest = deliveries.digest_of({"a": 1, "b": [2]})
    assert digest == deliveries.digest_of({"b": [2], "a": 1})
    assert digest != deliveries.digest_of({"b": [2], "a": 2})
    now = datetime(2026, 1, 1, tzinfo=UTC)
    row = Payload(digest=digest, delivery="d-1", received=now)
    assert row.key == deliveries.payload_key(digest)
    assert row.key != deliveries.payload_key("other")
    assert row.expiry == now + deliveries.REMEMBERED_FOR


def test_a_payload_that_is_nested_too_deeply_is_malformed() -> None:
    nested: dict[str, Any] = {}
    for _ in range(100_000):
        nested = {"a": nested}
    with pytest.raises(Malformed, match="nested too deeply"):
        deliveries.digest_of(nested)
    while nested:
        nested = nested["a"]  # one level at a time, since freeing all at once recurses as well


def test_whose_commit_it_is_stays_until_it_is_found_out_anew() -> None:
    strange = commits.move_to(SET, Stage.AWAITING, "why", outsider=True)
    assert commits.move_to(strange, Stage.SETTLED).outsider is True
    assert commits.move_to(strange, Stage.SUBMITTED, outsider=False).outsider is False
    assert commits.move_to(SET, Stage.SETTLED).outsider is False


def test_what_is_said_of_where_a_commits_jobs_come_from() -> None:
    """Of one that is on a branch that, and of all others that they came with a pull request."""
    on_branch, of_pull = replace(SET, branch="main", number=0), replace(SET, branch="", number=12, outsider=True)
    pushed, pulled = commits.provenance(on_branch, "c"), commits.provenance(of_pull, "d")
    assert pushed.vouched == {"ref": "refs/heads/main", "event_name": "push", "sha": SET.sha}
    assert pulled.vouched == {"event_name": "pull_request", "sha": SET.sha, "pull_request": "12"}
    assert (pushed.check, pushed.outsider, pulled.check, pulled.outsider) == ("c", False, "d", True)
