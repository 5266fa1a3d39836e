"""What needs a person, in one reply: everything that is wrong is in it, once, counted; and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from penstock.domain.github.deliveries import Delivery
from penstock.domain.pools.pools import Pool, pool_key
from penstock.domain.probes.canaries import Canary, canary_key
from penstock.domain.units.comparison import Comparison, Missing
from penstock.domain.units.units import Unit, UnitState, unit_key
from penstock.kernel.errors import Misconfigured, NoCapacity, Shortage
from penstock.kernel.rows import Create, Replace
from penstock.testing.twin import START
from penstock.usecases import attention, sweep
from penstock.usecases.site import apply
from tests.functions.service import SITE, Service, conforms, refused

NOTHING: Mapping[str, Any] = {"count": 0, "items": []}


def look(service: Service) -> dict[str, Any]:
    shown = service.ask("GET", "/v1/attention", as_="root").json
    conforms(shown, "AttentionView")
    return dict(shown)


def unit_of(service: Service, kind: str) -> Unit:
    """The worker or the resource of the job that runs."""
    rows = service.twin.store.rows.values()
    return next(row for row in rows if isinstance(row, Unit) and row.id.startswith(kind))


@pytest.fixture
def busy(service: Service) -> Service:
    """A service with a job that has a worker and a resource."""
    service.submit(resources=["bench"], name="soak")
    service.twin.run()
    return service


def test_where_nothing_is_wrong_all_counts_are_0(service: Service) -> None:
    shown = look(service)
    for part in ("quarantined", "held", "not_put_back", "misconfigured", "short", "failures", "paused", "drift"):
        assert shown[part] == NOTHING, part
    assert shown["canaries"] == shown["deliveries"] == NOTHING | {"of": 0}
    compared = shown["compared"]
    assert (compared["strays"], compared["missing"], compared["unlisted"]) == (0, 0, 0)
    assert {each["maker"] for each in compared["items"]} >= {"factory/hand", "well/locks"}
    assert compared["count"] == len(compared["items"])


def test_it_is_for_operators(service: Service) -> None:
    """SEC-2: it names everybody's jobs, and what drivers said."""
    refused(service.ask("GET", "/v1/attention"), 403, "privilege-missing")
    refused(service.ask("GET", "/v1/attention", as_=None), 401, "no-token")


def test_held_units_come_by_the_end_of_their_hold(busy: Service) -> None:
    worker, resource = unit_of(busy, "w-").id, unit_of(busy, "r-").id
    busy.ask("POST", f"/v1/workers/{worker}/hold", {"reason": "look", "for": 7200}, as_="root")
    busy.ask("POST", f"/v1/resources/{resource}/hold", {"reason": "also", "for": 60}, as_="root")
    held = look(busy)["held"]
    assert [(each["id"], each["kind"], each["maker"]) for each in held["items"]] == [
        (resource, "resource", "locks"),
        (worker, "worker", "hand"),
    ]
    assert held["count"] == 2
    assert {(each["job_name"], each["hold"]["by"]) for each in held["items"]} == {("soak", "root")}
    busy.twin.pass_time(60)
    assert [each["id"] for each in look(busy)["held"]["items"]] == [worker]


def stand(service: Service, unit: Unit, **changes: Any) -> None:
    """Have a unit stand otherwise than it does."""
    row = service.twin.store.get(unit_key(unit.id), Unit)
    assert row
    service.twin.store.commit([Replace(row, replace(row, **changes))])


def test_quarantined_units_are_in_it(busy: Service) -> None:
    unit = unit_of(busy, "w-")
    stand(busy, unit, state=UnitState.QUARANTINED, since=START)
    found = look(busy)["quarantined"]
    assert (found["count"], [each["id"] for each in found["items"]]) == (1, [unit.id])
    assert found["items"][0]["quarantine"]["since"]


def test_a_unit_that_waits_to_be_destroyed_is_in_it_after_an_hour(busy: Service) -> None:
    """As for the alarm NotPutBack."""
    unit, now = unit_of(busy, "w-"), busy.twin.on.world.now()
    stand(busy, unit, state=UnitState.DIRTY, since=now - attention.DIRTY_MOST)
    assert look(busy)["not_put_back"] == NOTHING
    stand(busy, unit, since=now - attention.DIRTY_MOST - timedelta(seconds=1))
    assert [each["id"] for each in look(busy)["not_put_back"]["items"]] == [unit.id]


