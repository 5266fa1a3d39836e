"""Names for good: given once, by whoever may, kept by no sweep, and withdrawn. [ART-1] [ART-2] [SEC-2]"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from penstock.domain.artifacts.artifacts import Artifact, ArtifactState
from penstock.domain.commands import AgentFile, SubmitJob
from penstock.domain.jobs.jobs import Result, State
from penstock.domain.published import ALL_SERIES, MAX_SERIES, Access, Published, Series
from penstock.domain.users.audit import Entry, Wanted
from penstock.domain.users.users import User
from penstock.kernel import limits
from penstock.kernel.errors import Refused
from penstock.kernel.rows import Change, Create
from penstock.testing.twin import START, Twin
from penstock.usecases import published
from penstock.usecases.artifacts import explain, outputs
from penstock.usecases.jobs import settle
from penstock.usecases.jobs import submit as jobs_submit
from penstock.usecases.users import audit
from penstock.usecases.workers import agents
from tests.usecases.exact import commits, drop, put
from tests.usecases.inputs import digest
from tests.usecases.objects import gets
from tests.usecases.outputs import X_SHA256
from tests.usecases.pins import artifact, at_the_end, pin, refused, why
from tests.usecases.races import before_the_next_commit
from tests.usecases.retained_jobs import end_of, ended, nothing_is_left, of, send, tidy
from tests.usecases.steps import TOKEN, dies_after_the_report, finish, hello, job_of, submit, told

EVE = User(name="eve", created=START, version=1)
ROOT = User(name="root", privileges=("admin",), created=START, version=1)
CI = User(name="gate", privileges=("as.oxide:hubris",), created=START, version=1)
NAME = ("nightly", "v1", "a.bin")
FILE = """#!/bin/bash
#: name = "build"
#: variety = "basic"
#: output_rules = ["/work/*"]
#: [[publish]]
#: from_output = "/work/0"
#: series = "nightly"
#: name = "a.bin"
"""


def give(twin: Twin, job: str, user: User, *, number: int = 0, name: Sequence[str] = NAME) -> tuple[Published, bool]:
    rows = sorted((row for row in of(twin, Artifact) if row.job == job), key=lambda row: str(row.path))
    return published.publish(twin.on, user, job_of(twin, job), rows[number].id, *name)


def take(twin: Twin, user: User, by: str = "ada", name: Sequence[str] = NAME) -> Published:
    return published.unpublish(twin.on, user, by, *name)


def row(twin: Twin) -> Published:
    (found,) = of(twin, Published)
    assert isinstance(found, Published)
    return found


def asks(twin: Twin, user: User, script: str = FILE, **ask: object) -> str:
    """A job with this file, up to where its script runs."""
    job = jobs_submit.submit(twin.on, user, SubmitJob(script, **ask), None)  # type: ignore[arg-type]
    twin.run()
    hello(twin, job)
    return job


def other_bytes(twin: Twin, job: str) -> str:
    """An output of a running job that has other bytes than those of `send`."""
    who = agents.authenticate(twin.on, job, TOKEN)
    (made,) = outputs.begin(twin.on, who.job, [AgentFile("/work/0", size=2, sha256=digest(b"xy"))]).uploads
    twin.objects.objects[f"artifacts/{made.id}"] = b"xy"
    outputs.commit(twin.on, who.job, [made.id])
    return str(made.id)


def audited(twin: Twin) -> list[tuple[str, str, str, str]]:
    rows = sorted((each for each in of(twin, Entry) if "publish" in each.did), key=lambda each: str(each.id))
    return [(each.by, each.did, each.what, each.detail) for each in rows]


# By hand


def test_what_is_published_outlives_its_job_until_it_is_withdrawn(twin: Twin, ada: User) -> None:
    """ART-1, ART-2"""
    job = ended(twin, ada)
    made, is_news = give(twin, job, ada)
    assert (made.full, is_news) == ("ada/nightly/v1/a.bin", True)
    at_the_end(twin, job)
    twin.pass_time(10**9)
    tidy(twin, 3)
    assert artifact(twin).owners == ("published#ada/nightly/v1/a.bin",)
    left = published.sign(twin.on, row(twin), 60)
    assert (left.size, left.sha256, left.expires_in) == (1, X_SHA256, 60)
    after = take(twin, ada)
    assert (after.withdrawn, after.withdrawn_by) == (twin.world.now(), "ada")
    tidy(twin, 2)
    assert nothing_is_left(twin)
    assert refused(lambda: published.sign(twin.on, row(twin), 60)) == (410, "withdrawn")


def test_the_same_bytes_again_are_good_and_other_bytes_are_refused(twin: Twin, ada: User) -> None:
    first, second = ended(twin, ada), ended(twin, ada)
    made = give(twin, first, ada)[0]
    written = commits(twin)
    assert give(twin, first, ada) == (row(twin), False)
    assert give(twin, second, ada) == (row(twin), False)
    assert written == []
    assert made.job == first
    third = submit(twin, ada)
    twin.run()
    hello(twin, third)
    other_bytes(twin, third)
    finish(twin, third)
    with pytest.raises(Refused, match=f"1 bytes with the SHA-256 {X_SHA256}, from /work/0 of job {first}"):
        give(twin, third, ada)
    take(twin, ada)
    assert refused(lambda: give(twin, third, ada)) == (409, "published-otherwise")
    again, is_news = give(twin, second, ada)
    assert (again.job, again.withdrawn, is_news) == (second, None, True)
    assert len(of(twin, Published)) == 1


def test_two_who_publish_under_one_name_at_once(twin: Twin, ada: User) -> None:
    """The row is made once: who comes second sees it, and is told that it is good, or what is there."""
    first, second = ended(twin, ada), ended(twin, ada)
    before_the_next_commit(twin, lambda: give(twin, second, ada))
    made, is_news = give(twin, first, ada)
    assert (made.job, is_news) == (second, False)
    third = asks(twin, ada, "#!/bin/sh\n")
    other_bytes(twin, third)
    finish(twin, third)
    before_the_next_commit(twin, lambda: give(twin, third, ada, name=("s", "v", "n")))
    assert refused(lambda: give(twin, first, ada, name=("s", "v", "n"))) == (409, "published-otherwise")
    assert sum(len(each.owners) for each in of(twin, Artifact)) == 3 + 2


def test_what_a_job_owned_goes_while_it_is_published(twin: Twin, ada: User) -> None:
    """ART-1: either the name is there and the bytes with it, or neither."""
    job = ended(twin, ada)
    twin.world.time = end_of(twin, job)
    tidy(twin)
    before_the_next_commit(twin, lambda: tidy(twin))
    assert refused(lambda: give(twin, job, ada)) == (410, "outputs-gone")
    assert of(twin, Published) == []
    tidy(twin, 2)
    assert nothing_is_left(twin)


def test_a_sweep_while_it_is_withdrawn_or_published_again(twin: Twin, ada: User) -> None:
    job = ended(twin, ada)
    give(twin, job, ada)
    before_the_next_commit(twin, lambda: at_the_end(twin, job))
    take(twin, ada)
    tidy(twin, 2)
    assert nothing_is_left(twin)
    other = ended(twin, ada)
    give(twin, other, ada)
    before_the_next_commit(twin, lambda: take(twin, ada))
    assert take(twin, ada).withdrawn
    assert give(twin, other, ada)[1] is True
    at_the_end(twin, other)
    assert artifact(twin).owners == ("published#ada/nightly/v1/a.bin",)


def test_withdrawn_twice_is_as_once_and_lets_go_of_nothing_else(twin: Twin, ada: User) -> None:
    job = ended(twin, ada)
    give(twin, job, ada)
    pin(twin, ada)
    take(twin, ada)
    written = commits(twin)
    assert take(twin, ROOT).withdrawn_by == "ada"
    assert written == []
    assert artifact(twin).owners == (f"job#{job}", "pin#ada")


def test_withdrawing_what_has_no_artifact_is_done_once(twin: Twin, ada: User) -> None:
    give(twin, ended(twin, ada), ada)
    drop(twin, artifact(twin))
    before_the_next_commit(twin, lambda: take(twin, ROOT))
    assert take(twin, ada).withdrawn_by == "root"


def test_two_who_publish_what_was_withdrawn_at_once(twin: Twin, ada: User) -> None:
    first, second = ended(twin, ada), ended(twin, ada)
    give(twin, first, ada)
    take(twin, ada)
    before_the_next_commit(twin, lambda: give(twin, second, ada))
    made, is_news = give(twin, first, ada)
    assert (made.job, is_news) == (second, False)
    assert sum("published#ada/nightly/v1/a.bin" in each.owners for each in of(twin, Artifact)) == 1


def test_everything_is_audited(twin: Twin, ada: User) -> None:
    job = ended(twin, ada)
    give(twin, job, ada)
    take(twin, ROOT)
    published.set_access(twin.on, ada, "ada", "nightly", Access.PRIVATE, "")
    full = "ada/nightly/v1/a.bin"
    assert audited(twin) == [
        ("ada", "publish", full, f"/work/0 of job {job}"),
        ("root", "unpublish", full, ""),
    ]
    (entry,) = audit.list_entries(twin.on, Wanted("ada"), 1, "")[0]
    assert (entry.did, entry.what, entry.detail) == ("open series", "ada/nightly", "private")


@pytest.mark.parametrize("name", [("..", "v", "n"), ("s", "", "n"), ("s", "v", "n/m")])
def test_what_cannot_be_a_name(twin: Twin, ada: User, name: Sequence[str]) -> None:
    job = ended(twin, ada)
    assert refused(lambda: give(twin, job, ada, name=name)) == (400, "bad-request")


def test_what_cannot_be_published(twin: Twin, ada: User) -> None:
    job = asks(twin, ada, "#!/bin/sh\n")
    send(twin, job)
    assert refused(lambda: give(twin, job, ada)) == (409, "job-not-settled")
    finish(twin, job, Result.FAILED)
    for name in ("x", f"{'0' * 26}.{job}"):
        call = lambda name=name: published.publish(twin.on, ada, job_of(twin, job), name, *NAME)  # noqa: E731
        looked = gets(twin, Artifact)
        assert refused(call) == (404, "output-not-found")
        assert len(looked) == (name != "x")
    mine = (f"job#{job}",)
    put(twin, artifact(twin), owners=())
    assert refused(lambda: give(twin, job, ada)) == (404, "output-not-found")
    for change in ({"lost": START}, {"lost": None, "state": ArtifactState.CREATING}):
        put(twin, artifact(twin), owners=mine, **change)
        assert refused(lambda: give(twin, job, ada)) == (409, "no-bytes")
    put(twin, artifact(twin), state=ArtifactState.CREATED)
    pinned = tuple(f"pin#u{number}" for number in range(limits.OWNERS))
    put(twin, artifact(twin), owners=mine + pinned[1:])
    assert refused(lambda: give(twin, job, ada)) == (409, "too-many-owners")
    put(twin, artifact(twin), owners=mine + pinned[2:])
    assert give(twin, job, ada)[1]
    going = artifact(twin)
    put(twin, going, owners=mine)
    before_the_next_commit(twin, lambda: put(twin, artifact(twin), state=ArtifactState.DESTROYING))
    assert refused(lambda: give(twin, job, ada, name=("s", "v", "n"))) == (410, "outputs-gone")
    assert refused(lambda: published.sign(twin.on, row(twin), 60)) == (409, "no-bytes")


def test_bytes_that_are_lost_are_not_given(twin: Twin, ada: User) -> None:
    give(twin, ended(twin, ada), ada)
    put(twin, artifact(twin), lost=START)
    assert refused(lambda: published.sign(twin.on, row(twin), 60)) == (409, "no-bytes")


def test_why_explains_what_keeps_a_published_artifact(twin: Twin, ada: User) -> None:
    job = ended(twin, ada)
    give(twin, job, ada)
    keeper = why(twin).keepers[1]
    assert (keeper.owner, keeper.until) == ("published#ada/nightly/v1/a.bin", None)
    assert keeper.why == "ada published it as ada/nightly/v1/a.bin"
    assert keeper.frees == "ada, or an operator, with `penstock published unpublish`"
    assert explain.dry_run(twin.on, 10**8).going == []
    drop(twin, row(twin))
    assert why(twin).keepers[1].why == "it is published as ada/nightly/v1/a.bin, and no row says so"


# By the job's file


def test_a_job_that_succeeds_publishes_before_its_end_is_seen(twin: Twin, ada: User) -> None:
    job = asks(twin, ada, env={"GITHUB_SHA": "c0ffee"})
    send(twin, job)
    seen: list[State] = []
    commit = twin.store.commit

    def noting(changes: Sequence[Change]) -> bool:
        if any(isinstance(each, Create) and isinstance(each.row, Published) for each in changes):
            seen.append(job_of(twin, job).state)
        return commit(changes)

    twin.store.commit = noting  # type: ignore[method-assign]
    finish(twin, job)
    assert seen == [State.RUNNING]
    made = row(twin)
    assert (made.full, made.path, made.job, made.by) == ("ada/nightly/c0ffee/a.bin", "/work/0", job, "ada")
    assert job_of(twin, job).end.reason == "the script ended"
    assert "published /work/0 as ada/nightly/c0ffee/a.bin" in told(twin, job)
    assert audited(twin) == [("ada", "publish", made.full, f"/work/0 of job {job}")]


@pytest.mark.parametrize("result", [Result.FAILED, Result.CANCELLED, Result.TIMED_OUT])
def test_a_job_that_does_not_succeed_publishes_nothing(twin: Twin, ada: User, result: Result) -> None:
    job = asks(twin, ada)
    send(twin, job)
    finish(twin, job, result)
    assert of(twin, Published) == []


def test_a_job_that_publishes_nothing_is_not_looked_at_for_it(
    twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []
    monkeypatch.setattr(published, "publish_declared", lambda _, job: looked.append(job.id) or "")
    silent, loud = asks(twin, ada, "#!/bin/sh\n"), asks(twin, ada)
    for job in (silent, loud):
        finish(twin, job)
    assert looked == [loud]


def test_without_a_commit_the_version_is_the_job(twin: Twin, ada: User) -> None:
    job = asks(twin, ada)
    send(twin, job)
    finish(twin, job)
    assert row(twin).version_name == job


def test_what_cannot_be_a_version_is_refused_at_once(twin: Twin, ada: User) -> None:
    assert refused(lambda: asks(twin, ada, env={"GITHUB_SHA": "a b"})) == (400, "bad-request")


def test_an_output_that_is_not_there_is_said_loudly(twin: Twin, ada: User) -> None:
    more = "".join(
        f'#: [[publish]]\n#: from_output = "/work/{number}"\n#: series = "s"\n#: name = "n{number}"\n'
        for number in range(1, 6)
    )
    job = asks(twin, ada, FILE + more)
    send(twin, job, 2)
    finish(twin, job)
    settled = job_of(twin, job)
    assert settled.end.outcome == "succeeded"
    missing = [f"the job kept no /work/{number}; no output rule matched such a file" for number in range(2, 6)]
    assert settled.end.reason == f"the script ended; BUT NOT PUBLISHED: {'; '.join(missing[:3])}; and 1 more"
    assert [each.name for each in of(twin, Published)] == ["a.bin", "n1"]
    lines = [line for line in told(twin, job) if "NOT published" in line]
    assert lines == [f"NOT published: /work/{number}: {text}" for number, text in enumerate(missing, 2)]


def test_three_that_are_not_there_are_all_named(twin: Twin, ada: User) -> None:
    more = "".join(
        f'#: [[publish]]\n#: from_output = "/work/{number}"\n#: series = "s"\n#: name = "n{number}"\n'
        for number in (1, 2, 3)
    )
    job = asks(twin, ada, FILE + more)
    send(twin, job)
    finish(twin, job)
    assert str(job_of(twin, job).end.reason).endswith("/work/3; no output rule matched such a file")


def test_other_bytes_under_a_jobs_name_are_said_and_the_job_succeeds(twin: Twin, ada: User) -> None:
    for send_ in (send, other_bytes):
        job = asks(twin, ada, env={"GITHUB_SHA": "c0ffee"})
        send_(twin, job)  # type: ignore[operator]
        finish(twin, job)
    assert job_of(twin, job).end.outcome == "succeeded"
    assert "BUT NOT PUBLISHED: ada/nightly/c0ffee/a.bin was given other bytes" in str(job_of(twin, job).end.reason)


def test_the_same_bytes_of_another_run_are_good_and_not_told_twice(twin: Twin, ada: User) -> None:
    for _ in range(2):
        job = asks(twin, ada, env={"GITHUB_SHA": "c0ffee"})
        send(twin, job)
        finish(twin, job)
    assert job_of(twin, job).end.reason == "the script ended"
    assert row(twin).job != job
    assert not [line for line in told(twin, job) if line.startswith("published")]


def test_what_was_withdrawn_is_not_published_again_by_a_job(twin: Twin, ada: User) -> None:
    first = asks(twin, ada, env={"GITHUB_SHA": "c0ffee"})
    send(twin, first)
    finish(twin, first)
    take(twin, ada, name=("nightly", "c0ffee", "a.bin"))
    settle.settle(twin.on, first, 1, None, None)
    again = asks(twin, ada, env={"GITHUB_SHA": "c0ffee"})
    send(twin, again)
    finish(twin, again)
    assert row(twin).withdrawn
    assert "was withdrawn by ada" in str(job_of(twin, again).end.reason)


def test_who_settles_twice_publishes_once_and_what_was_interrupted_is_gone_on_with(twin: Twin, ada: User) -> None:
    job = asks(twin, ada)
    send(twin, job)
    with dies_after_the_report(twin):
        finish(twin, job)
    published.publish_declared(twin.on, job_of(twin, job))  # and here whoever settled it died
    assert row(twin).job == job
    finish(twin, job)
    settle.settle(twin.on, job, 1, None, None)
    assert job_of(twin, job).end.reason == "the script ended"
    assert len(audited(twin)) == 1


def test_only_what_the_last_attempt_kept_is_published(twin: Twin, ada: User) -> None:
    job = asks(twin, ada)
    send(twin, job)
    put(twin, artifact(twin), attempt=7)
    finish(twin, job)
    assert of(twin, Published) == []
    assert "kept no /work/0" in str(job_of(twin, job).end.reason)


def test_what_has_not_arrived_is_not_published(twin: Twin, ada: User) -> None:
    job = asks(twin, ada)
    send(twin, job)
    put(twin, artifact(twin), owners=())
    finish(twin, job)
    assert of(twin, Published) == []


def test_a_job_whose_spec_is_gone_publishes_nothing(twin: Twin, ada: User) -> None:
    job = asks(twin, ada)
    put(twin, job_of(twin, job), spec=None)
    assert published.publish_declared(twin.on, job_of(twin, job)) == ""


def test_a_repository_publishes_under_its_own_name(twin: Twin, ada: User) -> None:
    twin.store.commit([Create(User(name="oxide:hubris", created=START))])
    job = asks(twin, CI, owner="oxide:hubris", env={"GITHUB_SHA": "c0ffee"})
    send(twin, job)
    finish(twin, job)
    assert row(twin).full == "oxide:hubris/nightly/c0ffee/a.bin"
    assert row(twin).by == "oxide:hubris"
    name = ("nightly", "c0ffee", "a.bin")
    assert refused(lambda: take(twin, ada, "oxide:hubris", name)) == (403, "privilege-missing")
    assert take(twin, CI, "oxide:hubris", name).withdrawn_by == "gate"


def test_a_matrix_publishes_what_each_of_its_jobs_says(twin: Twin, ada: User) -> None:
    script = FILE.replace('name = "a.bin"', 'name = "${{ matrix.os }}.bin"').replace(
        "#: output_rules", '#: matrix.os = ["one", "two"]\n#: output_rules'
    )
    for os in ("one", "two"):
        job = asks(twin, ada, script, matrix={"os": os}, env={"GITHUB_SHA": "c0ffee"})
        send(twin, job)
        finish(twin, job)
    assert [each.name for each in of(twin, Published)] == ["one.bin", "two.bin"]


# Who may read, and what is listed


def names(twin: Twin, user: User, series: str = "", version: str = "", limit: int = 50) -> list[str]:
    found, page = list[str](), ""
    while True:
        some, following = published.list_published(twin.on, user, "ada", series, version, limit, page)
        found += [f"{each.series}/{each.version_name}/{each.name}" for each in some]
        if following is None:
            return found
        assert following != page
        page = following


def opens(twin: Twin, user: User, series: str, access: Access | None, privilege: str = "") -> Series | None:
    return published.set_access(twin.on, user, "ada", series, access, privilege)


def test_what_may_not_be_seen_is_neither_found_nor_listed(twin: Twin, ada: User) -> None:
    """SEC-2"""
    job = ended(twin, ada)
    give(twin, job, ada)
    give(twin, job, ada, name=("inner", "v1", "b.bin"))
    opens(twin, ada, "inner", Access.PRIVATE)
    for who in (EVE, None):
        assert published.find(twin.on, who, "ada", *NAME)
        for name in (("inner", "v1", "b.bin"), ("inner", "v1", "nothing")):
            call = lambda name=name, who=who: published.find(twin.on, who, "ada", *name)  # noqa: E731
            assert refused(call) == (404, "published-file-not-found")
            assert refused(lambda name=name: take(twin, EVE, name=name)) == (404, "published-file-not-found")
    assert names(twin, EVE) == ["nightly/v1/a.bin"]
    assert names(twin, ada) == ["inner/v1/b.bin", "nightly/v1/a.bin"]
    assert refused(lambda: take(twin, EVE)) == (403, "privilege-missing")
    opens(twin, ROOT, "inner", Access.PRIVILEGE, "releases")
    reader = User(name="rel", privileges=("releases",), created=START)
    assert names(twin, reader) == ["inner/v1/b.bin", "nightly/v1/a.bin"]
    assert names(twin, EVE) == ["nightly/v1/a.bin"]
    opens(twin, ada, "inner", None)
    assert len(names(twin, EVE)) == 2
    opens(twin, ada, ALL_SERIES, Access.PRIVATE)
    assert names(twin, EVE) == []
    assert [each.name for each in published.show_access(twin.on, ada, "ada")] == [ALL_SERIES]


def test_a_list_in_pages_of_a_series_or_a_version_without_what_was_withdrawn(twin: Twin, ada: User) -> None:
    job = ended(twin, ada)
    for series, version, name in [("a", "1", "x"), ("a", "1", "y"), ("a", "2", "x"), ("b", "1", "x"), ("a", "10", "z")]:
        give(twin, job, ada, name=(series, version, name))
    every = ["a/1/x", "a/1/y", "a/10/z", "a/2/x", "b/1/x"]
    assert sorted(names(twin, ada, limit=1)) == every
    assert sorted(names(twin, ada, limit=2)) == every
    assert sorted(names(twin, ada)) == every
    assert sorted(names(twin, ada, "a")) == every[:4]
    assert names(twin, ada, "a", "1") == every[:2]
    take(twin, ada, name=("a", "1", "x"))
    assert names(twin, ada, "a", "1", 1) == ["a/1/y"]


def test_a_list_goes_on_behind_what_may_not_be_seen(twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(published, "READ", 2)
    monkeypatch.setattr(published, "SCANNED", 4)
    job = ended(twin, ada)
    for number in range(9):
        give(twin, job, ada, name=("inner" if number < 7 else "open", "v", f"n{number}"))
    opens(twin, ada, "inner", Access.PRIVATE)
    assert published.list_published(twin.on, EVE, "ada", "", "", 50, "") == ([], "inner/v/n3")
    assert names(twin, EVE) == ["open/v/n7", "open/v/n8"]
    found, page = published.list_published(twin.on, ada, "ada", "", "", 3, "")
    assert ([each.name for each in found], page) == (["n0", "n1", "n2"], "inner/v/n2")
    assert published.list_published(twin.on, EVE, "ada", "open", "", 2, "")[1] == "open/v/n8"


@pytest.mark.parametrize(
    ("of_", "series", "version", "page"),
    [
        ("A", "", "", ""), ("ada", "", "v", ""), ("ada", "..", "", ""), ("ada", "s", "a#b", ""),
        ("ada", "", "", "a/b"), ("ada", "", "", "a/b/.."), ("ada", "", "", "a/b/c/d"),
    ],
)  # fmt: skip
def test_what_cannot_be_listed(twin: Twin, ada: User, of_: str, series: str, version: str, page: str) -> None:
    call = lambda: published.list_published(twin.on, ada, of_, series, version, 10, page)  # noqa: E731
    assert refused(call) == (400, "bad-request")


@pytest.mark.parametrize(
    "name", [("A", *NAME), ("ada", "..", "v", "n"), ("ada", "s", "v#w", "n"), ("ada", "s", "v", "")]
)
def test_what_cannot_be_found(twin: Twin, ada: User, name: Sequence[str]) -> None:
    of_, *rest = name
    looked = gets(twin, Published)
    assert refused(lambda: published.find(twin.on, ada, of_, *rest)) == (404, "published-file-not-found")
    assert looked == []


def test_who_may_say_who_reads(twin: Twin, ada: User) -> None:
    """SEC-2"""
    assert refused(lambda: opens(twin, EVE, "a", Access.PUBLIC)) == (404, "user-not-found")
    assert refused(lambda: published.show_access(twin.on, EVE, "ada")) == (404, "user-not-found")
    assert refused(lambda: published.show_access(twin.on, ROOT, "A")) == (404, "user-not-found")
    call = lambda: published.set_access(twin.on, ROOT, "A", "s", Access.PUBLIC, "")  # noqa: E731
    assert refused(call) == (404, "user-not-found")
    for series, access, privilege in (
        ("..", Access.PUBLIC, ""),
        ("s", Access.PUBLIC, "p"),
        ("s", Access.PRIVILEGE, ""),
        ("s", Access.PRIVILEGE, "A B"),
        ("s", None, "p"),
    ):
        call = lambda series=series, access=access, privilege=privilege: opens(  # type: ignore[misc] # noqa: E731
            twin, ada, series, access, privilege
        )
        assert refused(call) == (400, "bad-request")
    written = commits(twin)
    assert opens(twin, ada, "a", None) is None
    assert written == []
    opens(twin, ada, "a", Access.PUBLIC)
    opens(twin, ada, "a", Access.PRIVILEGE, "rel")
    (said,) = published.show_access(twin.on, ada, "ada")
    assert (said.access, said.privilege) == (Access.PRIVILEGE, "rel")
    assert audit.list_entries(twin.on, Wanted(), 1, "")[0][0].detail == "privilege rel"
    opens(twin, ada, "a", None)
    assert audit.list_entries(twin.on, Wanted(), 1, "")[0][0].detail == "as the others"


def test_of_many_series_something_may_be_said_and_no_more(twin: Twin, ada: User) -> None:
    for number in range(MAX_SERIES):
        opens(twin, ada, f"s{number}", Access.PRIVATE)
    assert refused(lambda: opens(twin, ada, "one-more", Access.PRIVATE)) == (409, "too-many-series")
    opens(twin, ada, "s0", Access.PUBLIC)
    opens(twin, ada, "s1", None)
    opens(twin, ada, "one-more", Access.PRIVATE)


def test_a_rule_that_does_not_exist_can_be_removed_when_no_more_rules_fit(
    twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(published, "MAX_SERIES", 1)
    opens(twin, ada, "a", Access.PRIVATE)
    assert opens(twin, ada, "b", None) is None
    assert [each.name for each in published.access_rules(twin.on, "ada")] == ["a"]


def test_of_two_users_who_remove_a_rule_at_once_only_the_first_is_audited(twin: Twin, ada: User) -> None:
    opens(twin, ada, "a", Access.PUBLIC)
    before_the_next_commit(twin, lambda: opens(twin, ROOT, "a", None))
    assert opens(twin, ada, "a", None) is None
    entries = audit.list_entries(twin.on, Wanted(), 10, "")[0]
    assert [entry.by for entry in entries if entry.detail == "as the others"] == ["root"]


def test_a_rule_that_is_removed_while_it_is_changed_does_not_come_back_beyond_the_limit(
    twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(published, "MAX_SERIES", 1)
    opens(twin, ada, "a", Access.PUBLIC)

    def replace_by_another() -> None:
        opens(twin, ROOT, "a", None)
        opens(twin, ROOT, "b", Access.PUBLIC)

    before_the_next_commit(twin, replace_by_another)
    assert refused(lambda: opens(twin, ada, "a", Access.PRIVATE)) == (409, "too-many-series")
    assert [each.name for each in published.access_rules(twin.on, "ada")] == ["b"]
