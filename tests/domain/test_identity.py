"""Identity tokens: who they say somebody is, for whom, and until when. [SEC-2]"""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.jobs.jobs import Job, JobLimits, Request, State, Times
from penstock.domain.jobs.reviews import Review
from penstock.domain.users import oidc
from penstock.domain.users.oidc import LIFE, PublicKey, subject
from penstock.domain.users.users import VOUCH, User
from tests.domain.helpers import NOW
from tests.rows import changed

REPOSITORY = "oxide:hubris"


def job(**change: object) -> Job:
    made = Job(
        id="J",
        name="build",
        owner=REPOSITORY,
        request=Request(target="default", target_resolved="linux", needs=()),
        state=State.RUNNING,
        times=Times(submitted=NOW, started=NOW),
        limits=JobLimits(timeout=600, queue_seconds=1, grace=30),
        attempt=2,
        due=NOW + timedelta(seconds=750),
    )
    return changed(made, **change)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("owner", "name", "source", "is_"),
    [
        ("oxide:hubris", "build", {}, "repository:oxide/hubris:job:build"),
        ("oxide:hubris", "build", {"ref": "", "sha": "abc"}, "repository:oxide/hubris:job:build"),
        ("oxide:hubris", "x", {"ref": "refs/heads/main"}, "repository:oxide/hubris:ref:refs/heads/main"),
        ("o:r", "x", {"ref": "refs/heads/a", "event_name": "push"}, "repository:o/r:ref:refs/heads/a"),
        ("oxide:hubris", "x", {"event_name": "pull_request"}, "repository:oxide/hubris:pull_request"),
        ("o:r", "x", {"event_name": "pull_request", "ref": "refs/heads/main"}, "repository:o/r:pull_request"),
        ("ada", "helios / package", {}, "user:ada:job:helios%20%2F%20package"),
        ("ada", "x:ref:refs/heads/main", {}, "user:ada:job:x%3Aref%3Arefs%2Fheads%2Fmain"),
        ("ada", "*?~ä", {}, "user:ada:job:%2A%3F%7E%C3%A4"),
        ("ada", "x", {"ref": "a b:c*"}, "user:ada:ref:a%20b%3Ac%2A"),
    ],
)
def test_a_subject(owner: str, name: str, source: dict[str, str], is_: str) -> None:
    """As GitHub Actions says it where the source is vouched for; and a pull request is never a branch."""
    assert subject(owner, name, source) == is_


def test_a_subject_that_would_be_too_long_has_a_digest() -> None:
    for start, told in (
        ("repository:oxide/hubris:job:", lambda text: subject(REPOSITORY, text, {})),
        ("repository:oxide/hubris:ref:", lambda text: subject(REPOSITORY, "build", {"ref": text})),
    ):
        room = oidc.SUBJECT_CHARS - len(start)
        assert told("a" * room) == start + "a" * room
        digested = told("a" * (room + 1))
        assert (len(digested), digested[: len(start) + 1]) == (len(start) + 33, f"{start}~")
        assert told("b" * (room + 1)) != digested
    longest = subject(f"{'o' * 64}:{'r' * 100}", "n" * 128, {"ref": "r" * 1024})
    assert len(longest) == 11 + 165 + 5 + 33


names = st.text(min_size=1, max_size=128)


@given(names, names, st.text(min_size=1, max_size=40), st.text(min_size=1, max_size=40))
def test_no_two_sources_have_one_subject(one: str, other: str, ref: str, other_ref: str) -> None:
    asked = {("job", one), ("job", other), ("ref", ref), ("ref", other_ref)}
    told = {each: subject("ada", each[1], {"ref": each[1]} if each[0] == "ref" else {}) for each in asked}
    told["pull", ""] = subject("ada", one, {"ref": ref, "event_name": "pull_request"})
    assert len(set(told.values())) == len(told)
    for text in told.values():
        assert text.isascii()
        assert len(text) <= oidc.SUBJECT_CHARS
        assert text.count(":") == (2 if text == told["pull", ""] else 3)
        assert "*" not in text


