"""Caches of jobs: who writes first has the key, who reads what, and what goes to make room. [ART-1] [ART-2] [SEC-2]"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import timedelta

import pytest

from penstock.api.jobs import show
from penstock.domain import caches as rules
from penstock.domain.artifacts import volumes
from penstock.domain.artifacts.artifacts import DOWNLOAD_WITHIN, Artifact, ArtifactState, artifact_key
from penstock.domain.artifacts.volumes import PART_BYTES, WHOLE_BYTES, object_name
from penstock.domain.caches import TRUNK, CacheEntry, CacheUse
from penstock.domain.commands import AgentParts, CacheName, SaveCache, SubmitJob
from penstock.domain.jobfile.sections import CacheAsk
from penstock.domain.replies import CacheDropped, CacheHit, CacheMiss, CacheRefused, CacheSaved, CacheTaken
from penstock.domain.users.audit import Entry
from penstock.domain.users.users import User
from penstock.kernel import limits
from penstock.kernel.errors import Refused
from penstock.kernel.rows import Create
from penstock.system import current_site
from penstock.testing.twin import START, Twin
from penstock.usecases import caches
from penstock.usecases.artifacts import expire, explain, pins
from penstock.usecases.jobs import settle
from penstock.usecases.jobs import submit as jobs_submit
from penstock.usecases.site import apply
from penstock.usecases.workers import agents
from tests.usecases.caches import DIGEST, adds_up, archive, ask, entries, found, refused, run, save, sent
from tests.usecases.conftest import SITE
from tests.usecases.exact import commits, drop, put
from tests.usecases.races import before_the_next_commit
from tests.usecases.retained_jobs import of
from tests.usecases.steps import hello, job_of, submit

DAY = timedelta(days=1)
BRANCH = "feature/x"


@pytest.fixture
def ada() -> User:
    return User(name="ada", privileges=("as",), created=START, version=1)


def with_quota(most: int) -> Twin:
    made = Twin()
    apply.apply(made.on, "admin", f"{SITE}[limits]\ncache_bytes = {most}\n", "site.toml")
    made.run()
    return made


def test_what_one_job_saves_the_next_restores(twin: Twin, ada: User) -> None:
    first = run(twin, ada)
    assert caches.find(twin.on, first, ask()) == CacheMiss()
    id = save(twin, first)
    second = run(twin, ada)
    told = caches.find(twin.on, second, ask())
    assert told == CacheHit(
        exact=True, id=id, key="k", scope="trunk", size=10, sha256=DIGEST, url=f"memory://{object_name(id)}"
    )
    (artifact,) = [row for row in of(twin, Artifact) if row.id == id]
    assert (artifact.sort, artifact.by, artifact.job, artifact.path) == ("cache", "ada", first.id, "/work/deps")
    assert (len(artifact.owners), artifact.due) == (1, None)
    assert adds_up(twin)


def test_all_but_the_key_is_compared_whole(twin: Twin, ada: User) -> None:
    job = run(twin, ada)
    save(twin, job, "deps-1")
    assert found(twin, job, "deps-", "") is not None
    assert found(twin, job, "deps-1", "", name="dep") is None
    assert found(twin, job, "deps-1", "", paths=("/work/deps", "/b")) is None
    assert found(twin, replace(job, request=replace(job.request, target_resolved="other")), "deps-1", "") is None
    assert found(twin, replace(job, owner="eve"), "deps-1", "") is None


def test_the_first_of_two_writers_has_the_key_and_the_second_is_told(twin: Twin, ada: User) -> None:
    job = run(twin, ada)
    first, second = sent(twin, job), sent(twin, job)
    assert caches.commit(twin.on, job, ask(), first) == CacheSaved(kept=True, id=first, job=job.id, scope="trunk")
    assert caches.commit(twin.on, job, ask(), second) == CacheSaved(kept=False, id=first, job=job.id, scope="trunk")
    assert entries(twin) == {first}
    assert found(twin, job) == first
    assert caches.begin(twin.on, job, archive(1)) == CacheTaken(first, job.id, "trunk")
    twin.world.time += DOWNLOAD_WITHIN
    expire.expire_overdue(twin.on)
    assert set(twin.objects.objects) == {object_name(first)}
    assert adds_up(twin)


def test_two_that_commit_at_the_same_instant_are_one_and_then_the_other(twin: Twin, ada: User) -> None:
    job = run(twin, ada)
    first, second = sent(twin, job), sent(twin, job)
    before_the_next_commit(twin, lambda: caches.commit(twin.on, job, ask(), second))
    assert caches.commit(twin.on, job, ask(), first).kept is False
    assert entries(twin) == {second}
    assert adds_up(twin)


def test_a_commit_that_is_repeated_changes_nothing(twin: Twin, ada: User) -> None:
    job = run(twin, ada)
    id = save(twin, job)
    written = commits(twin)
    assert caches.commit(twin.on, job, ask(), id).kept is True
    assert written == []


def test_the_newest_with_the_first_restore_key_that_fits(twin: Twin, ada: User) -> None:
    job = run(twin, ada)
    old, _, new, other = (save(twin, job, key) for key in ("a-2", "a-1", "a-3", "b-1"))
    put(twin, *[row for row in of(twin, CacheEntry) if row.id == old], made=twin.world.now() + DAY)
    assert found(twin, job, "a-9", "a-") == old
    assert found(twin, job, "a-3", "a-") == new
    assert found(twin, job, "a-9", "x-", "b-", "a-") == other
    assert found(twin, job, "a-9", "x-") is None
    assert caches.find(twin.on, job, ask("a-9"), ["b"]).exact is False


def test_a_branch_cannot_poison_the_trunk(twin: Twin, ada: User) -> None:
    """SEC-2: what a branch saves no job of the trunk, and of no other branch, ever restores."""
    branch = run(twin, ada, BRANCH)
    mine = save(twin, branch, "k")
    trunk = run(twin, ada)
    assert found(twin, trunk, "k", "", "k") is None
    assert found(twin, run(twin, ada, "other"), "k", "", "k") is None
    theirs = save(twin, run(twin, ada), "k")
    again = run(twin, ada, BRANCH)
    assert found(twin, again, "k") == mine
    assert caches.begin(twin.on, again, archive(1, "k2")).there is False
    assert found(twin, run(twin, ada, "other"), "k") == theirs
    assert found(twin, run(twin, ada), "k") == theirs
    assert {(row.scope, row.id) for row in of(twin, CacheEntry)} == {(BRANCH, mine), ("trunk", theirs)}


def test_a_branch_restores_its_own_before_the_trunks(twin: Twin, ada: User) -> None:
    theirs = save(twin, run(twin, ada), "a-1")
    branch = run(twin, ada, BRANCH)
    assert found(twin, branch, "a-1") == found(twin, branch, "a-2", "a-") == theirs
    mine = save(twin, branch, "a-0")
    assert found(twin, branch, "a-2", "a-") == mine
    assert found(twin, branch, "a-1", "a-") == theirs, "the key itself is better than a beginning of one's own"


def test_no_script_says_its_scope(twin: Twin, ada: User) -> None:
    """SEC-2: nothing of a job's file has to do with it."""
    script = '#!/bin/bash\n#: name = "a"\n#: variety = "basic"\n#: tags = { cache_scope = "trunk", scope = "trunk" }\n'
    job = jobs_submit.submit(twin.on, ada, SubmitJob(script, cache_scope=BRANCH), None)
    assert job_of(twin, job).request.cache_scope == show(job_of(twin, job), []).cache_scope == BRANCH
    wrong = script.replace("tags = {", "cache_scope = 1 #")
    assert refused(lambda: jobs_submit.submit(twin.on, ada, SubmitJob(wrong), None))[1] == "bad-job-file"
    with pytest.raises(Refused) as told:
        submit(twin, ada, cache_scope="a b")
    assert (told.value.status, [each.where for each in told.value.faults]) == (400, ["cache_scope"])


