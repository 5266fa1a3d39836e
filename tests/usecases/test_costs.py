"""What owners' jobs cost together: each job once, whoever closes its bill. [SEC-2]"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest

from penstock.domain import costs as domain_costs
from penstock.domain.costs import By, Cost, Spend
from penstock.domain.users.users import SUBMIT, Token, User, bearer
from penstock.kernel.errors import Refused
from penstock.kernel.rows import Create
from penstock.ports import NotYet
from penstock.testing.site import site_toml
from penstock.testing.twin import START, Twin
from penstock.usecases import costs
from penstock.usecases.jobs import bills
from tests.usecases.exact import site
from tests.usecases.races import before_the_next_commit
from tests.usecases.steps import finish, hello, job_of, submit, sweep

SITE = site_toml(
    prices={"currency": "EUR", "dollar": 1}, targets={"linux": {"limit": 9, "price": 3.6}, "default": "linux"}
)
BOB = User(name="bob", created=START, version=1, privileges=("as.oxide:hubris",))


@pytest.fixture
def twin() -> Twin:
    return site(SITE)


def ran(twin: Twin, user: User) -> str:
    job = submit(twin, user)
    twin.run()
    hello(twin, job)
    twin.pass_time(10)
    finish(twin, job)
    return job


def asked(
    twin: Twin, user: User, by: By = By.OWNER, since: datetime | None = None, until: datetime | None = None,
    owner: str | None = None,
) -> list[Cost]:  # fmt: skip
    return costs.list_costs(twin.on, user, by, since, until, owner)[2]


def test_the_sums_are_those_of_the_closed_bills(twin: Twin, ada: User, root: User) -> None:
    jobs = [ran(twin, ada) for _ in range(6)]
    assert asked(twin, root) == []
    sweep(twin, 400)
    jobs.append(ran(twin, BOB))
    sweep(twin, 400)
    found = {cost.name: cost for cost in asked(twin, root)}
    for name in ("ada", "bob"):
        closed = [row.bill for row in (job_of(twin, job) for job in jobs) if row.owner == name]
        assert found[name].total == sum(bill.total for bill in closed if bill)
        assert found[name].unused == sum(bill.unused for bill in closed if bill)
        assert found[name].jobs == len(closed)
    assert {cost.currency for cost in found.values()} == {"EUR"}
    assert len([row for row in twin.store.rows.values() if isinstance(row, Spend)]) > 2


def test_a_bill_that_two_close_is_counted_once(twin: Twin, ada: User, root: User) -> None:
    job = ran(twin, ada)
    twin.pass_time(301)
    before_the_next_commit(twin, lambda: bills.close(twin.on, job))
    bills.close(twin.on, job)
    bills.close(twin.on, job)
    (found,) = asked(twin, root)
    assert (found.jobs, found.total) == (1, bills.bill_of(twin.on, job_of(twin, job)).total)


def test_two_jobs_of_one_row_are_both_counted(
    twin: Twin, ada: User, root: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(domain_costs, "PARTS", 1)
    one, other = ran(twin, ada), ran(twin, ada)
    twin.pass_time(301)
    before_the_next_commit(twin, lambda: bills.close(twin.on, other))
    bills.close(twin.on, one)
    (found,) = asked(twin, root)
    assert found.jobs == 2


def test_a_bill_that_waits_is_not_counted_yet(twin: Twin, ada: User, root: User) -> None:
    twin.drivers.hand.stuck = NotYet(60, "its machine is shutting down")
    ran(twin, ada)
    sweep(twin, 400)
    assert asked(twin, root) == []


def test_users_see_their_own_and_operators_all(twin: Twin, ada: User, root: User) -> None:
    for owner in ("ada", "bob", "oxide:hubris"):
        row = Spend(owner=owner, target="linux", day="2026-01-01", currency="EUR", part=0, jobs=1, control=5)
        assert twin.store.commit([Create(row)])
    names = [sorted(cost.name for cost in asked(twin, user)) for user in (root, ada, BOB)]
    assert names == [["ada", "bob", "oxide:hubris"], ["ada"], ["bob"]]
    assert [cost.name for cost in asked(twin, BOB, owner="oxide:hubris")] == ["oxide:hubris"]
    assert [cost.name for cost in asked(twin, root, owner="ada")] == ["ada"]
    with pytest.raises(Refused) as refused:
        asked(twin, ada, owner="bob")
    assert refused.value.status == 403


def test_an_operators_token_that_does_not_operate_is_told_of_no_others(twin: Twin, root: User) -> None:
    """SEC-2: it sees no jobs of others either."""
    for owner in ("root", "ada"):
        row = Spend(owner=owner, target="linux", day="2026-01-01", currency="EUR", part=0, jobs=1, control=5)
        assert twin.store.commit([Create(row)])
    shown = bearer(root, Token(id="T", digest="", user="root", created=START, scopes=("submit",)), SUBMIT)
    assert shown
    assert [cost.name for cost in asked(twin, shown)] == ["root"]


def test_what_somebody_spent_under_a_former_name_is_theirs(twin: Twin) -> None:
    for owner in ("bob", "robert", "ada"):
        row = Spend(owner=owner, target="linux", day="2026-01-01", currency="EUR", part=0, jobs=1, control=5)
        assert twin.store.commit([Create(row)])
    renamed = replace(BOB, former=("robert",))
    assert sorted(cost.name for cost in asked(twin, renamed)) == ["bob", "robert"]


def test_only_the_days_that_are_asked_for_count(twin: Twin, ada: User, root: User) -> None:
    days = [START + timedelta(days=number) for number in range(40)]
    for day in days:
        row = Spend(owner="ada", target="linux", day=day.date().isoformat(), currency="EUR", part=0, jobs=1)
        assert twin.store.commit([Create(row)])
    twin.world.time = days[-1]

    def told(user: User, since: datetime | None = None, until: datetime | None = None) -> list[str]:
        return [cost.name for cost in asked(twin, user, By.DAY, since, until)]

    every = [day.date().isoformat() for day in days]
    for user in (ada, root):
        assert told(user) == every[31:]
        assert told(user, since=START) == every
        assert told(user, since=days[3] + timedelta(hours=23), until=days[5]) == every[3:6]
        assert told(user, until=days[5]) == every[:6]
        assert told(user, since=days[7], until=days[7]) == every[7:8]
        east = timezone(timedelta(hours=9))
        assert told(user, since=days[7].replace(tzinfo=east), until=days[7]) == every[6:8], "days are those of UTC"
    first, last, _ = costs.list_costs(twin.on, ada, By.DAY, None, None, None)
    assert (first.isoformat(), last.isoformat()) == ("2026-02-01", "2026-02-09")


@pytest.mark.parametrize(("since", "days"), [(START + timedelta(days=1), 0), (START, 366)])
def test_a_period_has_an_end_after_its_beginning_and_is_not_too_long(
    twin: Twin, root: User, since: datetime, days: int
) -> None:
    with pytest.raises(Refused) as refused:
        asked(twin, root, since=since, until=START + timedelta(days=days))
    assert refused.value.status == 400
    assert "0 to 365 days" in refused.value.detail


def test_the_longest_period_may_be_asked_for(twin: Twin, root: User) -> None:
    assert asked(twin, root, since=START, until=START + timedelta(days=365)) == []


def test_page_after_page_is_read_and_too_many_are_refused(
    twin: Twin, ada: User, root: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.listings.PAGE", 2)
    for number in range(5):
        row = Spend(owner="ada", target=f"t{number}", day="2026-01-01", currency="EUR", part=0, jobs=1)
        assert twin.store.commit([Create(row)])
    for user in (ada, root):
        monkeypatch.setattr(costs, "ROWS_MOST", 5)
        assert len(asked(twin, user, By.TARGET)) == 5
        monkeypatch.setattr(costs, "ROWS_MOST", 4)
        with pytest.raises(Refused) as refused:
            asked(twin, user)
        assert refused.value.status == 413


def test_days_are_those_of_utc(twin: Twin, ada: User) -> None:
    job = ran(twin, ada)
    sweep(twin, 400)
    (found,) = asked(twin, ada, By.DAY)
    settled = job_of(twin, job).times.settled
    assert settled
    assert found.name == settled.astimezone(UTC).date().isoformat()
