"""Fair share: turns by weight and use, what still counts of a use, and how owners stand. [QUEUE-2]"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from penstock.domain.jobs.jobs import Job
from penstock.domain.pools import grants, shares
from penstock.domain.pools.pools import HoldTimes
from penstock.domain.pools.shares import LISTING, WEIGHS, Share, Use
from penstock.domain.site.site import Shares
from penstock.kernel import rows
from penstock.kernel.rows import Key, Place
from tests.domain.helpers import NOW, SECOND, job

HOUR = timedelta(hours=1)
PLAIN = Shares(half_life=3600)


def use(seconds: float = 0.0, owner: str = "ada") -> Use:
    return Use(owner=owner, seconds=seconds, at=NOW)


def turns(count: int, plain: Shares, owner: str = "ada", expected: int = 60) -> list[Job]:
    """Jobs that an owner submits at once, with their turns."""
    row, found = use(owner=owner), []
    for number in range(count):
        row, turned = shares.take_turn(row, job(id=f"{owner}{number}", owner=owner), expected, plain, NOW)
        found.append(turned)
    return found


def test_a_use_is_a_row_of_its_owners() -> None:
    row = use(owner="oxide:hubris")
    assert row.key == Key("use#oxide:hubris", "use")
    assert row.place == Place(LISTING, "oxide:hubris")


def test_a_use_halves_with_every_half_life() -> None:
    assert shares.left(800, NOW, NOW, PLAIN) == 800
    assert shares.left(800, NOW, NOW + HOUR, PLAIN) == 400
    assert shares.left(800, NOW, NOW + 3 * HOUR, PLAIN) == 100
    assert shares.left(800, NOW, NOW - HOUR, PLAIN) == 800, "clocks differ a little, and no use grows by that"


def test_who_has_used_nothing_stands_where_it_came() -> None:
    row, turned = shares.take_turn(use(), job(), 90, PLAIN, NOW)
    assert turned.times.turn == NOW
    assert (turned.usage.expected, row.seconds, row.at) == (90, 90, NOW)


def test_each_job_of_many_has_a_later_turn_than_the_one_before() -> None:
    found = [turned.times.turn for turned in turns(4, PLAIN)]
    assert found == [NOW + number * WEIGHS * 60 * SECOND for number in range(4)]


def test_a_turn_is_later_by_what_was_used_divided_by_the_weight() -> None:
    weighted = Shares(half_life=3600, default=2, weights={"ada": 4})
    for owner, weight in (("ada", 4), ("bea", 2)):
        _, turned = shares.take_turn(use(200.0, owner), job(owner=owner), 1, weighted, NOW)
        assert turned.times.turn == NOW + WEIGHS * 200 / weight * SECOND, owner


def test_use_that_decayed_counts_less() -> None:
    late = NOW + HOUR
    row, turned = shares.take_turn(use(100), job(times=replace(job().times, submitted=late)), 7, PLAIN, late)
    assert turned.times.turn == late + WEIGHS * 50 * SECOND
    assert (row.seconds, row.at) == (57, late)


def test_no_turn_is_later_than_time_can_tell() -> None:
    _, turned = shares.take_turn(use(1e15), job(), 1, PLAIN, NOW)
    assert turned.times.turn == NOW + shares.LONGEST


def test_what_is_expected_is_what_holders_of_the_target_took() -> None:
    """The helper's job asks for two things: a bench and a worker."""
    assert shares.expected_seconds(job(), None) == 2 * shares.UNKNOWN_SECONDS
    assert shares.expected_seconds(job(), HoldTimes(pool="p")) == 2 * shares.UNKNOWN_SECONDS
    assert shares.expected_seconds(job(), HoldTimes(pool="p", holds=1, mean_hold=40.5)) == 81


def test_a_settled_job_counts_with_what_it_took() -> None:
    row, turned = shares.take_turn(use(1000), job(), 600, PLAIN, NOW)
    ended = NOW + HOUR
    done = replace(turned, times=replace(turned.times, acquired=ended - 100 * SECOND, settled=ended))
    assert shares.used_seconds(done) == 200
    assert shares.correct(row, done, PLAIN, ended) == Use(owner="ada", seconds=500 + 200, at=ended)


def test_a_job_that_never_began_used_nothing() -> None:
    row, turned = shares.take_turn(use(), job(), 600, PLAIN, NOW)
    done = replace(turned, times=replace(turned.times, settled=NOW + HOUR))
    assert shares.used_seconds(done) == shares.used_seconds(turned) == 0
    assert shares.used_seconds(replace(turned, times=replace(turned.times, acquired=NOW))) == 0, "it is not over"
    assert shares.correct(row, done, PLAIN, NOW + HOUR).seconds == 0
    assert shares.correct(use(1), done, PLAIN, NOW).seconds == 0, "a use that forgot something is not less than nothing"


def test_claims_stand_by_turn_and_in_the_order_of_their_keys() -> None:
    """Of two owners' jobs that come at once each is served in turn; priority is before that, and age after it."""
    greedy, small = turns(3, PLAIN, "greedy"), turns(2, PLAIN, "small")
    urgent = replace(greedy[2], request=replace(greedy[2].request, priority=1))
    claims = [grants.claims(each, 1, NOW)[0] for each in (*greedy[:2], urgent, *small)]
    by_order = [claim.job for claim in sorted(claims, key=lambda claim: claim.order)]
    assert by_order == ["greedy2", "greedy0", "small0", "greedy1", "small1"]
    assert by_order == [claim.job for claim in sorted(claims, key=lambda claim: claim.key.sk)]


def test_a_claim_without_a_turn_stands_by_its_age_among_those_with_one() -> None:
    """As after a site got shares: an id and a turn both begin with a time."""

    def made(id: str, turn: timedelta | None) -> Job:
        return job(id=id, times=replace(job().times, turn=NOW + turn if turn is not None else None))

    first, second = (rows.ulid(NOW + number * SECOND, bytes(10)) for number in (1, 2))
    before, between, after = made("A" * 26, 0 * SECOND), made("B" * 26, 1.5 * SECOND), made("C" * 26, 3 * SECOND)
    claims = [
        grants.claims(each, 1, NOW)[0] for each in (made(first, None), made(second, None), before, between, after)
    ]
    wanted = ["A" * 26, first, "B" * 26, second, "C" * 26]
    assert [claim.job for claim in sorted(claims, key=lambda claim: claim.order)] == wanted
    assert [claim.job for claim in sorted(claims, key=lambda claim: claim.key.sk)] == wanted
    assert claims[0].turn == ""
    assert rows.born(claims[3].turn) == NOW + 1.5 * SECOND


def test_who_is_furthest_above_its_share_stands_first() -> None:
    weighted = Shares(half_life=3600, weights={"ada": 2, "idle": 5})
    found = shares.standings([use(100, "bea"), use(300, "ada"), use(0.9, "idle"), use(600, "cyd")], weighted, NOW)
    assert found == [
        Share("cyd", 1, 0.25, 0.6, 600), Share("bea", 1, 0.25, 0.1, 100), Share("ada", 2, 0.5, 0.3, 300),
    ]  # fmt: skip
    assert shares.standings([use(0.9)], weighted, NOW) == []
    assert [each.used_seconds for each in shares.standings([use(1.0)], weighted, NOW)] == [1]
    assert [each.used_seconds for each in shares.standings([use(100)], weighted, NOW + HOUR)] == [50]
