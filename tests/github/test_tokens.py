"""GITHUB_TOKEN: made when a running job asks, for one repository, for what policy says, and read by that job alone."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from penstock.aws import dynamodb
from penstock.domain.commands import SubmitJob
from penstock.domain.github import tokens as github_tokens
from penstock.domain.github.tokens import LIFE, RECHECK_INTERVAL
from penstock.domain.github.tokens import Minted as Row
from penstock.domain.jobs.store import Value, sealed_as, value_key
from penstock.domain.replies import NoValue, StoredValue
from penstock.kernel.errors import Refused, Unknown
from penstock.kernel.rows import Create, Delete, Replace
from penstock.ports import GitHubResponse
from penstock.usecases.github import hints, tokens
from penstock.usecases.jobs import store, submit
from penstock.usecases.jobs.store import NewValue
from tests.github.payloads import check_run, pull_request, push
from tests.github.rig import A, Rig
from tests.github.tokens import ask, minted, running
from tests.usecases.steps import told


def test_in_a_commit_of_which_only_some_jobs_are_submitted_it_only_reads(rig: Rig) -> None:
    """SEC-2: what a job may have is known from its own row, from its submit on."""
    rig.limit(jobs=1)
    rig.policy('enable = true\norg_only = false\npermissions = { contents = "write" }')
    rig.say("pull_request", pull_request(A))
    assert set(rig.jobs()) == {"build"}
    rig.hello(rig.jobs()["build"].id)
    assert minted(rig, ask(rig, rig.jobs()["build"])).permissions == {"contents": "read"}


def test_of_a_branch_that_is_not_trusted_it_only_reads(rig: Rig) -> None:
    rig.policy('enable = true\ntrusted_refs = ["refs/heads/main"]\npermissions = { contents = "write" }')
    rig.say("push", push(A, "patch"))
    rig.hello(rig.jobs()["build"].id)
    assert minted(rig, ask(rig, rig.jobs()["build"])).permissions == {"contents": "read"}


def test_it_is_made_when_a_running_job_asks(rig: Rig) -> None:
    job = running(rig)
    assert len(rig.fake.tokens) == 1  # our own
    found = minted(rig, ask(rig, job))
    assert (found.repositories, found.permissions) == ([55], {"contents": "read"})
    assert len(rig.fake.tokens) == 2
    ask(rig, job)
    tokens.mint(rig.on, job.id)
    assert len(rig.fake.tokens) == 2


def test_it_is_in_no_row_and_no_log_in_clear(rig: Rig) -> None:
    job = running(rig)
    token = ask(rig, job)
    assert token
    assert not [row.key for row in rig.twin.store.rows.values() if token in dynamodb.dump(row)]
    assert "GitHub front end put GITHUB_TOKEN (secret) into the job's store" in told(rig.twin, job.id)
    with pytest.raises(Refused):
        store.show(rig.on, job, "GITHUB_TOKEN")
    rig.finish(job.id)
    assert rig.on.store.get(value_key(job.id, "GITHUB_TOKEN"), Value) is None


def test_it_may_do_what_the_default_branch_says(rig: Rig) -> None:
    rig.policy('enable = true\npermissions = { contents = "write", packages = "read" }')
    assert minted(rig, ask(rig, running(rig))).permissions == {"contents": "write", "packages": "read"}


def test_in_an_outsiders_commit_it_only_reads(rig: Rig) -> None:
    rig.policy('enable = true\npermissions = { contents = "write", packages = "read" }')
    rig.say("pull_request", pull_request(A))
    rig.say("check_run", check_run(rig.fake.shown("penstock"), "ada", "approve"))
    rig.hello(rig.jobs()["build"].id)
    found = minted(rig, ask(rig, rig.jobs()["build"]))
    assert found.permissions == {"contents": "read", "packages": "read"}


@pytest.mark.parametrize("policy", ["org_only = false", 'allow_users = ["eve"]'])
def test_in_a_commit_that_runs_unasked_it_only_reads(rig: Rig, policy: str) -> None:
    rig.policy(f'enable = true\n{policy}\npermissions = {{ contents = "write", packages = "read" }}')
    rig.say("pull_request", pull_request(A))
    rig.hello(rig.jobs()["build"].id)
    found = minted(rig, ask(rig, rig.jobs()["build"]))
    assert found.permissions == {"contents": "read", "packages": "read"}


def test_an_old_one_is_replaced_and_one_that_is_over_is_not_handed_out(rig: Rig) -> None:
    job = running(rig)
    first = ask(rig, job)
    rig.twin.pass_time(31 * 60)
    assert ask(rig, job) == first  # good for a while; another is made meanwhile
    rig.twin.run()
    second = ask(rig, job)
    assert second != first
    rig.twin.pass_time(56 * 60)
    tokens.request(rig.on, job, "GITHUB_TOKEN")
    assert store.read(rig.on, job, "GITHUB_TOKEN") == NoValue()
    assert ask(rig, job) not in (None, first, second)


def test_only_a_running_job_of_the_front_end_gets_one(rig: Rig) -> None:
    rig.say("push", push(A))
    waiting = rig.jobs()["test"]
    assert ask(rig, waiting) is None
    by_hand = submit.submit(rig.on, rig.user, SubmitJob("#!/bin/sh\n"), None)
    rig.twin.run()
    rig.hello(by_hand)
    assert ask(rig, next(each for each in rig.all_jobs() if each.id == by_hand)) is None
    assert not tokens.mint(rig.on, by_hand)
    assert len(rig.fake.tokens) == 1


DENIED = "there is no GITHUB_TOKEN, its value is empty: "


@pytest.mark.parametrize("text", ["enable = false", "enable = yes", 'permissions = { checks = "write" }'])
def test_who_is_let_nothing_any_more_gets_none(rig: Rig, text: str) -> None:
    job = running(rig)
    rig.policy(text)
    assert ask(rig, job) is None
    said = f"{DENIED}.github/buildomat/config.toml of the default branch gives none"
    assert told(rig.twin, job.id).count(said) == 1
    assert len(rig.fake.tokens) == 1
    assert rows(rig) == [], "there is nothing to revoke"


def test_permissions_that_the_app_has_not_got(rig: Rig) -> None:
    """Who waits is told, and waits no longer; and GitHub is asked once."""
    rig.policy('enable = true\npermissions = { packages = "write" }')
    job = running(rig)
    assert ask(rig, job) is None
    why = "GitHub answers 422: The permissions requested are not granted to this installation: ['packages']"
    assert DENIED + why in told(rig.twin, job.id)
    assert store.read(rig.on, job, "GITHUB_TOKEN") == StoredValue("", secret=False)
    asked = len(rig.fake.asked)
    assert ask(rig, job) is None
    assert len(rig.fake.asked) == asked


def test_a_refusal_that_says_nothing_is_told_too(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    job, call = running(rig), rig.forge.call

    def refuses(app: Any, ask: Any) -> Any:
        return GitHubResponse(401) if "access_tokens" in ask.path else call(app, ask)

    monkeypatch.setattr(rig.forge, "call", refuses)
    assert not tokens.mint(rig.on, job.id)
    assert f"{DENIED}GitHub answers 401: it does not say why" in told(rig.twin, job.id)


def test_who_has_one_keeps_it_while_no_other_is_to_be_had(rig: Rig) -> None:
    job = running(rig)
    first = ask(rig, job)
    rig.policy("enable = false")
    rig.twin.pass_time(31 * 60)
    assert not tokens.mint(rig.on, job.id)
    assert ask(rig, job) == first
    assert not any(line.startswith(DENIED) for line in told(rig.twin, job.id))


def test_a_job_that_is_not_there_gets_none(rig: Rig) -> None:
    assert not tokens.mint(rig.on, "01ARZ3NDEKTSV4RRFFQ69G5FAV")


def test_who_has_ended_meanwhile_is_given_nothing(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    rig.policy('enable = true\npermissions = { packages = "write" }')
    job, call = running(rig), rig.forge.call

    def ends(app: Any, ask: Any) -> Any:
        found = call(app, ask)
        if "access_tokens" in ask.path:
            rig.finish(job.id)
        return found

    monkeypatch.setattr(rig.forge, "call", ends)
    assert not tokens.mint(rig.on, job.id)
    assert rig.on.store.get(value_key(job.id, "GITHUB_TOKEN"), Value) is None


def test_another_value_and_ones_own_of_that_name_are_left_alone(rig: Rig) -> None:
    job = running(rig)
    tokens.request(rig.on, job, "OTHER")
    store.put(rig.on, job, NewValue("GITHUB_TOKEN", "mine", by="oxide:hubris"))
    rig.twin.pass_time(3600)
    tokens.request(rig.on, job, "GITHUB_TOKEN")
    rig.twin.run()
    assert store.read(rig.on, job, "GITHUB_TOKEN") == StoredValue("mine", secret=False)
    assert not tokens.mint(rig.on, job.id)


def test_a_job_that_ends_meanwhile_gets_none(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    job = running(rig)
    call = rig.forge.call

    def ends(app: Any, ask: Any) -> Any:
        found = call(app, ask)
        if ask.body and ask.body.get("permissions") == {"contents": "read"}:
            rig.finish(job.id)
        return found

    monkeypatch.setattr(rig.forge, "call", ends)
    assert not tokens.mint(rig.on, job.id)
    assert rig.on.store.get(value_key(job.id, "GITHUB_TOKEN"), Value) is None
    (made,) = [each for each in rig.fake.tokens.values() if each.permissions == {"contents": "read"}]
    assert made.until <= rig.twin.world.now(), "GitHub was told that it is worth nothing any more"


def test_the_job_of_a_run_that_was_run_again_gets_none(rig: Rig) -> None:
    job = running(rig)
    check = check_run(rig.fake.shown("build"), "ada")
    rig.hook("check_run", check)
    rig.step({"delivery": rig.id})
    assert not tokens.mint(rig.on, job.id)


def alive(rig: Rig, token: str | None) -> bool:
    """Whether GitHub takes a token."""
    return minted(rig, token).until > rig.now()


def revoked(rig: Rig) -> int:
    """How often somebody asked GitHub to take a token no more."""
    return rig.fake.asked.count(("DELETE", "/installation/token"))


def rows(rig: Rig) -> list[Row]:
    return [row for row in rig.twin.store.rows.values() if isinstance(row, Row)]


def test_it_is_revoked_when_its_job_has_settled_and_not_before(rig: Rig) -> None:
    job = running(rig)
    token = ask(rig, job)
    tokens.revoke(rig.on, job.id)
    assert (alive(rig, token), revoked(rig), len(rows(rig))) == (True, 0, 1)
    rig.finish(job.id)
    assert (alive(rig, token), revoked(rig), rows(rig)) == (False, 1, [])
    tokens.revoke(rig.on, job.id)
    assert revoked(rig) == 1


def test_all_that_a_job_was_given_are_revoked(rig: Rig) -> None:
    job = running(rig)
    first = ask(rig, job)
    rig.twin.pass_time(31 * 60)
    ask(rig, job)
    rig.twin.run()
    second = ask(rig, job)
    assert first != second
    rig.finish(job.id)
    assert not alive(rig, first)
    assert not alive(rig, second)
    assert rows(rig) == []


def test_what_is_gone_already_is_revoked(rig: Rig) -> None:
    job = running(rig)
    rig.fake.tokens[str(ask(rig, job))].until = rig.now()
    rig.finish(job.id)
    assert (revoked(rig), rows(rig)) == (1, [])


@pytest.mark.parametrize("trouble", ["broken", "limited"])
def test_what_could_not_be_revoked_is_tried_again(rig: Rig, trouble: str) -> None:
    job = running(rig)
    token = ask(rig, job)
    if trouble == "broken":
        rig.fake.broken = 1000
    else:
        rig.fake.limit(60)
    rig.hook("push", push("f" * 40))
    with suppress(Unknown):
        rig.finish(job.id)
    assert alive(rig, token)
    rig.fake.broken = 0
    for _ in range(4):
        with suppress(Unknown):
            rig.later(120)
    assert (alive(rig, token), rows(rig)) == (False, [])
    assert rig.fake.rude <= 1


def test_a_hint_that_is_lost_costs_some_minutes(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    job = running(rig)
    token = ask(rig, job)
    rig.twin.pass_time(30)
    assert rig.step({"revoke": job.id})
    (row,) = rows(rig)
    assert row.due
    assert row.due > rig.now() + RECHECK_INTERVAL - timedelta(seconds=1)  # its job goes on
    monkeypatch.setattr(hints, "job_settled", lambda *_: None)
    rig.finish(job.id)
    assert alive(rig, token)
    rig.later(RECHECK_INTERVAL.total_seconds())
    assert (alive(rig, token), rows(rig)) == (False, [])


def test_a_token_whose_life_is_over_is_forgotten(rig: Rig) -> None:
    job = running(rig)
    ask(rig, job)
    rig.later(LIFE.total_seconds() - 1)
    assert len(rows(rig)) == 1
    rig.later(RECHECK_INTERVAL.total_seconds())
    assert (rows(rig), revoked(rig)) == ([], 0)


def test_only_who_revokes_opens_what_is_kept_for_that(rig: Rig) -> None:
    job = running(rig)
    token = ask(rig, job)
    (row,) = rows(rig)
    assert token not in dynamodb.dump(row)
    with pytest.raises(ValueError, match="not sealed for this use"):
        rig.on.vault.open(row.sealed, sealed_as(job.id, "GITHUB_TOKEN"))


def test_what_github_says_no_to_is_asked_again(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    job = running(rig)
    token = ask(rig, job)
    call = rig.forge.call
    monkeypatch.setattr(rig.forge, "call", lambda app, ask: GitHubResponse(404) if ask.token else call(app, ask))
    rig.finish(job.id)
    (row,) = rows(rig)
    assert (row.tries, alive(rig, token)) == (1, True)
    monkeypatch.setattr(rig.forge, "call", call)
    rig.later(120)
    assert (rows(rig), alive(rig, token)) == ([], False)


def test_of_a_job_that_is_gone_it_is_revoked(rig: Rig) -> None:
    job = running(rig)
    token = ask(rig, job)
    (row,) = rows(rig)
    assert rig.on.store.commit([Delete(row), Create(replace(row, job="J", version=0))])
    sealed = rig.on.minted.seal(str(token).encode(), github_tokens.sealed_as("J", row.id))
    (row,) = rows(rig)
    assert rig.on.store.commit([Replace(row, replace(row, sealed=sealed))])
    tokens.revoke(rig.on, "J")
    assert (rows(rig), alive(rig, token)) == ([], False)


def test_who_comes_second_leaves_it_to_the_first(rig: Rig) -> None:
    job = running(rig)
    token = ask(rig, job)
    (row,) = rows(rig)
    assert rig.on.store.commit([Replace(row, replace(row, tries=1))])
    tokens._revoke(rig.on, row)
    assert (alive(rig, token), revoked(rig)) == (True, 0)


def test_what_was_revoked_while_one_looked_is_not_there_again(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    job = running(rig)
    ask(rig, job)
    (row,) = rows(rig)

    def meanwhile(*_: Any) -> bool:
        return not rig.on.store.commit([Delete(row)])

    monkeypatch.setattr(tokens, "is_dead", meanwhile)
    tokens.revoke(rig.on, job.id)
    assert rows(rig) == []
