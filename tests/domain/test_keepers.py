"""Why an artifact is kept, in words: every owner's share, and all of it in a sentence."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from penstock.domain.artifacts import why
from penstock.domain.artifacts import why as artifacts_why
from penstock.domain.artifacts.artifacts import Artifact, ArtifactState, Pin, pin_key
from penstock.domain.artifacts.retention import Retention
from penstock.domain.artifacts.why import OwnerReason
from penstock.domain.jobs import jobs
from penstock.domain.jobs.jobs import Job, Outcome
from penstock.domain.published import Published
from tests.domain.helpers import NOW, job

DAY = timedelta(days=1)
FILE = Artifact(id="A", path="/a", size=1, sha256="0", by="ada", time=NOW, state=ArtifactState.CREATED)
ROW = Retention(job="J1", until=NOW)
ENDED = jobs.settle(job(), Outcome.FAILED, "it ended", NOW)
PIN = Pin(artifact="A", by="ada", reason="to look at it", since=NOW, until=NOW + DAY)


@pytest.mark.parametrize(
    ("owning", "row", "why", "until", "frees"),
    [
        (None, ROW, "job J1 owns it, and no row says for how long", None, "an operator's look at it"),
        (ENDED, None, "job J1 owns it, and no row says for how long", None, "an operator's look at it"),
        (ENDED, replace(ROW, ended=NOW), "what job J1 owned is being taken apart", NOW, "the next sweep"),
        (job(), None, "job J1 owns it, and is queued", None, "the job's end, and from then on the time"),
        (job(), Retention(job="J1"), "job J1 owns it, and is queued", None, "the job's end, and from then on the time"),
        (ENDED, ROW, "job J1 owns it, and failed", NOW, "that time alone"),
        (ENDED, replace(ROW, longer=NOW - DAY), "job J1 owns it, and failed", NOW, "that time alone"),
        (
            ENDED,
            replace(ROW, longer=NOW + DAY),
            "job J1 owns it, and failed: the latest failure of ada's jobs called build",
            NOW + DAY,
            "a later failure of that name: from then on, 2026-01-02 03:04 UTC",
        ),
        (
            ENDED,
            replace(ROW, dependents=("D", "E")),
            "job J1 owns it, and jobs that are not settled depend on that: D, E",
            None,
            "their end; then the time of job J1",
        ),
        (
            job(),
            Retention(job="J1", dependents=tuple("ABCDEF")),
            "job J1 owns it, and jobs that are not settled depend on that: A, B, C, D, E and 1 more",
            None,
            "their end",
        ),
    ],
)
def test_a_jobs_share(owning: Job | None, row: Retention | None, why: str, until: object, frees: str) -> None:
    found = artifacts_why.by_job(owning, row, "job#J1")
    assert (found.owner, found.why, found.until) == ("job#J1", why, until)
    assert found.frees.startswith(frees)


def test_a_pins_share() -> None:
    assert (PIN.key, PIN.deadline, PIN.owner) == (pin_key("A", "ada"), NOW + DAY, "pin#ada")
    found = why.by_pin(PIN, PIN.owner)
    assert (found.why, found.until) == ("ada pinned it: to look at it", NOW + DAY)
    assert why.by_pin(None, "pin#ada").why == "ada pinned it, and no row says why"


FIRST, SECOND, OPEN = (
    OwnerReason(owner, f"{owner} says so", until, "") for owner, until in (("a", NOW), ("b", NOW + DAY), ("c", None))
)


@pytest.mark.parametrize(
    ("artifact", "shares", "until", "summary"),
    [
        (FILE, [], None, "nobody owns it"),
        (replace(FILE, due=NOW), [], NOW, "nobody owns it: it goes at 2026-01-02 03:04 UTC"),
        (
            replace(FILE, due=NOW, state=ArtifactState.CREATING),
            [],
            NOW,
            "nobody owns it: it goes at 2026-01-02 03:04 UTC; its bytes have not arrived",
        ),
        (FILE, [FIRST, SECOND], NOW + DAY, "it goes at 2026-01-03 03:04 UTC, when b lets it go"),
        (FILE, [FIRST, OPEN], None, "nobody knows until when: c says so"),
        (
            replace(FILE, lost=NOW),
            [FIRST],
            NOW,
            "it goes at 2026-01-02 03:04 UTC, when a lets it go; its bytes are lost, and were missed first at "
            "2026-01-02 03:04 UTC",
        ),
    ],
)
def test_all_of_it(artifact: Artifact, shares: list[OwnerReason], until: object, summary: str) -> None:
    found = why.explain(artifact, shares)
    assert (found.until, found.summary) == (until, summary)


def test_a_published_name_keeps_until_it_is_withdrawn() -> None:
    row = Published(
        of="ada", series="s", version_name="v", name="n", artifact="A", size=1, sha256="0", path="/a", job="J1",
        by="gate", time=NOW,
    )  # fmt: skip
    frees = "ada, or an operator, with `penstock published unpublish`"
    assert why.by_name(row, row.owner) == OwnerReason(
        "published#ada/s/v/n", "gate published it as ada/s/v/n", None, frees
    )
    lost = why.by_name(None, row.owner)
    assert (lost.why, lost.until) == ("it is published as ada/s/v/n, and no row says so", None)