@pytest.mark.parametrize(
    ("now", "started", "due", "left"),
    [
        (0, 0, 750, 600),
        (599, 0, 750, 1),
        (700, 0, 750, -100),
        (10, 0, 40, 30),
        (10, None, None, 600),
    ],
)
def test_no_token_outlives_its_attempt(now: int, started: int | None, due: int | None, left: int) -> None:
    def at(seconds: int | None) -> object:
        return None if seconds is None else NOW + timedelta(seconds=seconds)

    found = job(times=Times(submitted=NOW, started=at(started)), due=at(due))  # type: ignore[arg-type]
    moment = NOW + timedelta(seconds=now)
    assert oidc.expiry(found, moment) == moment + timedelta(seconds=left)


def test_no_token_lives_longer_than_an_hour() -> None:
    found = job(timeout=24 * 3600, due=NOW + timedelta(days=2))
    assert oidc.expiry(found, NOW) == NOW + LIFE == NOW + timedelta(hours=1)


def test_what_a_token_says() -> None:
    source = {"ref": "refs/heads/main", "sha": "abc", "event_name": "push", "pull_request": "12"}
    found = job(vouched=source, tags={"ref": "other"})
    said = oidc.claims(found, "https://here/v1/oidc", "sts.amazonaws.com", "J1", NOW)
    begin = int(NOW.timestamp())
    assert said == {
        "iss": "https://here/v1/oidc",
        "sub": "repository:oxide/hubris:ref:refs/heads/main",
        "aud": "sts.amazonaws.com",
        "exp": begin + 600,
        "iat": begin,
        "nbf": begin,
        "jti": "J1",
        "owner": REPOSITORY,
        "repository": "oxide/hubris",
        "job_id": "J",
        "job_name": "build",
        "attempt": 2,
        "target": "linux",
        "ref": "refs/heads/main",
        "sha": "abc",
        "event_name": "push",
        "pull_request": "12",
    }
    assert {*said, "environment"} == set(oidc.CLAIMS)


@pytest.mark.parametrize(("by", "sub"), [("bert", "environment:production"), ("", "ref:refs/heads/main")])
def test_a_job_that_was_approved_for_an_environment_says_so(by: str, sub: str) -> None:
    found = replace(job(vouched={"ref": "refs/heads/main"}), review=Review("production", NOW, by=by))
    said = oidc.claims(found, "i", "a", "J1", NOW)
    assert said["sub"] == f"repository:oxide/hubris:{sub}"
    assert said.get("environment") == ("production" if by else None)


def test_what_nobody_vouched_for_is_not_said() -> None:
    said = oidc.claims(job(owner="ada", tags={"ref": "refs/heads/main"}), "i", "a", "J1", NOW)
    assert (said["sub"], said["owner"]) == ("user:ada:job:build", "ada")
    assert not {"repository", "ref", "sha"} & set(said)


@pytest.mark.parametrize(
    ("privileges", "is_believed"), [((VOUCH,), True), (("admin",), False), (("as",), False), ((), False)]
)
def test_who_may_vouch(privileges: tuple[str, ...], is_believed: bool) -> None:
    """An operator who runs a file has not said that what its tags say is so."""
    assert User(name="gate", privileges=privileges, created=NOW).may_vouch is is_believed


def test_only_what_the_tags_say_of_the_source_is_vouched_for() -> None:
    assert oidc.vouched({"ref": "main", "sha": "abc", "other": "x"}) == {"ref": "main", "sha": "abc"}
    assert oidc.vouched({"ref": "", "other": "x"}) == {}


@pytest.mark.parametrize(
    ("text", "is_one"),
    [("sts.amazonaws.com", True), ("https://x/*", True), ("a" * 255, True), ("a" * 256, False), ("", False),
     ("a b", False), ("a\n", False), ("ä", False), ("\x7f", False)],
)  # fmt: skip
def test_what_can_be_an_audience(text: str, is_one: bool) -> None:
    assert oidc.is_audience(text) is is_one


def decoded(part: str) -> object:
    assert "=" not in part
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


def test_a_token_is_three_parts() -> None:
    text = oidc.unsigned("k1", {"sub": "ä?>"})
    head, body, signature = oidc.signed(text, b"\xfb\xff").split(".")
    assert decoded(head) == {"alg": "RS256", "typ": "JWT", "kid": "k1"}
    assert decoded(body) == {"sub": "ä?>"}
    assert signature == "-_8"


def test_a_key_set() -> None:
    (key,) = oidc.key_set([PublicKey("k1", (1 << 15) + 1, 65537)])
    assert key == {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "k1", "n": "gAE", "e": "AQAB"}
