"""Whether a machine that exists already is there."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from penstock.domain.site.site import Site, Target
from penstock.domain.units import hosts
from penstock.domain.units.hosts import Host
from penstock.kernel.rows import Key, Look
from tests.domain.helpers import MINUTE, NOW

LEASE = timedelta(minutes=2)
HOST = Host(name="bench-7", pool="target/lab", session="s", machine="m", since=NOW, due=NOW + LEASE, version=3)


@pytest.mark.parametrize("name", ["bench-7", "a", "7b", "x.y_z-1", "a" * 64])
def test_names_of_hosts(name: str) -> None:
    assert hosts.is_name(name)


@pytest.mark.parametrize("name", ["", "7", "123", "Bench", "-a", "a b", "a/b", "a" * 65])
def test_names_of_none(name: str) -> None:
    assert not hosts.is_name(name)


def test_a_host_has_a_row_that_is_due_when_it_counts_as_away() -> None:
    assert HOST.key == Key("host#bench-7", "host")
    assert HOST.deadline == NOW + LEASE
    assert hosts.privilege("bench-7") == "host.bench-7"


def test_a_host_that_comes_for_the_first_time() -> None:
    new = replace(HOST, due=None, version=0)
    assert hosts.connect(None, new, NOW + MINUTE, LEASE) == replace(new, since=NOW + MINUTE, due=NOW + MINUTE + LEASE)


@pytest.mark.parametrize(
    ("was", "session", "since"),
    [
        (HOST, "s", NOW),
        (HOST, "other", NOW + MINUTE),
        (replace(HOST, away=NOW, due=None), "s", NOW + MINUTE),
    ],
)
def test_since_when_a_host_is_there(was: Host, session: str, since: object) -> None:
    there = hosts.connect(was, replace(was, session=session), NOW + MINUTE, LEASE)
    assert there == replace(HOST, session=session, since=since, due=NOW + MINUTE + LEASE)


@pytest.mark.parametrize(("minutes", "is_written"), [(0, False), (0.99, False), (1, True), (2, True)])
def test_half_a_lease_is_soon_enough_to_write_that_it_was_heard(minutes: float, is_written: bool) -> None:
    heard = hosts.renew(HOST, NOW + minutes * MINUTE, LEASE)
    assert heard == (replace(HOST, due=NOW + minutes * MINUTE + LEASE) if is_written else HOST)
    assert hosts.renew(replace(HOST, due=None), NOW, LEASE) == HOST


def test_a_host_that_is_away_is_due_no_more() -> None:
    gone = hosts.disconnect(HOST, NOW + MINUTE)
    assert gone == replace(HOST, due=None, away=NOW + MINUTE)
    assert hosts.is_silent(gone, NOW)


def test_a_host_is_silent_when_its_lease_has_run_out() -> None:
    assert not hosts.is_silent(HOST, NOW + LEASE - MINUTE / 60)
    assert hosts.is_silent(HOST, NOW + LEASE)


def test_a_host_is_known_by_its_session() -> None:
    assert hosts.is_known(HOST, "s")
    assert not hosts.is_known(HOST, "z")


def test_a_host_is_in_play_where_it_serves_and_while_it_is_there() -> None:
    assert hosts.is_available(HOST, "target/lab")
    assert not hosts.is_available(HOST, "target/rack")
    assert not hosts.is_available(replace(HOST, away=NOW), "target/lab")
    assert not hosts.is_available(None, "target/lab")


def test_the_target_of_a_host() -> None:
    lab = Target("lab", "f", 2, names=("a", "b"))
    site = Site(targets={"linux": Target("linux", "g", 1), "lab": lab})
    assert (site.of_host("b"), site.of_host("c")) == (lab, None)


def test_a_host_that_stays_is_in_the_index_at_its_new_time() -> None:
    """It is written once in half a lease, so its entry may move each time."""
    heard = hosts.renew(replace(HOST, indexed=Look(NOW)), NOW + LEASE, LEASE)
    assert (heard.due, heard.indexed) == (NOW + 2 * LEASE, None)


@pytest.mark.parametrize(
    ("away", "is_lost"), [(None, False), (NOW, True), (NOW + timedelta(seconds=1), False), (NOW - MINUTE, True)]
)
def test_a_host_that_is_away_for_long_is_lost(away: datetime | None, is_lost: bool) -> None:
    assert hosts.is_lost(replace(HOST, away=away), NOW + MINUTE, MINUTE) is is_lost
