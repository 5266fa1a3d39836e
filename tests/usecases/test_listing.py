"""Which jobs a list has, and how many rows it reads for them. [SEC-2]"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from penstock.domain.jobs import places
from penstock.domain.jobs.jobs import PLACED_NAME, Result, State
from penstock.domain.users.users import User
from penstock.kernel.errors import Refused
from penstock.kernel.rows import Create, Due, Key, Look, Row, exact_look, next_look
from penstock.system import System
from penstock.testing.twin import Twin
from penstock.usecases.jobs import cancel, listing
from penstock.usecases.jobs.listing import Wanted
from tests.usecases.steps import finish, hello, job_of, submit, sweep


def listed(on: System, user: User, owner: str | None = None, **given: object) -> list[str]:
    """The ids of the first hundred jobs, or of as many as are asked for."""
    named = {name: given.pop(name) for name in ("limit", "page", "everybody") if name in given}
    limit, page = int(str(named.get("limit", 100))), str(named.get("page", ""))
    wanted = Wanted(**given)  # type: ignore[arg-type]
    return [
        job.id for job in listing.list_jobs(on, user, owner, wanted, limit, page, everybody="everybody" in named)[0]
    ]


def refusal(on: System, user: User | None, owner: str | None, **how: object) -> int:
    with pytest.raises(Refused) as refused:
        listing.list_jobs(on, user, owner, Wanted(), 9, "", **how)  # type: ignore[arg-type]
    return refused.value.status


def test_a_user_lists_their_own_jobs_and_an_operator_those_of_others(twin: Twin, ada: User, root: User) -> None:
    job = submit(twin, ada)
    on = twin.on
    assert listed(on, ada) == listed(on, ada, "ada") == listed(on, root, "ada") == [job]
    assert listed(on, root) == []
    assert refusal(on, ada, "root") == 403
    assert refusal(on, root, "No Name") == 400


@pytest.mark.parametrize("owner", [None, "", "ada", "acme:tools"])
def test_without_a_user_no_jobs_are_listed_but_public_ones(twin: Twin, ada: User, owner: str | None) -> None:
    """SEC-2: whatever asked before whether somebody may."""
    submit(twin, ada)
    assert refusal(twin.on, None, owner) == 401


def test_operators_and_nobody_else_list_everybodys_jobs(twin: Twin, ada: User, root: User) -> None:
    """SEC-2: also those of owners who are there no more, or have another name by now."""
    bob = User(name="bob", created=twin.world.now())
    for row in (ada, bob, replace(root, version=0)):
        twin.store.commit([Create(replace(row, version=0))])
    jobs = [submit(twin, user) for user in (ada, bob, ada)][::-1]
    assert listed(twin.on, root, everybody=True) == jobs
    assert refusal(twin.on, ada, None, everybody=True) == 403
    assert refusal(twin.on, root, "ada", everybody=True) == 400


def test_jobs_are_listed_by_their_state_target_name_and_tags(twin: Twin, ada: User) -> None:
    first = submit(twin, ada, tags={"kind": "build"}, name="build-it")
    second = submit(twin, ada, target="linux", name="x" * (PLACED_NAME + 1))
    cancel.cancel(twin.on, ada, second)
    twin.run()
    hello(twin, first)
    for word, jobs in {"running": [first], "settled": [second], "cancelled": [second], "failed": []}.items():
        assert listed(twin.on, ada, state=word) == jobs, word
    for target, jobs in {"default": [first], "linux": [second, first], "lab": []}.items():
        assert listed(twin.on, ada, target=target) == jobs, target
    for name, jobs in {"build-it": [first], "b*[t]": [first], "x*": [second], "x": [], "BUILD*": []}.items():
        assert listed(twin.on, ada, name=name) == jobs, name
    assert listed(twin.on, ada, tags={"kind": "build"}) == [first]
    assert listed(twin.on, ada, tags={"kind": "test"}) == []
    assert listed(twin.on, ada, target="linux", state="settled") == [second]


def test_every_job_that_waits_is_waiting_and_those_that_are_given_something_acquire(twin: Twin, ada: User) -> None:
    """Two slots: two jobs wait for their machines to boot, the third in the queue, the fourth for the third."""
    booting = [submit(twin, ada) for _ in range(2)]
    queued = submit(twin, ada)
    twin.run()
    dependent = submit(twin, ada, dependencies={"it": {"job": queued}})
    twin.run()
    assert listed(twin.on, ada, state="waiting") == [dependent, queued]
    assert listed(twin.on, ada, state="acquiring") == booting[::-1]
    assert listing.queue_of(twin.on, job_of(twin, queued)) == "target/linux"
    assert listing.queue_of(twin.on, job_of(twin, booting[0])) is None


def test_a_job_is_found_by_its_outcome_as_soon_as_it_has_settled(twin: Twin, ada: User) -> None:
    """The due index has it as one that has not, until the sweep comes by."""
    good, bad = submit(twin, ada), submit(twin, ada)
    for job, result in ((good, Result.SUCCEEDED), (bad, Result.FAILED)):
        hello(twin, job)
        assert listed(twin.on, ada, state="running") == [job]
        finish(twin, job, result)
    for _ in range(2):
        assert listed(twin.on, ada, state="succeeded") == [good]
        assert listed(twin.on, ada, state="failed") == [bad]
        assert listed(twin.on, ada, state="settled") == listed(twin.on, ada) == [bad, good]
        assert listed(twin.on, ada, state="running") == []
        sweep(twin, 600)


def test_what_the_due_index_has_for_long_is_right(twin: Twin, ada: User) -> None:
    """A job that has an hour left when it ends is moved there at once; one that has minutes is not, to save writes."""
    job = submit(twin, ada)
    hello(twin, job)
    was = job_of(twin, job)
    assert was.indexed
    exact = exact_look(was)
    assert exact
    assert twin.store.look_later(Due(was.indexed, was.key), exact, was), "as the sweep does"
    running = job_of(twin, job)
    assert running.indexed
    assert (running.indexed.tag, places.is_sure(running.indexed, twin.world.now())) == ("running", True)
    finish(twin, job)
    settled = job_of(twin, job)
    assert settled.indexed
    assert (settled.indexed.tag, settled.indexed.shard[:4]) == ("settled", "kept")


@pytest.mark.parametrize(("minutes", "moves"), [(4, False), (5, False), (6, True)])
def test_how_long_the_due_index_may_have_another_state(minutes: int, moves: bool, twin: Twin, ada: User) -> None:
    job = submit(twin, ada)
    hello(twin, job)
    now = twin.world.now()
    has = Look(now + timedelta(minutes=minutes), 0, "job.0", "acquiring")
    row = replace(job_of(twin, job), indexed=has)
    assert row.state is State.RUNNING
    assert (next_look(row) is not has) is moves
    assert next_look(replace(row, indexed=replace(has, tag="running"))) is not None
    assert places.is_sure(has, now) is moves
    assert not places.is_sure(replace(has, tag=""), now)


def test_pages_of_jobs_follow_each_other(twin: Twin, ada: User) -> None:
    names = [submit(twin, ada) for _ in range(3)][::-1]
    assert listed(twin.on, ada, limit=2) == names[:2]
    found, after = listing.list_jobs(twin.on, ada, None, Wanted(), 2, "")
    assert after == names[1]
    found, end = listing.list_jobs(twin.on, ada, None, Wanted(), 2, str(after))
    assert ([job.id for job in found], end) == (names[2:], None)


def test_a_page_has_as_many_jobs_as_a_reply_has_room_for(twin: Twin, ada: User) -> None:
    """Lambda passes 6 MB, quotes escaped twice: beyond that, the answer to a good request would be an error."""
    tags = {f"t{number:03}": 500 * '"' for number in range(100)}
    jobs = [submit(twin, ada, tags=tags) for _ in range(20)][::-1]
    pages, page = list[list[str]](), ""
    while True:
        rows, following = listing.list_jobs(twin.on, ada, None, Wanted(), 50, page)
        pages.append([row.id for row in rows])
        if following is None:
            break
        page = following
    assert [len(each) for each in pages] == [15, 5]
    assert [each for some in pages for each in some] == jobs


def test_one_job_is_shown_however_long_its_tags_are(twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "PAGE_BYTES", 0)
    jobs = [submit(twin, ada, tags={"a": "b"}) for _ in range(2)][::-1]
    first, following = listing.list_jobs(twin.on, ada, None, Wanted(), 50, "")
    assert ([row.id for row in first], following) == (jobs[:1], jobs[0])


def test_a_list_has_more_jobs_than_are_read_at_once(twin: Twin, ada: User) -> None:
    names = [submit(twin, ada) for _ in range(101)][::-1]
    assert listed(twin.on, ada, limit=101) == names


def test_a_page_looks_at_so_many_entries_and_rows_and_says_where_it_stopped(
    twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [submit(twin, ada, name="y" * 99) for _ in range(30)][::-1]
    monkeypatch.setattr(listing, "LOOKED", 10)
    assert listing.list_jobs(twin.on, ada, None, Wanted(target="lab"), 5, "") == ([], names[9])
    monkeypatch.setattr(listing, "LOOKED", 1000)
    monkeypatch.setattr(listing, "SCANNED", 7)
    found, after = listing.list_jobs(twin.on, ada, None, Wanted(name="x*"), 5, "")
    assert (found, after) == ([], names[14]), "five, and then ten, since no one of the five was wanted"
    assert listing.list_jobs(twin.on, ada, None, Wanted(name="x*"), 40, names[14]) == ([], None)


def test_since_leaves_out_what_was_submitted_before_and_may_be_before_all_time(twin: Twin, ada: User) -> None:
    first = submit(twin, ada)
    twin.pass_time(60)
    then = twin.world.now()
    second = submit(twin, ada)
    assert listed(twin.on, ada, since=then) == [second]
    assert listed(twin.on, ada, since=then.replace(year=1900)) == [second, first]


def counted(twin: Twin, patch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each read asks for from now on."""
    sizes: list[int] = []
    read = twin.store.rows_at

    def note(keys: Sequence[Key]) -> Mapping[Key, Row]:
        sizes.append(len(keys))
        return read(keys)

    patch.setattr(twin.store, "rows_at", note)
    return sizes