def test_whose_caches_a_job_adds_to(twin: Twin, ada: User) -> None:
    assert run(twin, ada).request.cache_scope == TRUNK
    assert run(twin, ada, BRANCH).request.cache_scope == BRANCH


def test_a_repositorys_job_without_a_scope_reads_the_trunk_and_adds_nothing(twin: Twin, ada: User) -> None:
    assert twin.store.commit([Create(User(name="oxide:x", created=twin.world.now()))])
    id = save(twin, run(twin, ada, "trunk", owner="oxide:x"))
    job = run(twin, ada, owner="oxide:x")
    assert (job.request.cache_scope, found(twin, job)) == ("", id)
    assert show(job, []).cache_scope is None
    told = caches.begin(twin.on, job, archive(1, "other"))
    assert told == CacheRefused("this job was submitted without a scope, and adds to no cache (docs/users/caches.md)")
    again = job_of(twin, jobs_submit.retry(twin.on, ada, run(twin, ada, BRANCH, owner="oxide:x")))
    assert again.request.cache_scope == BRANCH


def test_a_restore_keeps_an_entry_for_longer_and_writes_no_more_than_once_an_hour(twin: Twin, ada: User) -> None:
    save(twin, run(twin, ada))
    job = run(twin, ada)
    written = commits(twin)
    assert found(twin, job)
    assert written == []
    twin.world.time += rules.TOUCH_INTERVAL
    assert found(twin, job)
    assert found(twin, job)
    assert len(written) == 1
    (row,) = of(twin, CacheEntry)
    assert row.used == twin.world.now()
    assert row.until == row.used + 14 * DAY