def test_cool_downs_are_in_it_by_who_can_end_them(service: Service) -> None:
    found = [Shortage("spot/m6i.large", "m6i.large spot: InsufficientInstanceCapacity")]
    service.twin.drivers.hand.says = [NoCapacity("none left", found), Misconfigured("no such image")]
    service.submit()
    service.submit()
    shown = look(service)
    for part, scope, cause in (
        ("misconfigured", "type/linux", "misconfigured"),
        ("short", "spot/m6i.large", "capacity"),
    ):
        (row,) = shown[part]["items"]
        assert (row["maker"], row["scope"], row["cause"]) == ("factory/hand", scope, cause)
        assert shown[part]["count"] == 1
    failures = shown["failures"]
    assert {each["code"] for each in failures["items"]} == {"Misconfigured", "NoCapacity"}
    assert {each["maker"] for each in failures["items"]} == {"factory/hand"}
    assert failures["count"] == 2


def test_what_leaks_is_counted_and_stands_first(service: Service) -> None:
    now = service.twin.on.world.now()
    lost = Comparison(
        maker="well/locks",
        tried=now,
        at=now,
        failures=2,
        why="no answer",
        strays={"r-stray": now},
        missing={"r-gone": Missing(now, 1)},
        more_strays=7,
        more_missing=3,
    )
    service.twin.store.commit([Create(lost)])
    compared = look(service)["compared"]
    assert (compared["strays"], compared["missing"], compared["unlisted"]) == (8, 4, 1)
    first = compared["items"][0]
    assert (first["maker"], first["compared"]["strays"], first["compared"]["missing"]) == (
        "well/locks",
        ["r-stray"],
        ["r-gone"],
    )


def test_paused_pools_are_in_it_with_who_paused_them_and_why(service: Service) -> None:
    at = service.ask("POST", "/v1/pools/target/linux/pause", {"reason": "it is rewired"}, as_="root").json["pause"][
        "at"
    ]
    service.ask("PUT", "/v1/pools/resource/bench/limit", {"limit": 1}, as_="root")
    service.submit()
    shown = look(service)
    (paused,) = shown["paused"]["items"]
    assert (paused["pool"], paused["by"], paused["waiting"], paused["held"]) == ("target/linux", "root", 1, 0)
    assert (paused["reason"], paused["at"]) == ("it is rewired", at)
    assert {each["pool"] for each in shown["drift"]["items"]} >= {"target/linux"}
    assert shown["drift"]["count"] == len(shown["drift"]["items"])


def test_who_paused_a_pool_before_reasons_were_kept_is_what_the_audit_log_says(service: Service) -> None:
    apply.pause(service.twin.on, "resource/bench", paused=True)
    service.ask("POST", "/v1/pools/target/linux/pause", as_="root")
    was = service.twin.store.get(pool_key("target/linux"), Pool)
    assert was
    service.twin.store.commit([Replace(was, replace(was, pause=None))])
    found = {each["pool"]: (each["by"], each["reason"]) for each in look(service)["paused"]["items"]}
    assert found == {"target/linux": ("root", ""), "resource/bench": (None, "")}


def test_deliveries_that_were_missed_or_led_to_nothing_are_in_it(service: Service) -> None:
    now = service.twin.on.world.now()
    rows = [("d-1", False, ""), ("d-2", True, "handled"), ("d-3", False, "handled")]
    for id, missed, outcome in rows:
        row = Delivery(id=id, name="push", action="", event=None, received=now, missed=missed, outcome=outcome)
        service.twin.store.commit([Create(row)])
    shown = look(service)["deliveries"]
    assert (shown["count"], shown["of"]) == (2, 3)
    assert {each["id"] for each in shown["items"]} == {"d-1", "d-2"}


def test_nothing_changes_while_nothing_happens(busy: Service) -> None:
    """A page that watches gets 304: no age of anything is in the reply."""
    sweep.sweep(busy.twin.on)
    first = busy.ask("GET", "/v1/attention", as_="root")
    tag = first.headers["etag"]
    busy.twin.pass_time(1)
    again = busy.ask("GET", "/v1/attention", as_="root", headers={"if-none-match": tag})
    assert again.status == 304


def test_each_list_has_at_most_a_hundred(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.api.attention.MOST", 1)
    service.ask("POST", "/v1/pools/target/linux/pause", as_="root")
    service.ask("POST", "/v1/pools/resource/bench/pause", as_="root")
    paused = look(service)["paused"]
    assert (paused["count"], len(paused["items"])) == (2, 1)


def test_canaries_are_in_it_that_the_site_has(service: Service) -> None:
    """One that is left from an earlier configuration is not."""
    apply.apply(service.twin.on, "root", SITE + '[targets.linux.canary]\nevery = "1h"\nscript = "true"\n', "site.toml")
    rows = [Canary(pool="target/lab", due=None, failures=3)]
    service.twin.store.commit([Create(row) for row in rows])
    shown = look(service)["canaries"]
    assert (shown["count"], shown["of"], [each["pool"] for each in shown["items"]]) == (0, 1, ["target/linux"])
    row = service.twin.store.get(canary_key("target/linux"), Canary)
    assert row
    service.twin.store.commit([Replace(row, replace(row, failures=1))])
    assert look(service)["canaries"]["count"] == 1