def test_where_few_rows_match_twice_as_many_are_read_and_what_is_too_much_comes_on_the_next_page(
    twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Long names are in no entry. Of 1 row no one matches, of the next 2 neither; of the next 4 all do, and 3 wait."""
    long = "x" * PLACED_NAME
    right = [submit(twin, ada, name=f"{long}-right") for _ in range(4)][::-1]
    for _ in range(3):
        submit(twin, ada, name=f"{long}-wrong")
    sizes = counted(twin, monkeypatch)
    found, after = listing.list_jobs(twin.on, ada, None, Wanted(name="*right"), 1, "")
    assert ([job.id for job in found], after, sizes) == (right[:1], right[0], [1, 2, 4])
    found, after = listing.list_jobs(twin.on, ada, None, Wanted(name="*right"), 2, str(after))
    assert ([job.id for job in found], after) == (right[1:3], right[2])
    assert listing.list_jobs(twin.on, ada, None, Wanted(name="*right"), 2, str(after))[1] is None
    sizes.clear()
    assert len(listing.list_jobs(twin.on, ada, None, Wanted(name="*"), 6, "")[0]) == 6
    assert sizes == [6]


def test_where_half_of_the_rows_match_as_many_are_read_as_are_missing(
    twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = "x" * PLACED_NAME
    for name in ("right", "wrong", "right", "wrong"):
        submit(twin, ada, name=f"{long}-{name}")
    sizes = counted(twin, monkeypatch)
    found, after = listing.list_jobs(twin.on, ada, None, Wanted(name="*right"), 2, "")
    assert (len(found), sizes) == (2, [2, 1, 1])
    assert after is None


def test_where_more_match_at_the_end_than_a_page_has_the_next_page_has_the_others(twin: Twin, ada: User) -> None:
    """Of 1 row no one matches, of the next 2 neither; then there are 3 more, of which all do."""
    long = "x" * PLACED_NAME
    right = [submit(twin, ada, name=f"{long}-right") for _ in range(3)][::-1]
    for _ in range(3):
        submit(twin, ada, name=f"{long}-wrong")
    found, after = listing.list_jobs(twin.on, ada, None, Wanted(name="*right"), 1, "")
    assert ([job.id for job in found], after) == (right[:1], right[0])
    found, after = listing.list_jobs(twin.on, ada, None, Wanted(name="*right"), 2, str(after))
    assert ([job.id for job in found], after) == (right[1:], right[2])


def test_the_next_page_does_not_read_again_what_this_one_has_read(twin: Twin, ada: User) -> None:
    """Of 1 row no one matches, of the next 2 the first: that fills the page, and the next begins after the second."""
    long = "x" * PLACED_NAME
    jobs = [submit(twin, ada, name=f"{long}-{name}") for name in ("right", "wrong", "right", "wrong")][::-1]
    found, after = listing.list_jobs(twin.on, ada, None, Wanted(name="*right"), 1, "")
    assert ([job.id for job in found], after) == ([jobs[1]], jobs[2])
    found, after = listing.list_jobs(twin.on, ada, None, Wanted(name="*right"), 1, str(after))
    assert ([job.id for job in found], after) == ([jobs[3]], jobs[3])


def test_a_stranger_lists_public_repositories_alone(twin: Twin, ada: User) -> None:
    """SEC-2: here as well, and not only where the request is received."""
    submit(twin, ada)
    for owner in (None, "", "ada", "oxide:hubris"):
        assert refusal(twin.on, None, owner) == 401
