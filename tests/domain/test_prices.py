"""What a job cost: the example of docs/users/prices.md, and each rule alone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from penstock.domain import money, prices
from penstock.domain.jobs.jobs import Bill, Charge, Job, Outcome, PastAttempt, State, Times
from penstock.domain.money import Micros
from penstock.domain.pools.pools import WORKER, Lease, LeaseState
from penstock.domain.prices import Files, Span
from penstock.domain.site.site import Prices, Site
from penstock.domain.units import reuse, units
from penstock.domain.units.units import CleanProof, Unit, UnitKind, UnitState
from penstock.testing.site import site
from tests.domain.helpers import MINUTE, NOW, SECOND, job, lease, unit

PAGE = (Path(__file__).parents[2] / "docs/users/prices.md").read_text(encoding="utf-8")
SITE = site(
    prices={"currency": "USD"},
    wells={"benches": "lock"},
    targets={"ubuntu": {"price": 0.12}},
    resources={"bench": {"well": "benches", "names": ["bench-1"], "price": 2.4}},
)
NO_FILES = Files()
PROOF = CleanProof("hand", NOW, "nothing is left")


def at(minutes: float) -> datetime:
    return NOW + MINUTE * minutes


def settled(begun: float | None = 12, ended: float = 42, **changes: Any) -> Job:
    """A job whose script began and ended so many minutes after its submit."""
    plain = job(
        state=State.SETTLED,
        times=Times(submitted=NOW, ready=NOW, started=at(begun) if begun else None, settled=at(ended)),
    )
    ran = replace(plain, run=replace(plain.run, worker="w-1" if begun else None))
    return replace(ran, end=replace(ran.end, outcome=Outcome.SUCCEEDED), **changes)


def granted(order: int, minutes: float, **changes: Any) -> Lease:
    what = {"name": "worker", "type": "ubuntu", "unit": "w-1"} if order == WORKER else {"name": "it", "unit": "r-1"}
    return lease(order, LeaseState.GRANTED, **{"granted": at(minutes), "fence": 1, "token": "", **what, **changes})


def made_worker(minutes: float | None = 11, gone: float | None = 43, **metadata: Any) -> Unit:
    """A worker whose machine was made, and is destroyed."""
    found = unit()
    if minutes is not None:
        found = units.mark_made(found, at(minutes), MINUTE, metadata)
    return units.mark_gone(found, PROOF, at(gone)) if gone is not None else found


def bench(gone: float | None = 44) -> Unit:
    found = unit(id="r-1", is_a=UnitKind.RESOURCE, type="bench", lease=replace(unit().lease, order=1))
    return units.mark_gone(found, PROOF, at(gone)) if gone is not None else replace(found, state=UnitState.DIRTY)


def reckon(
    of: Job, leases: list[Lease], *had: Unit, files: Files = NO_FILES, on: Site = SITE, now: float = 60
) -> tuple[Bill, bool]:  # fmt: skip
    return prices.reckon(of, leases, {each.id: each for each in had}, files, on, at(now))


def test_the_example_of_the_page_is_true() -> None:
    leases = [granted(1, 0, token="t", step=1), granted(WORKER, 10, token="t", step=0)]
    bill, is_complete = reckon(settled(), leases, bench(), made_worker(), files=Files(stored=500 * 2**20))
    assert is_complete
    row = {charge.name: charge for charge in bill.charges}
    shown: Mapping[str, tuple[int, int]] = {
        "the bench": (row["it"].cost, row["it"].unused_cost),
        "the worker": (row["worker"].cost, row["worker"].unused_cost),
        "the service": (bill.control, 0),
        "the output": (bill.stored, 0),
        "**all**": (bill.total, bill.unused),
    }
    told = {
        found[1]: (found[2], found[3])
        for found in re.finditer(r"^\| ([^|]+) \|[^|]*\| (\d\.\d{6}) \| (\d\.\d{6}) \|$", PAGE, re.MULTILINE)
    }
    assert told == {name: (money.shown(cost), money.shown(unused)) for name, (cost, unused) in shown.items()}


def test_what_the_page_says_of_the_service_is_what_is_counted() -> None:
    for amount in (prices.ATTEMPT, prices.LEASE, prices.TRANSITION, prices.RUNNING_HOUR):
        assert f"| {amount} |" in PAGE


def span(of: Job, held: Lease, had: Unit | None, now: float = 60) -> Span:
    return prices.span_of(of, held, had, at(now))


def minutes(held: float, unused: float, *, is_open: bool = False) -> Span:
    return Span(int(held * 60_000), int(unused * 60_000), is_open)


@pytest.mark.parametrize(
    ("held", "had", "wanted"),
    [
        (granted(1, 0), bench(), minutes(44, 14)),
        (granted(1, 0), bench(None), minutes(60, 30, is_open=True)),
        (granted(1, 0), None, minutes(42, 12)),
        (granted(WORKER, 10), made_worker(), minutes(32, 2)),
        (granted(WORKER, 10), made_worker(5), minutes(33, 3)),
        (granted(WORKER, 10), made_worker(None), Span()),
        (granted(WORKER, 10), made_worker(None, None), Span(is_open=True)),
        (granted(WORKER, 10), None, minutes(32, 2)),
        (granted(1, 50), bench(), Span()),
    ],
)
def test_a_lease_costs_from_its_grant_or_its_machine_until_it_is_given_back(
    held: Lease, had: Unit | None, wanted: Span
) -> None:
    assert span(settled(), held, had) == wanted


def test_a_script_that_never_began_used_nothing() -> None:
    assert span(settled(begun=None), granted(1, 0), bench()) == minutes(44, 44)


def test_a_job_that_runs_costs_until_now() -> None:
    running = settled(times=Times(submitted=NOW, started=at(12)), state=State.RUNNING)
    assert span(running, granted(1, 0), bench(None), now=20) == minutes(20, 12, is_open=True)
    assert span(running, granted(1, 0), bench(None), now=5) == minutes(5, 5, is_open=True)
    queued = settled(begun=None, times=Times(submitted=NOW), state=State.ACQUIRING)
    assert span(queued, granted(1, 0), bench(None), now=20) == minutes(20, 20, is_open=True)


def test_a_unit_that_has_another_lease_by_now_was_given_back_when_its_journal_says() -> None:
    """A worker that is kept: made for one job, cleaned, and handed over to the next."""
    first = units.hello(units.mark_made(unit(), at(11), MINUTE), "h", at(12), MINUTE)
    kept = replace(first, state=UnitState.CLEANING)
    idle = reuse.keep_warm(kept, PROOF, _warm(), at(45), MINUTE)
    next_one = reuse.lend(idle, "J2", 1, WORKER, 2, at(50))
    assert span(settled(), granted(WORKER, 10), next_one) == minutes(34, 4)
    second = replace(settled(begun=51, ended=58), id="J2")
    again = granted(WORKER, 50, job="J2", fence=2)
    assert span(second, again, next_one, now=59) == minutes(9, 2, is_open=True)
    third = reuse.lend(
        reuse.keep_warm(replace(next_one, state=UnitState.CLEANING), PROOF, _warm(), at(59), MINUTE),
        "J3",
        1,
        WORKER,
        3,
        at(70),
    )
    assert span(second, again, third, now=80) == minutes(9, 2)


def _warm() -> Any:
    return site(targets={"ubuntu": {"warm": {"max": 1}}}).targets["ubuntu"].warm


def test_a_unit_in_quarantine_costs_its_job_nothing_more() -> None:
    found = units.add_entry(bench(None), at(50), "quarantined: it is broken")
    assert span(settled(), granted(1, 0), replace(found, state=UnitState.QUARANTINED)) == minutes(50, 20)


def test_what_the_journal_has_forgotten_counts_as_given_back_at_once() -> None:
    moved = reuse.lend(replace(unit(), state=UnitState.IDLE), "J2", 1, WORKER, 2, at(55))
    forgotten = replace(moved, journal=replace(moved.journal, entries=moved.journal.entries[-1:]))
    assert span(settled(), granted(WORKER, 10), forgotten) == minutes(0, 0)
    assert span(settled(), granted(WORKER, 10), replace(forgotten, journal=units.Journal())) == minutes(32, 2)


def test_all_attempts_count_and_each_thing_once() -> None:
    past = PastAttempt(1, "lost", "it fell silent", started=at(2), ended=at(5))
    whole = settled(attempt=2)
    retried = replace(whole, history=replace(whole.history, attempts=(past,)))
    before = unit(id="w-0", lease=replace(unit().lease, attempt=1))
    before = units.mark_gone(units.mark_made(before, at(1), MINUTE), PROOF, at(6))
    now = unit(lease=replace(unit().lease, attempt=2))
    now = units.mark_gone(units.mark_made(now, at(11), MINUTE), PROOF, at(43))
    leases = [granted(WORKER, 0, unit="w-0"), granted(WORKER, 10, attempt=2)]
    bill, is_complete = reckon(retried, leases, before, now)
    assert is_complete
    assert bill.charges == (Charge(WORKER, "worker", "ubuntu", 37 * 60_000, 4 * 60_000, 74_000, 8_000),)
    assert bill.control == 2 * prices.ATTEMPT + money.rated(prices.RUNNING_HOUR, 33 * 60_000, prices.HOUR_MS)


def test_a_bill_is_complete_when_everything_is_given_back() -> None:
    leases = [granted(1, 0), granted(WORKER, 10), lease(2)]
    assert reckon(settled(), leases, bench(), made_worker())[1]
    assert not reckon(settled(), leases, bench(None), made_worker())[1]
    assert not reckon(settled(), leases, bench(), made_worker(gone=None))[1]


@pytest.mark.parametrize(
    ("metadata", "wanted"),
    [
        ({}, 120_000),
        ({"price": "0.0816"}, 81_600),
        ({"price": "0"}, 0),
        ({"price": "dear"}, 120_000),
        ({"price": "-1"}, 120_000),
        ({"price_usd": "0.05"}, 46_000),
        ({"price_usd": "0.05", "price": "3"}, 46_000),
    ],
)
def test_the_price_of_a_worker_is_its_factorys_or_else_the_sites(metadata: dict[str, Any], wanted: int) -> None:
    euros = replace(SITE, prices=Prices("EUR", Micros(920_000)))
    worker = made_worker(**metadata)
    assert prices.price_of(granted(WORKER, 10), worker, euros) == wanted


def test_what_a_resource_says_of_itself_is_no_price() -> None:
    dear = replace(bench(), creation=replace(bench().creation, metadata={"price": "1000"}))
    assert prices.price_of(granted(1, 0), dear, SITE) == 2_400_000


def test_what_has_no_price_costs_nothing() -> None:
    assert prices.price_of(granted(1, 0, type="gone"), None, SITE) == 0
    assert prices.price_of(granted(WORKER, 0, type="bench"), None, SITE) == 0
    free = site(targets={"ubuntu": {}})
    assert prices.price_of(granted(WORKER, 0), None, free) == 0


def test_a_job_pays_for_the_parts_of_a_host_that_it_has() -> None:
    had = {"price": 0.12, "names": ["bench-7"], "machine": {"cpus": 8, "memory": "32GiB"}, "share": True}
    shared, whole = (
        site(prices={"currency": "USD"}, targets={"ubuntu": each}) for each in (had, had | {"share": False})
    )
    of = settled()
    needs = tuple(replace(need, slots=2) if need.order == WORKER else need for need in of.request.needs)
    mine = replace(of, request=replace(of.request, needs=needs))
    two, all_ = (
        reckon(each, [granted(WORKER, 10)], made_worker(), on=on)[0].charges[0].cost
        for each, on in ((mine, shared), (of, whole))
    )
    assert two * 4 == all_ > 0


def test_a_site_without_prices_counts_the_service_and_the_files_in_dollars() -> None:
    free = site(targets={"ubuntu": {}})
    bill, _ = reckon(settled(), [granted(WORKER, 10)], made_worker(), files=Files(2**30, 2**30), on=free)
    assert (bill.currency, bill.sent, bill.charges[0].cost) == ("USD", 0, 0)
    assert bill.stored == money.rated(23_000, 30 * 24, 730)
    assert bill.control > prices.ATTEMPT


def test_dollars_are_converted() -> None:
    euros = replace(SITE, prices=Prices("EUR", Micros(500_000)))
    assert reckon(settled(begun=None), [], on=euros)[0].control == prices.ATTEMPT // 2


def test_files_cost_by_how_long_the_outcome_keeps_them() -> None:
    both = replace(SITE, prices=Prices(stored=Micros(730), sent=Micros(90_000)))
    files = Files(stored=2**30, sent=2**31)
    done, _ = reckon(settled(), [], files=files, on=both)
    assert (done.stored, done.sent) == (30 * 24, 180_000)
    failed = replace(settled(), end=replace(settled().end, outcome=Outcome.FAILED))
    assert reckon(failed, [], files=files, on=both)[0].stored == 14 * 24
    runs = replace(settled(), end=replace(settled().end, outcome=None))
    assert reckon(runs, [], files=files, on=both)[0].stored == 0


def test_the_service_is_counted_by_attempts_leases_states_and_hours() -> None:
    assert prices.control(settled(begun=None), [], NOW) == prices.ATTEMPT
    waits = lease(2, token="")
    assert prices.control(settled(begun=None), [waits], NOW) == prices.ATTEMPT, "what was not granted is no lease"
    held = [granted(1, 0), granted(2, 0), granted(WORKER, 10)]
    assert prices.control(settled(begun=None), held, NOW) == prices.ATTEMPT + 2 * prices.LEASE
    flow = [granted(1, 0, token="t", step=1), granted(2, 0, token="t", step=1), granted(WORKER, 10, token="t", step=0)]
    by_flow = prices.ATTEMPT + 2 * prices.LEASE + 3 * prices.TRANSITION
    assert prices.control(settled(begun=None), flow, NOW) == by_flow
    assert prices.control(settled(begun=2, ended=62), [], NOW) == prices.ATTEMPT + prices.RUNNING_HOUR
    runs = settled(times=Times(submitted=NOW, started=NOW), state=State.RUNNING)
    assert prices.control(runs, [], at(60)) == prices.ATTEMPT + prices.RUNNING_HOUR
    assert prices.control(runs, [], at(-60)) == prices.ATTEMPT, "clocks may differ"


def test_a_bill_is_opened_when_a_job_settles_on_a_site_with_prices() -> None:
    opened = prices.open_bill(settled(), at(42))
    assert opened.bill == Bill(due=at(42) + prices.CLOSE_AFTER)


def test_a_settled_job_is_due_when_its_bill_is() -> None:
    kept = replace(settled(), end=replace(settled().end, kept_until=at(99)), due=None)
    assert kept.deadline == at(99)
    billed = replace(kept, bill=Bill(due=at(50)))
    assert (billed.deadline, billed.due_as) == (at(50), "kept")
    assert replace(billed, bill=Bill()).deadline == at(99)
    assert replace(settled(), bill=Bill(due=at(50)), due=None).deadline == at(50)
    assert replace(billed, due=at(1)).deadline == at(1)
    assert replace(settled(), due=None).deadline is None


def test_the_sum_of_a_bill() -> None:
    charges = (Charge(1, "it", "bench", 5, 2, 70, 30), Charge(WORKER, "worker", "ubuntu", 5, 1, 7, 3))
    bill = Bill(None, "USD", 1000, 200, 50_000, charges)
    assert (bill.total, bill.unused) == (51_277, 33)


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (0.0816, 81_600), ("0.0816", 81_600), (3, 3_000_000), (0, 0), (0.000001, 1), (1e9, 10**15),
        (0.0000001, None), (-1, None), (True, None), (None, None), ("", None), ("NaN", None), ("Infinity", None),
        (1e9 + 1, None), ([], None),
    ],
)  # fmt: skip
def test_an_amount_is_whole_millionths(value: object, wanted: int | None) -> None:
    assert money.micros_of(value) == wanted


def test_amounts_are_shown_whole() -> None:
    assert [money.shown(each) for each in (0, 1, 81_600, 12_000_000)] == [
        "0.000000",
        "0.000001",
        "0.081600",
        "12.000000",
    ]
    assert [str(Micros(each)) for each in (0, 23_000, 12_000_000, 10_000_000)] == ["0", "0.023", "12", "10"]


@pytest.mark.parametrize(
    ("rate", "amount", "per", "wanted"), [(3, 1, 2, 2), (1, 1, 3, 0), (2, 1, 3, 1), (5, 0, 7, 0), (7, 7, 7, 7)]
)
def test_a_rate_rounds_once_to_the_nearest_halves_up(rate: int, amount: int, per: int, wanted: int) -> None:
    assert money.rated(rate, amount, per) == wanted


def test_a_journal_is_searched_from_a_time_on() -> None:
    noted = units.add_entry(units.add_entry(unit(), at(1), "made"), at(3), "made after 2 failures")
    assert noted.journal.first(at(1), units.MADE) == at(1)
    assert noted.journal.first(at(1) + timedelta(microseconds=900), units.MADE) == at(1), "entries are in milliseconds"
    assert noted.journal.first(at(1) + SECOND, units.MADE) == at(3)
    assert noted.journal.first(at(4), units.MADE) is None
    assert noted.journal.first(at(0), units.FREED) is None
