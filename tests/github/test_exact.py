"""What each condition of the front end is there for: the case that only it tells from the others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from penstock.aws.github import EXPIRY_MARGIN
from penstock.domain.commands import SubmitJob
from penstock.domain.github.checks import CONTROL, CONTROL_NAME, Annotation, CheckRun
from penstock.domain.github.commits import Stage
from penstock.domain.github.deliveries import BODY_BYTES
from penstock.domain.jobfile import Problem
from penstock.domain.jobfile.sets import Unfit
from penstock.domain.jobs.jobs import Job
from penstock.domain.jobs.store import Value, value_key
from penstock.domain.published import ALL_SERIES, Access, Series, series_key
from penstock.kernel.errors import Refused
from penstock.kernel.rows import Delete, Replace
from penstock.ports import GitHubRequest, GitHubResponse, TokenScope
from penstock.usecases import published
from penstock.usecases.github import client, commits, hints, tokens, webhook
from penstock.usecases.github.webhook import WebhookRequest
from penstock.usecases.jobs import submit
from penstock.usecases.site import apply
from tests.github.fake import INSTALLATION, signature
from tests.github.payloads import check_run, pull_request, push
from tests.github.rig import CONFIG, JOBS, SECRET, SITE, A, Rig, job
from tests.github.tokens import ask
from tests.github.tokens import running as running_job
from tests.usecases.races import before_the_next_commit


def gone(rig: Rig, row: Any) -> None:
    fresh = rig.on.store.get(row.key, type(row))
    assert fresh is not None
    assert rig.on.store.commit([Delete(fresh)])


# GITHUB_TOKEN


def test_only_the_token_of_a_check_is_hinted_at(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = running_job(rig)
    by_hand = submit.submit(rig.on, rig.user, SubmitJob("#!/bin/sh\n"), None)
    other = next(each for each in rig.all_jobs() if each.id == by_hand)
    hinted: list[Any] = []
    monkeypatch.setattr(hints, "send", lambda on, message: hinted.append(message))
    tokens.request(rig.on, mine, "OTHER")
    tokens.request(rig.on, other, "GITHUB_TOKEN")
    assert hinted == []
    tokens.request(rig.on, mine, "GITHUB_TOKEN")
    assert hinted == [{"token": mine.id}]
    tokens.mint(rig.on, mine.id)
    tokens.request(rig.on, mine, "GITHUB_TOKEN")
    assert len(hinted) == 1, "it is fresh"


def test_a_token_that_was_made_meanwhile_is_not_taken_away(rig: Rig) -> None:
    mine = running_job(rig)
    assert ask(rig, mine)
    rig.twin.pass_time(56 * 60)
    before_the_next_commit(rig.twin, lambda: tokens.mint(rig.on, mine.id))
    tokens.request(rig.on, mine, "GITHUB_TOKEN")
    assert rig.on.store.get(value_key(mine.id, "GITHUB_TOKEN"), Value)


@pytest.mark.parametrize("what", ["check", "set"])
def test_who_has_no_check_or_no_commit_any_more_gets_none(rig: Rig, what: str) -> None:
    mine = running_job(rig)
    gone(rig, rig.checks()["build"] if what == "check" else rig.set())
    assert not tokens.mint(rig.on, mine.id)


def no_policy(rig: Rig) -> None:
    del rig.repo.files["main"][CONFIG]


def not_served(rig: Rig) -> None:
    text = SITE.replace("oxide/*", "others/*").format(app=client.app(rig.on).app, url=rig.fake.url)
    apply.apply(rig.on, "root", text, "site.toml")


@pytest.mark.parametrize("change", [no_policy, not_served])
def test_who_may_have_none_is_given_an_empty_one(
    rig: Rig, change: Callable[[Rig], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = running_job(rig)
    change(rig)
    put: list[Any] = []
    monkeypatch.setattr(tokens.store, "put", lambda *given: put.append(given))
    assert not tokens.mint(rig.on, mine.id)
    assert [each[2].text for each in put] == [""]


# What GitHub is asked


def test_githubs_refusal_of_a_token_is_reported_unchanged(rig: Rig) -> None:
    app = client.app(rig.on)
    scope = TokenScope(INSTALLATION, 55, {"packages": "write"})
    assert rig.forge.call(app, GitHubRequest("GET", "/repositories/55", scope)).status == 422


def test_a_token_is_made_anew_while_the_old_one_is_good_for_a_while(rig: Rig) -> None:
    app, scope = client.app(rig.on), TokenScope(INSTALLATION, 55, {"contents": "read"})
    rig.forge.call(app, GitHubRequest("GET", "/repositories/55", scope))
    before = len(rig.fake.tokens)
    ((_, until),) = (each for each in rig.forge._tokens.values())
    for left, more in ((EXPIRY_MARGIN + 1, 0), (EXPIRY_MARGIN, 1)):
        rig.twin.pass_time((until - rig.now()).total_seconds() - left)
        rig.forge.call(app, GitHubRequest("GET", "/repositories/55", scope))
        assert len(rig.fake.tokens) == before + more


def test_only_an_answer_of_200_says_who_may_write(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    of = client.Repository(1, 55, "oxide/hubris")
    for status, may in ((404, False), (200, True)):
        monkeypatch.setattr(
            client, "call", lambda on, ask, status=status: GitHubResponse(status, {"permission": "admin"})
        )
        assert client.may_write(rig.on, of, "eve") is may


def test_a_body_may_be_as_big_as_that_and_no_bigger(rig: Rig) -> None:
    for size, status in ((BODY_BYTES, 400), (BODY_BYTES + 1, 413)):
        body = b"x" * size
        with pytest.raises(Refused) as error:
            webhook.receive(rig.on, WebhookRequest(body, signature(SECRET, body), "d-1", "push"))
        assert error.value.status == status


# A commit's jobs


def planned(rig: Rig) -> list[Any]:
    """The jobs of a commit that was planned and is to be submitted, with what was submitted of it taken note of."""
    rig.say("push", push(A))
    seen: list[Any] = []
    submit = commits.submit

    def noting(on: Any, found: Any, members: Any, others: Any, **more: Any) -> None:
        seen.append(members)
        submit(on, found, members, others, **more)

    commits.submit = noting
    try:
        commits.run_again(rig.on, rig.set())
        rig.twin.run()
    finally:
        commits.submit = submit
    return list(seen[-1])


def test_a_job_may_be_called_like_the_check_of_the_commit(rig: Rig) -> None:
    """That check is there: it is where an outsider's commit was approved."""
    rig.commit(A, odd=job(CONTROL_NAME))
    rig.say("pull_request", pull_request(A))
    rig.say("check_run", check_run(rig.fake.shown(CONTROL_NAME), "ada", "approve"))
    assert [each.name for each in rig.all_jobs()] == [CONTROL_NAME]
    rows = rig.on.store.find(rig.set().key.pk, "check#", CheckRun)
    assert [(row.number, bool(row.job)) for row in rows] == [(CONTROL, False), (CONTROL + 1, True)]


