"""How long nobody asks for what there is none of, and who asks first after that."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from penstock.domain import cooldowns
from penstock.domain.cooldowns import FORGET, PAUSES, PROBE_WITHIN, Cause, CoolDown, Obstacle
from penstock.domain.units import quarantine
from penstock.domain.units.units import UnitKind
from penstock.kernel.errors import (
    DriverError,
    Misconfigured,
    NoCapacity,
    QuotaReached,
    RateLimited,
    Shortage,
    Unknown,
    Unsatisfiable,
)

NOW = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
SPOT = Obstacle("ec2/spot", Cause.CAPACITY, "none on spot")


def cooled(what: Obstacle = SPOT, times: int = 1) -> CoolDown:
    """A cool-down that was met so many times, each time as soon as it was over."""
    row, now = None, NOW
    for _ in range(times):
        row = cooldowns.record(row, what, "factory/aws", "w-1", now)
        assert row
        now = row.until
    assert row
    return row


@pytest.mark.parametrize("cause", list(Cause))
def test_every_further_time_takes_twice_as_long_up_to_a_bound(cause: Cause) -> None:
    first, most = PAUSES[cause]
    pauses = [cooldowns.pause(Obstacle("x", cause, ""), count) for count in (1, 2, 3, 20, 10_000)]
    assert pauses == [first, 2 * first, min(4 * first, most), most, most]


def test_a_provider_that_says_how_long_is_heeded() -> None:
    told = Obstacle("calls", Cause.RATE, "", 15)
    assert [cooldowns.pause(told, count).seconds for count in (1, 2, 7)] == [15, 30, 600]
    assert cooldowns.pause(Obstacle("calls", Cause.RATE, "", 3600), 1) == timedelta(hours=1)
    assert cooldowns.pause(Obstacle("calls", Cause.RATE, "", 0), 1) == timedelta(seconds=1)


@pytest.mark.parametrize("cause", list(Cause))
def test_only_a_maker_that_asks_to_slow_down_stops_what_makes_nothing(cause: Cause) -> None:
    row = cooled(Obstacle("x", cause, ""))
    assert cooldowns.stopping_all([row]) == ([row] if cause is Cause.RATE else [])


def test_it_is_counted_from_the_first_time_on() -> None:
    row = cooled(times=3)
    assert (row.count, row.since, row.until) == (3, NOW, NOW + 3 * MINUTE + 6 * MINUTE + 12 * MINUTE)
    assert row.key.pk == "maker#factory/aws"
    assert row.expiry == row.until + FORGET


def test_who_asked_before_it_was_known_tells_nothing_new() -> None:
    row = cooled()
    assert cooldowns.record(row, SPOT, "factory/aws", "w-2", NOW + MINUTE) is None


def test_what_nobody_asked_for_in_a_day_begins_anew() -> None:
    row = replace(cooled(times=5), version=7)
    late = row.until + FORGET
    fresh = cooldowns.record(row, SPOT, "factory/aws", "w-2", late)
    assert fresh
    assert (fresh.count, fresh.since, fresh.version) == (1, late, 7)
    assert cooldowns.remembered([row], late) == []
    assert cooldowns.remembered([row], late - MINUTE) == [row]


def test_a_rate_limit_that_is_met_again_lasts_longer_but_counts_once() -> None:
    told = Obstacle("calls", Cause.RATE, "", 30)
    row = cooled(told)
    later = cooldowns.record(row, told, "factory/aws", "w-2", NOW + timedelta(seconds=10))
    assert later
    assert (later.until, later.count) == (row.until + timedelta(seconds=10), 1)
    assert cooldowns.record(row, told, "factory/aws", "w-2", NOW) is None, "no longer than it is"


def test_only_one_probes() -> None:
    row = cooled()
    assert not row.is_open_to("w-1", row.until - MINUTE)
    assert row.is_open_to("w-1", row.until)
    probed = cooldowns.probe(row, "w-1", row.until)
    assert probed.is_open_to("w-1", row.until), "its message may come twice"
    assert not probed.is_open_to("w-2", row.until)
    assert probed.is_open_to("w-2", row.until + PROBE_WITHIN), "it died"
    assert cooldowns.end_probe(probed) == row


def test_only_a_rate_limit_stops_every_call() -> None:
    assert [cause for cause in Cause if cooled(Obstacle("x", cause, "")).stops] == [Cause.RATE]


def test_only_a_quota_comes_back_with_our_own_units() -> None:
    quota = cooled(Obstacle("group", Cause.QUOTA, "full"))
    again = cooldowns.allow_now(quota, NOW + MINUTE)
    assert again
    assert again.until == NOW + MINUTE
    assert cooldowns.allow_now(again, NOW + MINUTE) is None
    assert cooldowns.allow_now(cooled(), NOW) is None


def test_those_who_wait_are_spread() -> None:
    row = cooled()
    waits = {cooldowns.wait(row, f"w-{number}", NOW) for number in range(100)}
    assert min(waits) > 180
    assert max(waits) <= 210
    assert len(waits) > 20
    assert cooldowns.wait(row, "w-1", row.until) <= 50, "one probes"
    assert cooldowns.wait(cooled(times=9), "w-1", NOW) == 600


@pytest.mark.parametrize(
    ("error", "found"),
    [
        (RateLimited("slow", 15, "RunInstances"), ("calls/RunInstances", Cause.RATE, "slow", 15)),
        (RateLimited("slow"), ("calls", Cause.RATE, "slow", 30)),
        (Misconfigured("no image"), ("type/linux", Cause.WRONG, "no image", None)),
        (QuotaReached("full"), ("type/linux", Cause.QUOTA, "full", None)),
        (NoCapacity("none"), ("type/linux", Cause.CAPACITY, "none", None)),
        (NoCapacity("none", [Shortage("a", "b")]), ("a", Cause.CAPACITY, "b", None)),
        (NoCapacity("none", [Shortage("a", "b", is_quota=True)]), ("a", Cause.QUOTA, "b", None)),
        (QuotaReached("full", [Shortage("a", "b")]), ("a", Cause.QUOTA, "b", None)),
    ],
)
def test_what_an_error_says_is_not_to_be_asked_for(error: DriverError, found: tuple[object, ...]) -> None:
    (told,) = cooldowns.obstacles(error, "linux")
    assert (told.scope, told.cause, told.why, told.seconds) == found


def test_what_says_nothing_of_others() -> None:
    assert cooldowns.obstacles(Unknown("?"), "linux") == []
    assert cooldowns.obstacles(Unsatisfiable("never"), "linux") == []
    assert cooldowns.obstacles(NoCapacity("all is avoided"), "linux", ["a"]) == []


def test_a_cool_down_is_described_in_a_sentence() -> None:
    row = cooled(times=2)
    said = "factory aws: no capacity for ec2/spot until 12:09 UTC (tried 2 times): none on spot"
    assert cooldowns.describe(row, NOW) == said
    assert "(tried once)" in cooldowns.describe(cooled(), NOW)
    assert "for ec2/spot; the next unit that needs it tries it (" in cooldowns.describe(row, row.until)
    probed = cooldowns.probe(row, "w-1", row.until)
    assert "for ec2/spot; w-1 tries it now (" in cooldowns.describe(probed, row.until)


def test_failures_are_counted_by_their_code() -> None:
    first = cooldowns.count_failure(None, "factory/aws", Unknown("odd", "Odd"), NOW)
    again = cooldowns.count_failure(first, "factory/aws", Unknown("odder", "Odd"), NOW + MINUTE)
    assert (again.code, again.count, again.message, again.first) == ("Unknown:Odd", 2, "odder", NOW)
    assert again.expiry == NOW + MINUTE + timedelta(days=7)
    assert again.key == cooldowns.failure_key("factory/aws", "Unknown:Odd")
    assert cooldowns.code_of(NoCapacity()) == "NoCapacity"


def test_makers_of_one_name_are_told_apart() -> None:
    assert cooldowns.maker_of(UnitKind.WORKER, "a") == "factory/a"
    assert cooldowns.maker_of(UnitKind.RESOURCE, "a") == "well/a"


def test_a_bucket_holds_a_second_and_fills_with_time() -> None:
    row = cooldowns.take_token(None, "factory/aws", 2, NOW)
    assert row
    row = cooldowns.take_token(row, "factory/aws", 2, NOW)
    assert row
    assert cooldowns.take_token(row, "factory/aws", 2, NOW) is None
    assert cooldowns.take_token(row, "factory/aws", 2, NOW + timedelta(seconds=0.5))
    full = cooldowns.take_token(row, "factory/aws", 2, NOW + timedelta(hours=1))
    assert full
    assert full.tokens == 1, "two, of which one was taken"
    assert cooldowns.take_token(row, "factory/aws", 2, NOW - MINUTE) is None, "a clock that is behind gives none"
    assert row.expiry == NOW + timedelta(days=1)
    assert row.key == cooldowns.budget_key("factory/aws")


def test_a_rate_below_one_a_second_gives_a_token_now_and_then() -> None:
    row = cooldowns.take_token(None, "factory/aws", 0.1, NOW)
    assert row
    assert cooldowns.take_token(row, "factory/aws", 0.1, NOW + timedelta(seconds=9)) is None
    assert cooldowns.take_token(row, "factory/aws", 0.1, NOW + timedelta(seconds=10))
    waits = {cooldowns.budget_wait(row, 0.1, f"w-{number}", NOW) for number in range(50)}
    assert (min(waits), max(waits)) == (10, 14)


@pytest.mark.parametrize(
    ("scope", "concerned"),
    [
        ("type/ubuntu", True), ("type/other", False), ("broken/ubuntu", True), ("broken/other", False),
        ("zone-a", True), (cooldowns.type_scope("ubuntu", {"a": 1}), True),
        (cooldowns.type_scope("ubuntu", {"a": 2}), False),
    ],
)  # fmt: skip
def test_of_a_whole_type_only_one_of_that_type_can_tell(scope: str, concerned: bool) -> None:
    assert cooldowns.concerns(apart(scope), cooldowns.whole_scopes("ubuntu", {"a": 1})) is concerned


def test_the_scope_of_a_type_is_that_of_its_options() -> None:
    """Their order makes no difference, and a date among them is as good as a text."""
    assert cooldowns.type_scope("db") == cooldowns.type_scope("db", {}) == "type/db"
    scope = cooldowns.type_scope("db", {"a": 1, "b": NOW})
    assert scope == cooldowns.type_scope("db", {"b": NOW, "a": 1}) != cooldowns.type_scope("db", {"a": 1})
    assert scope.startswith("type/db with its options ")
    assert len(scope) == len("type/db with its options 12345678")
    assert cooldowns.whole_scopes("db") == {"type/db", "broken/db"}
    assert cooldowns.whole_scopes("db", {"a": 1, "b": NOW}) == {"type/db", "broken/db", scope}


def test_a_cool_down_of_some_options_is_known_by_its_scope() -> None:
    assert cooldowns.is_of_options(apart(cooldowns.type_scope("db", {"a": 1})), "db")
    assert not cooldowns.is_of_options(apart(cooldowns.type_scope("db", {"a": 1})), "d")
    assert not cooldowns.is_of_options(apart("type/db"), "db")


@pytest.mark.parametrize("error", [Misconfigured("?"), QuotaReached("none"), NoCapacity("none")])
def test_what_the_options_of_a_job_met_stops_only_those(error: DriverError) -> None:
    (met,) = cooldowns.obstacles(error, "db", options={"a": 1})
    assert met.scope == cooldowns.type_scope("db", {"a": 1})
    (met,) = cooldowns.obstacles(error, "db")
    assert met.scope == "type/db"


def apart(scope: str, cause: Cause = Cause.BROKEN) -> CoolDown:
    return CoolDown(
        maker="factory/aws", scope=scope, cause=cause, why="3 in a row; the last: no disk", since=NOW, until=NOW,
        met_by="w-1", count=2,
    )  # fmt: skip


def test_a_machine_has_longer_to_boot_than_a_call_to_answer() -> None:
    for cause, within in ((Cause.BROKEN, quarantine.PROBE_WITHIN), (Cause.CAPACITY, cooldowns.PROBE_WITHIN)):
        probed = cooldowns.probe(apart("broken/ubuntu", cause), "w-2", NOW)
        assert (probed.probe, probed.probe_until) == ("w-2", NOW + within)


def test_that_workers_are_broken_is_said() -> None:
    said = cooldowns.describe(replace(apart(cooldowns.broken_scope("ubuntu")), until=NOW + timedelta(minutes=5)), NOW)
    assert said.startswith(
        "factory aws: its workers are broken/ubuntu, one after the other; none is made until 12:05 UTC"
    )
    assert said.endswith("(tried 2 times): 3 in a row; the last: no disk")
