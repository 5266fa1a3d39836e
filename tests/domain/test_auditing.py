"""Whoever asks for entries of the audit log gets all that are as asked for, and reading begins where they may be."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.users.audit import Entry, Wanted
from penstock.kernel.rows import ulid
from tests.domain.helpers import NOW

DONE = [
    (by, did, what)
    for by in ("ada", "bob")
    for did in ("hold", "pause")
    for what in ("pool target/linux", "pool resource/bench", "user eve")
]


def entry(second: int, by: str, did: str, what: str) -> Entry:
    at = NOW + timedelta(seconds=second)
    return Entry(id=ulid(at, bytes(10)), at=at, by=by, did=did, what=what)


ROWS = [entry(second, *done) for second, done in enumerate(DONE)]
times = st.none() | st.integers(-2, len(ROWS) + 2).map(lambda second: NOW + timedelta(seconds=second))


@given(
    st.sampled_from(["", "ada", "bob", "eve"]),
    st.sampled_from(["", "hold", "pause"]),
    st.sampled_from(["", "pool ", "pool resource/", "user eve", "x"]),
    times,
    times,
)
def test_what_is_read_is_what_was_asked_for(who: str, did: str, what: str, since: object, until: object) -> None:
    """As a listing is read: newest first, from behind the start, until one is too old."""
    wanted = Wanted(who, did, what, since, until)  # type: ignore[arg-type]
    start = wanted.start("")
    read = [row for row in reversed(ROWS) if not start or row.id < start]
    found = [row for row in read if not wanted.is_over(row) and wanted.has(row)]
    assert found == [
        row
        for row in reversed(ROWS)
        if who in ("", row.by)
        and did in ("", row.did)
        and row.what.startswith(what)
        and (since is None or row.at >= since)  # type: ignore[operator]
        and (until is None or row.at < until)  # type: ignore[operator]
    ]


def test_a_page_goes_on_where_the_one_before_ended() -> None:
    assert Wanted(until=NOW).start(ROWS[5].id) < ROWS[0].id
    assert Wanted(until=NOW + timedelta(days=1)).start(ROWS[5].id) == ROWS[5].id
    assert Wanted().start(ROWS[5].id) == ROWS[5].id


def test_of_whom_what_and_since_when() -> None:
    wanted = Wanted(who="bob", did="pause", what="pool resource/", since=ROWS[10].at)
    assert [row.id for row in ROWS if wanted.has(row)] == [ROWS[10].id]
    assert [wanted.is_over(row) for row in ROWS[9:]] == [True, False, False]
