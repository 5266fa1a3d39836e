"""Caches: what each write assumes, shown by somebody who moves in between. [ART-1] [ART-2]"""

from __future__ import annotations

from penstock.domain.artifacts.artifacts import Artifact, ArtifactState, artifact_key
from penstock.domain.caches import TOUCH_INTERVAL, CacheEntry, CacheUse
from penstock.domain.users.users import User
from penstock.testing.twin import START, Twin
from penstock.usecases import caches
from tests.usecases.caches import adds_up, ask, entries, found, refused, run, save, sent
from tests.usecases.exact import put
from tests.usecases.objects import gets
from tests.usecases.races import before_the_next_commit, before_the_next_get
from tests.usecases.retained_jobs import of
from tests.usecases.steps import job_of

ADA = User(name="ada", created=START, version=1)


def test_two_keys_that_come_at_one_instant_are_both_counted(twin: Twin) -> None:
    job = run(twin, ADA)
    for one, other in (("a", "b"), ("c", "d")):
        first, second = sent(twin, job, one), sent(twin, job, other)
        before_the_next_commit(twin, lambda key=other, id=second: caches.commit(twin.on, job, ask(key), id))  # type: ignore[misc]
        assert caches.commit(twin.on, job, ask(one), first).kept is True
        assert adds_up(twin)
    assert len(entries(twin)) == 4


def test_an_entry_that_is_restored_when_its_time_is_over_stays(twin: Twin) -> None:
    """ART-1"""
    id = save(twin, run(twin, ADA))
    job = run(twin, ADA)
    (row,) = of(twin, CacheEntry)
    twin.world.time = row.until
    before_the_next_commit(twin, lambda: found(twin, job))
    caches.expire(twin.on, "ada", row.key.sk.partition("#")[2])
    assert entries(twin) == {id}
    assert adds_up(twin)


def test_two_saves_that_begin_at_one_instant_are_both_counted(twin: Twin) -> None:
    job = run(twin, ADA)
    before_the_next_commit(twin, lambda: sent(twin, job, "b"))
    sent(twin, job, "a")
    assert job_of(twin, job.id).usage.cache_saves == 2


def test_what_is_deleted_twice_at_one_instant_is_counted_once(twin: Twin) -> None:
    id = save(twin, run(twin, ADA))
    (row,) = of(twin, CacheEntry)
    before_the_next_commit(twin, lambda: caches.delete(twin.on, ADA, id))
    caches.remove(twin.on, row.key)
    assert entries(twin) == set()
    assert adds_up(twin)


def test_an_entry_whose_bytes_are_being_destroyed_is_a_miss(twin: Twin) -> None:
    job = run(twin, ADA)
    artifact = twin.store.get(artifact_key(save(twin, job)), Artifact)
    assert artifact
    put(twin, artifact, state=ArtifactState.DESTROYING)
    assert found(twin, job) is None


def test_what_is_no_id_is_not_looked_up(twin: Twin) -> None:
    job = run(twin, ADA)
    asked = gets(twin, Artifact)
    assert refused(lambda: caches.commit(twin.on, job, ask(), "x" * 5000))[0] == 404
    assert refused(lambda: caches.find_entry(twin.on, ADA, "x" * 5000))[0] == 404
    assert asked == []


def test_who_has_nothing_takes_nothing(twin: Twin) -> None:
    assert (caches.usage(twin.on, "eve").size, caches.usage(twin.on, "eve").count) == (0, 0)


def test_a_restore_does_not_touch_an_entry_that_followed_the_one_it_found(twin: Twin, ada: User) -> None:
    """The found entry is deleted and its key saved anew in between: the touch would bring the old one back."""
    job = run(twin, ada, "main")
    first = save(twin, job)
    twin.pass_time(TOUCH_INTERVAL.total_seconds() + 1)
    later: list[str] = []

    def replace_it() -> None:
        (entry,) = of(twin, CacheEntry)
        caches.remove(twin.on, entry.key)
        later.append(save(twin, job))

    before_the_next_commit(twin, replace_it)
    assert found(twin, job) == first, "its URL still works for a while"
    assert entries(twin) == set(later)
    assert found(twin, job) == later[0]
    assert adds_up(twin)


def test_a_key_that_somebody_else_gets_while_its_room_is_looked_for_stays_theirs(twin: Twin) -> None:
    """ART-1: the count that the write assumes is newer than what it knows of the key."""
    job = run(twin, ADA)
    first, second = sent(twin, job), sent(twin, job)
    before_the_next_get(twin, CacheUse, lambda: caches.commit(twin.on, job, ask(), second))
    answer = caches.commit(twin.on, job, ask(), first)
    assert (answer.kept, entries(twin), adds_up(twin)) == (False, {second}, True)


def test_an_archive_that_goes_while_its_room_is_looked_for_is_no_entry(twin: Twin) -> None:
    """ART-1: no entry without bytes."""
    job = run(twin, ADA)
    id = sent(twin, job)
    artifact = twin.store.get(artifact_key(id), Artifact)
    assert artifact
    before_the_next_get(twin, CacheUse, lambda: put(twin, artifact, state=ArtifactState.DESTROYING))
    assert refused(lambda: caches.commit(twin.on, job, ask(), id))[0] == 404
    assert entries(twin) == set()