def test_what_nobody_restores_goes_in_time_and_not_before(twin: Twin, ada: User) -> None:
    """ART-2"""
    id = save(twin, run(twin, ada))
    (row,) = of(twin, CacheEntry)
    twin.world.time = row.until - timedelta(seconds=1)
    expire.expire_overdue(twin.on)
    caches.expire(twin.on, "ada", row.key.sk.partition("#")[2])
    assert entries(twin) == {id}
    (going,) = explain.dry_run(twin.on, 60).going
    assert (going.id, going.at) == (id, row.until)
    assert "the cache deps of ada" in going.why
    twin.world.time = row.until
    expire.expire_overdue(twin.on)
    assert entries(twin) == set()
    assert adds_up(twin)
    caches.expire(twin.on, "ada", row.key.sk.partition("#")[2])


def test_bytes_stay_for_as_long_as_somebody_may_fetch_them(twin: Twin, ada: User) -> None:
    """ART-1: a job that was given leave to fetch an entry fetches all of it, whatever happens to the entry."""
    id = save(twin, run(twin, ada))
    job = run(twin, ada)
    assert found(twin, job) == id
    caches.delete(twin.on, ada, id)
    assert found(twin, job) is None
    twin.world.time += rules.DOWNLOAD_SECONDS
    expire.expire_overdue(twin.on)
    assert object_name(id) in twin.objects.objects
    twin.world.time += DOWNLOAD_WITHIN - rules.DOWNLOAD_SECONDS
    expire.expire_overdue(twin.on)
    assert object_name(id) not in twin.objects.objects


def test_an_entry_that_goes_while_it_is_found_may_be_fetched_still(twin: Twin, ada: User) -> None:
    id = save(twin, run(twin, ada))
    job = run(twin, ada)
    twin.world.time += rules.TOUCH_INTERVAL
    before_the_next_commit(twin, lambda: caches.delete(twin.on, ada, id))
    assert found(twin, job) == id
    assert entries(twin) == set()
    assert adds_up(twin)


def test_what_somebody_pinned_stays_when_the_cache_lets_it_go(twin: Twin, ada: User) -> None:
    """ART-1"""
    id = save(twin, run(twin, ada))
    pins.pin(twin.on, ada, id, "to look at", None)
    caches.delete(twin.on, ada, id)
    (row,) = [row for row in of(twin, Artifact) if row.id == id]
    assert row.owners == ("pin#ada",)
    assert refused(lambda: caches.find_entry(twin.on, ada, id)) == (404, "cache-not-found")