def test_what_was_noted_is_not_noted_again(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that was accepted, and one that was refused: whoever goes on after a death leaves both as they are."""
    rig.commit(A, build=job("build"), bad=job("bad", more='#: target = "nowhere"\n'))
    members = planned(rig)
    checks = rig.checks()
    assert checks["build"].job
    assert checks["bad"].told
    submitted: list[Any] = []
    monkeypatch.setattr(submit, "submit", lambda *given, **more: submitted.append(given))
    commits.submit(rig.on, rig.set(), members, {}, outsider=False)
    assert submitted == []
    assert rig.checks() == checks


UNFIT = Unfit("odd", f"{JOBS}/odd.sh", (Problem(f"{JOBS}/odd.sh", 3, 4, "this is wrong"),) * 60)


def test_a_file_that_was_noted_as_wrong_is_not_noted_again(rig: Rig) -> None:
    members = planned(rig)
    commits.submit(rig.on, rig.set(), members, {}, unfit=[UNFIT], outsider=False)
    checks = rig.checks()
    assert (checks["odd"].told, checks["odd"].job) == (f"{UNFIT.path} cannot be run", "")
    assert checks["odd"].annotations == (Annotation(UNFIT.path, 3, 4, "this is wrong"),) * 50
    commits.submit(rig.on, rig.set(), members, {}, unfit=[UNFIT], outsider=False)
    assert rig.checks() == checks


def test_nothing_of_a_set_that_has_changed_meanwhile_is_submitted(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither is a file noted as wrong, nor a job submitted whose check is there."""
    members = planned(rig)
    build = rig.checks()["build"]
    assert rig.on.store.commit([Replace(build, replace(build, job=""))])
    submitted: list[Any] = []
    monkeypatch.setattr(submit, "submit", lambda *given, **more: submitted.append(given))
    old = replace(rig.set(), version=rig.set().version - 1)
    commits.submit(rig.on, old, members, {}, unfit=[UNFIT], outsider=False)
    assert submitted == []
    assert set(rig.checks()) == {"build", "test"}


def test_a_set_that_was_superseded_while_it_was_submitted_stays_so_and_its_jobs_end(rig: Rig) -> None:
    members = planned(rig)
    found = rig.set()

    def superseded() -> None:
        fresh = rig.set()
        assert rig.on.store.commit([Replace(fresh, replace(fresh, stage=Stage.SUPERSEDED))])

    before_the_next_commit(rig.twin, superseded)
    commits.submit(rig.on, found, members, {}, outsider=False)
    rig.twin.run()
    assert rig.set().stage is Stage.SUPERSEDED
    left: list[Job] = [each for each in rig.jobs().values() if not (each.is_settled or each.cancellation.cancelled_by)]
    assert left == []


# What a repository publishes


def said(rig: Rig) -> Series | None:
    return rig.on.store.get(series_key("oxide:hubris", ALL_SERIES), Series)


@pytest.mark.parametrize(("private", "access"), [(False, None), (True, Access.PRIVATE), (None, Access.PRIVATE)])
def test_what_a_private_repository_publishes_is_private(rig: Rig, private: bool | None, access: Access | None) -> None:
    """SEC-2: also where GitHub does not say."""
    payload = push(A)
    del payload["repository"]["private"]
    if private is not None:
        payload["repository"]["private"] = private
    for _ in range(2):
        rig.say("push", payload)
    rule = said(rig)
    assert (rule.access if rule else None) is access


def test_what_its_owner_said_stays(rig: Rig) -> None:
    published.set_access(rig.on, rig.user, "oxide:hubris", ALL_SERIES, Access.PUBLIC, "")
    payload = push(A)
    payload["repository"]["private"] = True
    rig.say("push", payload)
    rule = said(rig)
    assert rule
    assert rule.access is Access.PUBLIC


def test_what_its_owner_says_meanwhile_stays(rig: Rig) -> None:
    before_the_next_commit(
        rig.twin, lambda: published.set_access(rig.on, rig.user, "oxide:hubris", ALL_SERIES, Access.PUBLIC, "")
    )
    published.make_private(rig.on, "oxide:hubris")
    rule = said(rig)
    assert rule
    assert rule.access is Access.PUBLIC
