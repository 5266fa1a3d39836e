"""One worker, one machine, on a cloud that does not promise it. [JOB-2] [UNIT-1]"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from libcloud.common.exceptions import BaseHTTPError
from libcloud.compute.types import NodeState

from penstock.kernel.errors import DriverError, Misconfigured, NoCapacity, QuotaReached, RateLimited, Unknown
from penstock.ports import NotYet, PlacementDriver, Ready
from tests.clouds.fake import Books
from tests.clouds.helpers import KEY, OTHER, WORKER, clean, factory, order

FULL = "No valid host was found. There are not enough hosts available."


@pytest.fixture
def books() -> Books:
    return Books()


def test_the_machine_is_what_was_asked_for(books: Books) -> None:
    made = factory(books).create(order())
    assert isinstance(made, Ready)
    (machine,) = books.ours
    assert made.metadata == {"machine": machine.id, "name": machine.name, "provider": "dummy"}
    asked = machine.asked
    assert (asked["size"].name, asked["image"].name, asked["location"].name) == ("Small", "Ubuntu 9.04", "London Loft")
    assert "https://penstock.example/v1/agent/agent.pyz" in asked["ex_userdata"]
    assert KEY in asked["ex_userdata"]
    assert asked["ex_metadata"] == {
        "penstock-site": "penstock-eu-west-1",
        "penstock-factory": "lab",
        "penstock-worker": WORKER.lower(),
        "penstock-way": "small-in-london-loft",
    }


def test_arguments_of_the_site_stay_beside_ours(books: Books) -> None:
    factory(books, create={"ex_metadata": {"team": "tools", "penstock-worker": "x"}}, ssh_key="ssh-rsa AAAA").create(
        order()
    )
    (machine,) = books.ours
    assert machine.asked["ex_metadata"]["team"] == "tools"
    assert machine.asked["ex_metadata"]["penstock-worker"] == WORKER.lower()
    assert machine.asked["auth"].pubkey == "ssh-rsa AAAA"


def test_nothing_is_made_before_everything_was_listed(books: Books) -> None:
    factory(books).create(order())
    factory(books).create(order())
    assert books.calls == ["list_nodes", "create_node", "list_nodes"]


def test_a_lost_answer_is_waited_for_and_makes_no_second_machine(books: Books) -> None:
    books.lost = 1
    done = factory(books, lag=90).create(order())
    assert isinstance(done, NotYet)
    assert done.after == 90
    assert "may have made a machine" in (done.reason or "")
    assert isinstance(factory(books).create(order()), Ready)
    assert len(books.ours) == 1


@pytest.mark.parametrize(
    "error",
    [ConnectionResetError("reset"), BaseHTTPError(503, "try later"), BaseHTTPError(409, "conflict"), Exception("?")],
    ids=["network", "503", "409", "no class"],
)
def test_an_unclear_outcome_ends_the_search(books: Books, error: Exception) -> None:
    """The next alternative would be a second machine, if the first call made one."""
    books.failing["create_node"] = [error]
    assert isinstance(factory(books).create(order()), NotYet)
    assert books.calls.count("create_node") == 1
    assert isinstance(factory(books).create(order()), Ready)
    assert len(books.ours) == 1


def test_the_first_of_two_machines_is_kept(books: Books) -> None:
    """The window that remains: an answer lost, and a list that lags for longer than it was given."""
    books.lost, books.lag = 1, 2
    assert isinstance(factory(books).create(order()), NotYet)
    assert isinstance(factory(books).create(order()), Ready)
    assert len(books.ours) == 2
    first, second = books.ours
    first.hidden = second.hidden = 0
    made = factory(books).create(order())
    assert isinstance(made, Ready)
    assert made.metadata["machine"] == first.id
    assert (first.going, second.going) == (None, 0)


def test_both_of_two_machines_are_ended(books: Books) -> None:
    books.lost, books.lag = 1, 1
    factory(books).create(order())
    factory(books).create(order())
    factory(books).list()
    assert len(books.ours) == 2
    clean(factory(books))
    assert books.ours == []


def test_machines_of_others_are_left_alone(books: Books) -> None:
    mine, theirs = factory(books), factory(books, site="Other.eu-west-1")
    for driver in (mine, theirs):
        driver.create(order())
    factory(books, name="second").create(order(OTHER))
    assert list(mine.list()) == [WORKER]
    clean(mine)
    assert list(mine.list()) == []
    assert list(theirs.list()) == [WORKER]
    assert list(factory(books, name="second").list()) == [OTHER]
    assert len(books.machines) == 3


def test_a_factory_with_another_name_or_prefix_ends_what_it_had(books: Books) -> None:
    factory(books).create(order())
    again = factory(books, prefix="other")
    assert list(again.list()) == [WORKER]
    assert isinstance(again.create(order()), Ready)
    assert len(books.ours) == 1
    clean(factory(books, name="renamed", prefix="third"))
    assert books.ours == []


def full(*sizes: str, message: str = FULL) -> Any:
    def short(asked: Mapping[str, Any]) -> Exception | None:
        return Exception(f"500 {message}") if asked["size"].name in sizes else None

    return short


def test_the_next_alternative_is_tried_and_the_shortages_are_told(books: Books) -> None:
    books.short = full("Small")
    made = factory(books).create(order())
    assert isinstance(made, Ready)
    assert [each.scope.split("/", 3)[3] for each in made.shortages] == ["Small/London Loft", "Small/3"]
    assert [made.asked["size"].name for made in books.ours] == ["Medium"]


def test_there_is_no_time_for_all_so_the_next_create_goes_on_behind_them(books: Books) -> None:
    books.short = full("Small")
    driver = factory(books)
    driver._monotonic = lambda: 15.0 * len(books.calls)
    with pytest.raises(NoCapacity, match="no time for the other alternatives") as late:
        driver.create(order())
    assert late.value.untried
    before = books.calls.count("create_node")
    assert 0 < before < 3
    books.calls.clear()
    done = driver.create(order(avoid=[each.scope for each in late.value.shortages]))
    assert isinstance(done, Ready)
    assert [made.asked["size"].name for made in books.ours] == ["Medium"]


def test_whether_there_is_a_way_is_known_without_asking(books: Books) -> None:
    books.short = lambda asked: Exception("No valid host was found")
    with pytest.raises(NoCapacity) as caught:
        factory(books).create(order())
    every, before = [each.scope for each in caught.value.shortages], list(books.calls)
    assert factory(books).has_alternative(order(avoid=every[1:]))
    assert not factory(books).has_alternative(order(avoid=every))
    assert books.calls == before


def test_what_is_too_short_of_late_is_not_asked_for(books: Books) -> None:
    books.short = full("Small", "Medium")
    with pytest.raises(NoCapacity) as caught:
        factory(books).create(order())
    scopes = [each.scope for each in caught.value.shortages]
    assert len(set(scopes)) == 4
    books.short, books.calls = full(), []
    with pytest.raises(NoCapacity, match="is in a cool-down"):
        factory(books).create(order(avoid=scopes))
    assert books.calls == ["list_nodes"]
    made = factory(books).create(order(avoid=scopes[:3]))
    assert isinstance(made, Ready)
    assert books.ours[0].asked["location"].name == "Island Datacenter"


def test_a_limit_on_a_size_leaves_out_its_other_locations(books: Books) -> None:
    books.short = full("Small", message="Quota exceeded for cores: Requested 8, but already used 60 of 64 cores")
    assert isinstance(factory(books).create(order()), Ready)
    assert books.calls.count("create_node") == 2


def test_an_account_is_shared_by_all_factories_that_ask_as_the_same_and_by_no_other(books: Books) -> None:
    books.short = lambda asked: Exception("Quota exceeded for instances: Requested 1")
    with pytest.raises(QuotaReached) as caught:
        factory(books).create(order())
    scopes = [each.scope for each in caught.value.shortages]
    assert scopes
    assert all(factory(books, name="second", sizes=["Large"]).shares_scope(scope) for scope in scopes)
    assert not any(factory(books, arguments={"host": "elsewhere"}).shares_scope(scope) for scope in scopes)
    assert isinstance(factory(books), PlacementDriver)


def test_a_quota_among_other_shortages_is_still_one(books: Books) -> None:
    """Else its cool-down would not end when a machine of ours does."""
    full = {"Small": "Quota exceeded for cores: Requested 2", "Medium": "No valid host was found"}
    books.short = lambda asked: Exception(full[asked["size"].name])
    with pytest.raises(NoCapacity) as caught:
        factory(books, locations=[]).create(order())
    assert [each.is_quota for each in caught.value.shortages] == [True, False]


def test_limits_alone_are_a_quota(books: Books) -> None:
    books.short = full("Small", "Medium", message="Quota exceeded for instances: Requested 1, used 10 of 10 instances")
    with pytest.raises(QuotaReached) as caught:
        factory(books).create(order())
    assert [each.scope.rsplit("/", 1)[1] for each in caught.value.shortages] == ["all"]
    assert books.calls.count("create_node") == 1


def test_throttling_stops_everything_for_as_long_as_the_cloud_says(books: Books) -> None:
    books.failing["create_node"] = [BaseHTTPError(429, "slow down", {"retry-after": "77"})]
    with pytest.raises(RateLimited) as caught:
        factory(books).create(order())
    assert (caught.value.seconds, caught.value.calls) == (77, "create_node")
    assert books.calls.count("create_node") == 1


def test_a_list_that_fails_makes_nothing(books: Books) -> None:
    books.failing["list_nodes"] = [BaseHTTPError(500, "internal")]
    with pytest.raises(Unknown):
        factory(books).create(order())
    assert books.ours == []


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"image": "Windows 95"}, "no image 'Windows 95'.*Ubuntu|no image 'Windows 95'.*1, 2, 3"),
        ({"sizes": ["Tiny"]}, "no size 'Tiny'"),
        ({"locations": ["The Moon"]}, "no location 'The Moon'"),
        ({"create": {"ex_no_such": 1}}, "takes no ex_no_such"),
    ],
)
def test_what_the_cloud_does_not_have_is_told(books: Books, more: Mapping[str, Any], words: str) -> None:
    with pytest.raises(Misconfigured, match=words):
        factory(books, **more).create(order())
    assert books.ours == []


def test_a_size_is_tried_in_the_next_location_after_a_shortage(books: Books) -> None:
    assert isinstance(factory(books, locations=["The Moon", "London Loft"]).create(order()), Ready)
    assert isinstance(factory(books, sizes=["Tiny", "Big"]).create(order(OTHER)), Ready)


class TestStillborn:
    """A machine that its cloud accepted, and found no place for after."""

    def make(self, books: Books, fault: str) -> DriverError:
        factory(books).create(order())
        (machine,) = books.ours
        machine.state = NodeState.ERROR
        machine.extra["fault"] = {"message": fault}
        with pytest.raises(DriverError) as caught:
            factory(books).create(order())
        assert machine.going == 0
        return caught.value

    def test_a_machine_that_failed_is_destroyed_and_its_alternative_has_a_shortage(self, books: Books) -> None:
        error = self.make(books, FULL)
        assert isinstance(error, NoCapacity)
        assert [each.scope.split("/", 3)[3] for each in error.shortages] == ["Small/London Loft"]
        factory(books).list()
        made = factory(books).create(order(avoid=[each.scope for each in error.shortages]))
        assert isinstance(made, Ready)
        assert [each.asked["location"].name for each in books.ours] == ["Island Datacenter"]

    def test_a_limit_is_a_limit(self, books: Books) -> None:
        assert isinstance(self.make(books, "Quota exceeded for cores: Requested 8"), QuotaReached)

    def test_words_that_nobody_knows(self, books: Books) -> None:
        error = self.make(books, "Build of instance aborted: " + KEY)
        assert isinstance(error, Unknown)
        assert "aborted" in str(error)
        assert KEY not in str(error)

    def test_a_whole_one_beside_it_stays(self, books: Books) -> None:
        books.lost, books.lag = 1, 1
        factory(books).create(order())
        factory(books).create(order())
        first, second = books.ours
        first.hidden = second.hidden = 0
        first.state = NodeState.ERROR
        made = factory(books).create(order())
        assert isinstance(made, Ready)
        assert made.metadata["machine"] == second.id
        assert (first.going, second.going) == (0, None)
