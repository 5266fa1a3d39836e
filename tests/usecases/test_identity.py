"""Identity tokens: who gets one, until when, and what is known of it afterwards. [SEC-1] [SEC-2]"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import timedelta
from typing import Any

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from penstock.domain import metrics
from penstock.domain.commands import SubmitJob
from penstock.domain.jobs.jobs import Report, Result
from penstock.domain.replies import IdentityToken
from penstock.domain.users.audit import Entry, Wanted
from penstock.domain.users.users import VOUCH, User
from penstock.kernel import limits
from penstock.kernel.errors import Refused
from penstock.system import NoSigner, current_site
from penstock.testing.twin import Twin
from penstock.usecases.jobs import cancel, settle, submit
from penstock.usecases.site import apply
from penstock.usecases.users import audit, oidc, users
from tests.usecases.conftest import SITE
from tests.usecases.exact import commits, put, running
from tests.usecases.races import before_the_next_commit
from tests.usecases.steps import SCRIPT, finish, hello, job_of, told

AWS = "sts.amazonaws.com"
ALLOWED = f'{SITE}[identity]\naudiences = ["{AWS}", "https://vault.example"]\n'
HUBRIS = "oxide:hubris"


@pytest.fixture
def site(twin: Twin) -> Twin:
    apply.apply(twin.on, "admin", ALLOWED, "site.toml")
    twin.run()
    return twin


def part(text: str) -> Any:
    return json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))


def whole(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def verified(twin: Twin, token: str) -> dict[str, Any]:
    """What a token says, once its signature was checked with the published key, as others do."""
    head, body, signature = token.split(".")
    published = twin.on.signer.keys()
    (key,) = [key for key in published if key.kid == part(head)["kid"]]
    public = rsa.RSAPublicNumbers(key.exponent, key.modulus).public_key()
    public.verify(whole(signature), f"{head}.{body}".encode(), padding.PKCS1v15(), hashes.SHA256())
    said: dict[str, Any] = part(body)
    return said


def ask(twin: Twin, job: str, audience: str = AWS) -> IdentityToken:
    return oidc.token(twin.on, job_of(twin, job), audience)


def refused(call: Callable[[], object]) -> tuple[int, str]:
    with pytest.raises(Refused) as told_:
        call()
    return told_.value.status, told_.value.code


def notes(twin: Twin) -> list[Entry]:
    found = [row for row in twin.store.rows.values() if isinstance(row, Entry)]
    return [each for each in found if each.did == "identity token"]


def test_a_running_attempt_is_given_a_token_that_others_can_check(site: Twin, ada: User) -> None:
    job = running(site, ada, timeout="10m")
    given = ask(site, job)
    said, row = verified(site, given.token), job_of(site, job)
    assert (said["iss"], said["sub"], said["aud"]) == ("http://here/v1/oidc", "user:ada:job:job", AWS)
    assert (said["job_id"], said["attempt"], said["target"]) == (job, 1, "linux")
    assert row.times.started
    assert said["exp"] == int((row.times.started + timedelta(minutes=10)).timestamp())
    assert given.expires == f"2026-01-01T00:10:0{said['exp'] % 10}+00:00"
    head, body, signature = given.token.split(".")
    with pytest.raises(InvalidSignature):
        verified(site, f"{head}.{body[:-2]}{'A' if body[-2] != 'A' else 'B'}{body[-1]}.{signature}")


def test_an_identity_token_is_logged_and_counted_but_never_stored(site: Twin, ada: User) -> None:
    job = running(site, ada)
    given = ask(site, job)
    said = verified(site, given.token)
    (note,) = notes(site)
    assert (note.by, note.what) == ("ada", f"job {job}")
    assert note.detail == f"user:ada:job:job for {AWS}, attempt 1, jti {said['jti']}"
    assert told(site, job)[-1] == f"the job was given an identity token for {AWS}, {said['jti']}"
    assert site.metrics.of(metrics.IDENTITY_TOKENS, target="linux") == [1]
    assert job_of(site, job).usage.identities == 1
    signature = given.token.rpartition(".")[2]
    assert not [row for row in site.store.rows.values() if signature in json.dumps(asdict(row), default=str)]


def test_every_token_has_an_id_of_its_own(site: Twin, ada: User) -> None:
    job = running(site, ada)
    ids = {verified(site, ask(site, job).token)["jti"] for _ in range(3)}
    assert len(ids) == 3 == job_of(site, job).usage.identities
    assert {each.detail.rpartition(" ")[2] for each in notes(site)} == ids


def test_who_it_may_be_for_the_site_says(site: Twin, twin: Twin, ada: User, fresh: Callable[[], Twin]) -> None:
    job = running(site, ada)
    assert verified(site, ask(site, job, "https://vault.example").token)["aud"] == "https://vault.example"
    with pytest.raises(Refused, match=r"it does for: sts\.amazonaws\.com, https://vault\.example$"):
        ask(site, job, "https://vault.example/")
    assert refused(lambda: ask(site, job, "other")) == (422, "audience-not-allowed")
    assert refused(lambda: ask(site, job, "a b")) == (400, "bad-request")
    unsaid = fresh()
    with pytest.raises(Refused, match="it does for: none"):
        ask(unsaid, running(unsaid, ada))


def test_whose_job_lacks_the_privilege_gets_none(twin: Twin, root: User) -> None:
    apply.apply(twin.on, "admin", f'{ALLOWED}privilege = "identity.aws"\n', "site.toml")
    assert current_site(twin.on).identity.privilege == "identity.aws"
    eve = users.create(twin.on, "eve", [], "root")
    job = running(twin, eve)
    with pytest.raises(Refused, match=r"^eve may not have this: it needs the privilege 'identity.aws'"):
        ask(twin, job)
    users.change_privilege(twin.on, "eve", "identity.aws", grant=True, by="root")
    assert verified(twin, ask(twin, job).token)["owner"] == "eve"
    before_the_next_commit(twin, lambda: users.change_privilege(twin.on, "eve", "identity.aws", grant=False, by="root"))
    assert refused(lambda: ask(twin, job)) == (422, "privilege-missing")
    assert (len(notes(twin)), len(twin.signer.signed)) == (1, 1)


def test_an_owner_who_is_no_user_lacks_every_privilege(twin: Twin, ada: User) -> None:
    apply.apply(twin.on, "admin", f'{ALLOWED}privilege = "identity.aws"\n', "site.toml")
    with pytest.raises(Refused, match="there is no user ada"):
        ask(twin, running(twin, ada))


def test_an_attempt_that_is_over_gets_none(site: Twin, ada: User) -> None:
    """SLOT-3"""
    job = running(site, ada, retries=1)
    mine = job_of(site, job)
    settle.settle(site.on, job, 1, "Lost", "its worker was lost")
    assert refused(lambda: oidc.token(site.on, mine, AWS)) == (410, "lease-gone")
    site.run()
    assert job_of(site, job).attempt == 2
    hello(site, job)
    assert refused(lambda: oidc.token(site.on, mine, AWS)) == (410, "lease-gone")
    assert (notes(site), site.signer.signed) == ([], [])
    ask(site, job)


def test_a_job_that_is_over_or_never_was_gets_none(site: Twin, ada: User) -> None:
    job = running(site, ada)
    mine = job_of(site, job)
    finish(site, job)
    assert refused(lambda: oidc.token(site.on, mine, AWS)) == (410, "lease-gone")
    assert refused(lambda: oidc.token(site.on, replace(mine, id="X"), AWS)) == (410, "lease-gone")


def test_a_lease_that_is_given_back_meanwhile_signs_nothing(site: Twin, ada: User) -> None:
    job = running(site, ada)
    mine = job_of(site, job)
    before_the_next_commit(site, lambda: settle.settle(site.on, job, 1, "Lost", "its worker was lost"))
    assert refused(lambda: oidc.token(site.on, mine, AWS)) == (410, "lease-gone")
    assert (notes(site), site.signer.signed) == ([], [])


def test_after_its_report_an_attempt_gets_none(site: Twin, ada: User) -> None:
    job = running(site, ada)
    row = job_of(site, job)
    put(site, row, report=Report(Result.SUCCEEDED, "ended", site.world.now(), 0))
    assert refused(lambda: ask(site, job)) == (410, "lease-gone")


def test_a_job_that_does_not_run_gets_none(site: Twin, ada: User) -> None:
    job = submit.submit(site.on, ada, SubmitJob(SCRIPT), None)
    assert refused(lambda: ask(site, job)) == (410, "lease-gone")


def test_when_the_time_is_over_there_is_none(site: Twin, ada: User) -> None:
    job = running(site, ada, timeout="60s")
    started = job_of(site, job).times.started
    assert started
    site.world.time = started + timedelta(seconds=58)
    ask(site, job)
    site.world.time = started + timedelta(seconds=60)
    assert refused(lambda: ask(site, job)) == (409, "too-late")


def test_there_are_as_many_as_the_limit_says(site: Twin, ada: User) -> None:
    job = running(site, ada)
    put(site, job_of(site, job), identities=limits.IDENTITIES - 1)
    ask(site, job)
    assert refused(lambda: ask(site, job)) == (409, "too-many-tokens")


def test_two_concurrent_identity_tokens_both_count(site: Twin, ada: User) -> None:
    job = running(site, ada)
    before_the_next_commit(site, lambda: ask(site, job))
    ask(site, job)
    assert job_of(site, job).usage.identities == 2 == len(notes(site))


def test_it_is_one_commit_that_names_the_running_job(site: Twin, ada: User) -> None:
    job, written = running(site, ada), commits(site)
    ask(site, job)
    assert [type(change).__name__ for change in written[0]] == ["Replace", "Create"]


def test_a_deployment_without_a_key_says_so(site: Twin, ada: User) -> None:
    job = running(site, ada)
    bare = replace(site.on, signer=NoSigner())
    assert refused(lambda: oidc.token(bare, job_of(site, job), AWS)) == (422, "no-identity-key")
    assert bare.signer.keys() == ()
    assert notes(site) == []
    with pytest.raises(Refused):
        bare.signer.sign(b"x")


@pytest.fixture
def gate(site: Twin) -> User:
    users.create(site.on, HUBRIS, [], "root")
    return users.create(site.on, "gate", ["as", VOUCH], "root")


TAGS = {"ref": "refs/heads/main", "sha": "abc", "who": "x"}


def claims(twin: Twin, job: str) -> tuple[str, str | None, str | None]:
    twin.run()
    hello(twin, job)
    said = verified(twin, ask(twin, job).token)
    finish(twin, job)
    return said["sub"], said.get("ref"), said.get("sha")


def by(twin: Twin, user: User, script: str = SCRIPT, **more: Any) -> str:
    return submit.submit(twin.on, user, SubmitJob(script, owner=HUBRIS, **more), None)


VOUCHED = ("repository:oxide/hubris:ref:refs/heads/main", "refs/heads/main", "abc")
UNVOUCHED = ("repository:oxide/hubris:job:job", None, None)


def test_what_a_front_end_vouches_for_is_said(site: Twin, gate: User) -> None:
    assert claims(site, by(site, gate, tags=TAGS)) == VOUCHED


def test_what_others_or_the_file_say_of_its_source_is_not(site: Twin, gate: User, root: User) -> None:
    mallory = users.create(site.on, "mallory", [f"as.{HUBRIS}"], "root")
    assert claims(site, by(site, mallory, tags=TAGS)) == UNVOUCHED
    assert claims(site, by(site, root, tags=TAGS)) == UNVOUCHED
    file = '#!/bin/bash\n#: name = "job"\n#: variety = "basic"\n#: [tags]\n#: ref = "refs/heads/main"\necho\n'
    job = by(site, gate, file)
    assert job_of(site, job).request.tags == {"ref": "refs/heads/main"}
    assert claims(site, job) == UNVOUCHED


def test_a_retry_is_vouched_for_by_who_may_and_did(site: Twin, gate: User) -> None:
    mallory = users.create(site.on, "mallory", [f"as.{HUBRIS}"], "root")
    good, bad = by(site, gate, tags=TAGS), by(site, mallory, tags=TAGS)
    for job in (good, bad):
        claims(site, job)
    assert claims(site, submit.retry(site.on, gate, job_of(site, good))) == VOUCHED
    assert claims(site, submit.retry(site.on, mallory, job_of(site, good))) == UNVOUCHED
    assert claims(site, submit.retry(site.on, gate, job_of(site, bad))) == UNVOUCHED


def test_cancelled_it_ends_with_the_grace(site: Twin, ada: User) -> None:
    job = running(site, ada, timeout="2h")
    cancel.cancel(site.on, ada, job)
    due = job_of(site, job).due
    assert due
    assert verified(site, ask(site, job).token)["exp"] == int(due.timestamp())


def test_tokens_are_listed_with_what_operators_did(site: Twin, ada: User) -> None:
    job = running(site, ada)
    ask(site, job)
    (entry,), _ = audit.list_entries(site.on, Wanted("ada"), 10, "")
    assert (entry.did, entry.what) == ("identity token", f"job {job}")


def test_a_site_that_allows_something_else_says_that_it_does(site: Twin) -> None:
    other = ALLOWED.replace("https://vault.example", "https://other.example")
    assert apply.apply(site.on, "root", other, "site.toml") == [
        '- identity.audiences: "https://vault.example"', '+ identity.audiences: "https://other.example"',
    ]  # fmt: skip
    assert apply.apply(site.on, "root", other, "site.toml") == []
    assert apply.apply(site.on, "root", f"{other}[limits]\ngrace = 20\n", "site.toml") == [
        "limits.grace: 30 (default) -> 20"
    ]