def test_an_entry_that_its_job_commits_again_for_a_key_that_is_taken_stays(twin: Twin, ada: User) -> None:
    job = run(twin, ada)
    one, two = save(twin, job, "one"), save(twin, job, "two")
    pins.pin(twin.on, ada, one, "the only good one", None)
    before = twin.store.get(artifact_key(one), Artifact)
    assert caches.commit(twin.on, job, ask("two"), one) == CacheSaved(False, two, job.id, TRUNK)
    assert twin.store.get(artifact_key(one), Artifact) == before
    assert found(twin, job, "one") == one


def test_an_entry_that_its_job_commits_again_where_there_is_no_room_stays(
    twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = run(twin, ada)
    one = save(twin, job, "one")
    before = twin.store.get(artifact_key(one), Artifact)
    monkeypatch.setattr(rules, "is_room", lambda *given: False)
    monkeypatch.setattr(rules, "entries_to_evict", lambda *given: [])
    assert isinstance(caches.commit(twin.on, job, ask("other"), one), CacheDropped)
    assert (twin.store.get(artifact_key(one), Artifact), found(twin, job, "one")) == (before, one)


def test_the_quota_is_kept_by_what_was_unused_for_longest(ada: User) -> None:
    twin = with_quota(30)
    job = run(twin, ada)
    a, b, c = (save(twin, job, key) for key in "abc")
    twin.world.time += rules.TOUCH_INTERVAL
    assert found(twin, job, "a") == a
    d = save(twin, job, "d")
    assert entries(twin) == {a, c, d}
    e = save(twin, job, "e", 20)
    assert entries(twin) == {a, e} or entries(twin) == {d, e}
    assert adds_up(twin)
    assert b not in entries(twin)
    assert refused(lambda: caches.begin(twin.on, job, archive(31, "f"))) == (413, "cache-too-big")
    assert save(twin, job, "g", 30) in entries(twin)
    assert caches.usage(twin.on, "ada").size == 30


def test_the_quota_of_one_owner_is_none_of_anothers(ada: User) -> None:
    twin = with_quota(10)
    eve = replace(ada, name="eve")
    first, second = save(twin, run(twin, ada)), save(twin, run(twin, eve))
    assert entries(twin) == {first, second}


def test_a_branch_that_would_push_the_trunk_out_is_told_that_there_is_no_room(ada: User) -> None:
    """SEC-2: no branch can make the trunk's jobs work without what they have."""
    twin = with_quota(10)
    trunk = save(twin, run(twin, ada))
    branch = run(twin, ada, BRANCH)
    id = sent(twin, branch)
    told = caches.commit(twin.on, branch, ask(), id)
    assert told == CacheDropped("the caches of ada take 10 of 10 bytes, and none of them may go for this one")
    assert entries(twin) == {trunk}
    assert artifact_of(twin, id).state is ArtifactState.DESTROYING
    twin.world.time += DAY
    assert save(twin, branch) in entries(twin)


def test_room_is_made_for_a_big_one_in_several_writes(ada: User) -> None:
    twin = with_quota(100)
    job = run(twin, ada)
    for number in range(100):
        put(twin, job_of(twin, job.id), cache_saves=0)
        save(twin, job, f"k{number}", 1)
    put(twin, job_of(twin, job.id), cache_saves=0)
    id, written = sent(twin, job, "big", 95), commits(twin)
    assert caches.commit(twin.on, job, ask("big"), id).kept is True
    assert max(map(len, written)) < 100
    assert len(written) == 4
    assert len(entries(twin)) == 6
    assert adds_up(twin)


def test_room_that_somebody_takes_meanwhile_is_made_again(ada: User) -> None:
    twin = with_quota(20)
    job = run(twin, ada)
    save(twin, job, "a")
    late, other = sent(twin, job, "late"), sent(twin, job, "other", 20)
    before_the_next_commit(twin, lambda: caches.commit(twin.on, job, ask("other"), other))
    assert caches.commit(twin.on, job, ask("late"), late).kept is True
    assert entries(twin) == {late}
    assert adds_up(twin)


def test_an_owner_has_only_so_many_entries(twin: Twin, ada: User) -> None:
    job = run(twin, ada)
    first = save(twin, job, "a")
    second = save(twin, job, "b")
    (use,) = of(twin, CacheUse)
    put(twin, use, count=limits.CACHE_ENTRIES)
    third = save(twin, job, "c")
    assert entries(twin) == {second, third}
    assert first not in entries(twin)


def test_an_attempt_that_is_over_adds_nothing_and_pushes_nothing_out(ada: User) -> None:
    """SLOT-3"""
    twin = with_quota(10)
    job = run(twin, ada, retries=1)
    other, same, id = sent(twin, job, "other"), sent(twin, job, "other"), sent(twin, job)
    assert caches.commit(twin.on, job, ask("other"), other).kept is True
    settle.settle(twin.on, job.id, 1, "Lost", "its worker was lost")
    assert refused(lambda: caches.begin(twin.on, job, archive(1))) == (410, "lease-gone")
    assert refused(lambda: caches.commit(twin.on, job, ask(), id)) == (410, "lease-gone")
    assert refused(lambda: caches.commit(twin.on, job, ask("other"), same)) == (410, "lease-gone")
    assert entries(twin) == {other}


def test_an_attempt_that_ends_meanwhile_adds_nothing(twin: Twin, ada: User) -> None:
    """SLOT-3"""
    job = run(twin, ada, retries=1)
    id = sent(twin, job)
    before_the_next_commit(twin, lambda: settle.settle(twin.on, job.id, 1, "Lost", "its worker was lost"))
    assert refused(lambda: caches.commit(twin.on, job, ask(), id)) == (410, "lease-gone")
    assert entries(twin) == set()


def test_bytes_that_are_not_there_whole_are_no_entry(twin: Twin, ada: User) -> None:
    """ART-1"""
    job = run(twin, ada)
    id = sent(twin, job)
    for data in (None, b"", b"x" * 9, b"x" * 11):
        twin.objects.delete(object_name(id))
        if data is not None:
            twin.objects.objects[object_name(id)] = data
        assert refused(lambda: caches.commit(twin.on, job, ask(), id)) == (409, "cache-incomplete")
    assert entries(twin) == set()


def test_a_job_commits_its_own_archives_alone(twin: Twin, ada: User) -> None:
    """SEC-2"""
    first = run(twin, ada)
    id = sent(twin, first)
    second = run(twin, ada)
    assert refused(lambda: caches.commit(twin.on, second, ask(), id)) == (404, "archive-not-found")
    assert refused(lambda: caches.commit(twin.on, second, ask(), "x" * 5000)) == (404, "archive-not-found")
    put(twin, artifact_of(twin, id), sort="output")
    assert refused(lambda: caches.commit(twin.on, first, ask(), id)) == (404, "archive-not-found")


def test_an_archive_that_came_too_late_is_none(twin: Twin, ada: User) -> None:
    """ART-2"""
    job = run(twin, ada)
    id = sent(twin, job)
    put(twin, artifact_of(twin, id), state=ArtifactState.DESTROYING)
    assert refused(lambda: caches.commit(twin.on, job, ask(), id)) == (404, "archive-not-found")
    other = sent(twin, job)
    twin.world.time += DAY
    expire.expire_overdue(twin.on)
    assert refused(lambda: caches.commit(twin.on, job, ask(), other)) == (404, "archive-not-found")


def artifact_of(twin: Twin, id: str) -> Artifact:
    found = twin.store.get(artifact_key(id), Artifact)
    assert found
    return found


def lose(twin: Twin, id: str) -> None:
    put(twin, artifact_of(twin, id), lost=twin.world.now())


def test_an_entry_whose_bytes_are_lost_is_a_miss_and_makes_place(twin: Twin, ada: User) -> None:
    job = run(twin, ada)
    lost, there = save(twin, job, "k-1"), save(twin, job, "k-0")
    lose(twin, lost)
    put(twin, *[row for row in of(twin, CacheEntry) if row.id == lost], made=twin.world.now() + DAY)
    assert found(twin, job, "k-1") is None
    assert entries(twin) == {there}
    lose(twin, there)
    again = save(twin, job, "k-0")
    assert entries(twin) == {again}
    assert found(twin, job, "k-0") == again
    assert adds_up(twin)


def test_where_the_newest_is_lost_the_next_restore_key_is_tried(twin: Twin, ada: User) -> None:
    job = run(twin, ada)
    lost, there = save(twin, job, "a-1"), save(twin, job, "b-1")
    drop(twin, artifact_of(twin, lost))
    assert found(twin, job, "x", "a-", "b-") == there


def test_a_job_saves_only_so_often(twin: Twin, ada: User) -> None:
    job = run(twin, ada)
    put(twin, job_of(twin, job.id), cache_saves=limits.CACHE_SAVES - 1)
    sent(twin, job)
    assert job_of(twin, job.id).usage.cache_saves == limits.CACHE_SAVES
    assert refused(lambda: sent(twin, job, "k2")) == (409, "too-many-saves")


@pytest.mark.parametrize(
    "wrong",
    [
        ask(name=""),
        ask(name="a/b"),
        ask("ä"),
        ask("k" * 513),
        ask(paths=()),
        ask(paths=("/a",) * 21),
        ask(paths=("/a", "x" * 1025)),
    ],
)
def test_what_is_no_cache(twin: Twin, ada: User, wrong: CacheName) -> None:
    job = run(twin, ada)
    assert refused(lambda: caches.find(twin.on, job, wrong)) == (400, "bad-request")
    assert refused(lambda: caches.begin(twin.on, job, SaveCache(**vars(wrong), size=1, sha256=DIGEST))) == (
        400,
        "bad-request",
    )
    assert refused(lambda: caches.commit(twin.on, job, wrong, "x")) == (400, "bad-request")


def test_what_is_no_archive(twin: Twin, ada: User) -> None:
    job = run(twin, ada)
    assert caches.find(twin.on, job, ask(paths=("x" * 1024,) * 20), [""] * 10) == CacheMiss()
    assert refused(lambda: caches.find(twin.on, job, ask(), [""] * 11)) == (400, "bad-request")
    assert refused(lambda: caches.find(twin.on, job, ask(), ["ä"])) == (400, "bad-request")
    assert refused(lambda: caches.begin(twin.on, job, archive(1, sha256="x"))) == (400, "bad-request")
    assert refused(lambda: caches.begin(twin.on, job, archive(-1))) == (400, "bad-request")
    assert caches.begin(twin.on, job, archive(0)).id
    most = 1024**3
    assert caches.begin(twin.on, job, archive(most, "b")).id
    assert refused(lambda: caches.begin(twin.on, job, archive(most + 1, "c"))) == (413, "cache-too-big")


def test_who_may_see_and_delete_what_a_cache_has(twin: Twin, ada: User, root: User) -> None:
    """SEC-2"""
    eve = User(name="eve", created=twin.world.now(), version=1)
    job = run(twin, ada)
    a, b, c = (save(twin, job, key) for key in "abc")
    rows, page = caches.list_caches(twin.on, ada, "ada", 2, "")
    assert ([row.id for row in rows], page) == ([c, b], b)
    rows, page = caches.list_caches(twin.on, root, "ada", 2, b)
    assert ([row.id for row in rows], page) == ([a], None)
    assert refused(lambda: caches.list_caches(twin.on, eve, "ada", 2, "")) == (403, "privilege-missing")
    assert refused(lambda: caches.list_caches(twin.on, root, "A b", 2, "")) == (400, "bad-request")
    assert refused(lambda: caches.delete(twin.on, eve, a)) == (404, "cache-not-found")
    assert refused(lambda: caches.find_entry(twin.on, ada, "x" * 5000)) == (404, "cache-not-found")
    assert caches.find_entry(twin.on, root, a).words == "a"
    assert caches.delete(twin.on, root, a).id == a
    assert caches.delete(twin.on, ada, b).id == b
    assert refused(lambda: caches.delete(twin.on, ada, b)) == (404, "cache-not-found")
    assert entries(twin) == {c}
    assert [(row.by, row.did, row.what) for row in of(twin, Entry) if "cache" in row.did] == [
        ("root", "delete cache", f"cache {a}")
    ]


def test_what_is_being_sent_is_no_cache_yet(twin: Twin, ada: User) -> None:
    id = sent(twin, run(twin, ada))
    assert refused(lambda: caches.find_entry(twin.on, ada, id)) == (404, "cache-not-found")


def test_the_agent_is_told_of_the_caches_in_the_file(twin: Twin, ada: User) -> None:
    script = (
        '#!/bin/bash\n#: name = "a"\n#: variety = "basic"\n#: [cache.deps]\n#: paths = ["x"]\n#: key = "k"\n'
        '#: restore_keys = ["a"]\n'
    )
    job = jobs_submit.submit(twin.on, ada, SubmitJob(script), None)
    twin.run()
    told = agents.assignment(twin.on, hello(twin, job).job, current_site(twin.on), "w", None, is_kept=False)
    assert told.caches == [CacheAsk("deps", ("x",), "k", ("a",))]
    assert told.limits.cache_bytes == 1024**3


def test_why_an_archive_is_kept_names_the_cache(twin: Twin, ada: User) -> None:
    id = save(twin, run(twin, ada))
    kept = explain.why(twin.on, pins.find(twin.on, ada, id))
    (row,) = of(twin, CacheEntry)
    assert kept.until == row.until
    assert [keeper.owner for keeper in kept.keepers] == [row.owner]


def test_a_big_archive_comes_in_parts(twin: Twin, ada: User) -> None:
    data = (b"a" * PART_BYTES, b"tail")
    digests = [hashlib.sha256(each).hexdigest() for each in data]
    size, whole = sum(map(len, data)), hashlib.sha256(b"".join(data)).hexdigest()
    job = run(twin, ada)
    begun = caches.begin(twin.on, job, archive(size, sha256=whole, composite=volumes.composite(digests)))
    assert (begun.url, begun.part_bytes) == ("", PART_BYTES)
    leaves = caches.sign_parts(twin.on, job, AgentParts(begun.id, first=1, sha256=digests)).parts
    assert refused(lambda: caches.commit(twin.on, job, ask(), begun.id)) == (409, "cache-incomplete")
    for each, bytes_ in zip(leaves, data, strict=True):
        name, _, number = each.url.removeprefix("memory://").partition("#")
        twin.objects.begun[name][int(number)] = bytes_
    assert caches.commit(twin.on, job, ask(), begun.id).kept is True
    assert found(twin, job) == begun.id


def test_a_job_sends_parts_of_its_own_archives_alone(twin: Twin, ada: User) -> None:
    """SEC-2"""
    first = run(twin, ada)
    id = caches.begin(twin.on, first, archive(PART_BYTES + 1, composite=DIGEST)).id
    assert len(caches.sign_parts(twin.on, first, AgentParts(id, first=1, sha256=[DIGEST])).parts) == 1
    second = run(twin, ada)
    assert refused(lambda: caches.sign_parts(twin.on, second, AgentParts(id, first=1, sha256=[DIGEST]))) == (
        404,
        "archive-not-found",
    )


def test_an_archive_may_be_bigger_than_what_is_taken_in_one_piece(ada: User) -> None:
    twin = with_quota(3 * WHOLE_BYTES)
    bounds = f"cache_bytes = {3 * WHOLE_BYTES}\noutput_bytes = {2 * WHOLE_BYTES}"
    apply.apply(twin.on, "admin", f"{SITE}[limits]\n{bounds}", "site.toml")
    job = run(twin, ada)
    assert caches.begin(twin.on, job, archive(2 * WHOLE_BYTES, composite=DIGEST)).part_bytes == PART_BYTES
    assert refused(lambda: caches.begin(twin.on, job, archive(2 * WHOLE_BYTES, "b"))) == (400, "bad-request")
    assert refused(lambda: caches.begin(twin.on, job, archive(2 * WHOLE_BYTES + 1, "c", composite=DIGEST))) == (
        413,
        "cache-too-big",
    )
