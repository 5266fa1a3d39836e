"""Jobs that use a token of GitHub, and what they ask for."""

from __future__ import annotations

from penstock.domain.jobs.jobs import Job
from penstock.domain.replies import StoredValue
from penstock.usecases.github import tokens
from penstock.usecases.jobs import store
from tests.github.fake import Minted
from tests.github.payloads import push
from tests.github.rig import A, Rig


def running(rig: Rig, name: str = "build") -> Job:
    """A job of a push that runs."""
    rig.say("push", push(A))
    rig.hello(rig.jobs()[name].id)
    return rig.jobs()[name]


def ask(rig: Rig, job: Job) -> str | None:
    """What `bmat store get GITHUB_TOKEN` finds, after another look."""
    for _ in range(2):
        tokens.request(rig.on, job, "GITHUB_TOKEN")
        found = store.read(rig.on, job, "GITHUB_TOKEN")
        if isinstance(found, StoredValue):
            assert found.secret == bool(found.value), "it is secret, if there is one"
            return found.value or None
        rig.twin.run()
    return None


def minted(rig: Rig, token: str | None) -> Minted:
    assert token is not None
    return rig.fake.tokens[token]
