"""The `accounts` well: what exists already is lent again when it was cleaned, and is as before. [UNIT-2]"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from penstock.domain.pools.pools import SlotState
from penstock.domain.units.units import CleanProof, UnitKind, UnitState
from penstock.domain.users.users import User
from penstock.drivers import MAKER, Registry
from penstock.drivers.wells.accounts import cleaner, settings
from penstock.drivers.wells.accounts.well import AccountsWell, CheckResult, difference
from penstock.kernel.errors import DriverError, Misconfigured, RateLimited, Unknown
from penstock.ports import NotYet, Order, Ready, UnitContext
from penstock.testing.site import site_toml
from penstock.testing.twin import START, Twin
from penstock.usecases.site import apply
from penstock.usecases.units import maintenance
from tests.usecases.steps import finish, hello, job_of, slots, submit, told
from tests.wells.books import resource_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ADA = User(name="ada", created=START, version=1)
ROOT = User(name="root", privileges=("admin",), created=START, version=1)
CLEAN = {"state": "clean", "checked": "no bucket is left"}
Said = Mapping[str, Any] | DriverError


class Site:
    """What a site cleans with: it says what a test wants, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Mapping[str, Any]] = []
        self.cleans: list[Said] = []
        self.state = {"digest": "d1", "parts": {"vpcs": "a", "roles": "b"}}

    def __call__(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        self.asked.append(request)
        said: Said = {"state": "checked", **self.state}
        if request["do"] == "clean":
            said = self.cleans.pop(0) if self.cleans else CLEAN
        if isinstance(said, DriverError):
            raise said
        return said

    def ids(self, do: str) -> list[str]:
        return [request["id"] for request in self.asked if request["do"] == do]


def well(site: Site, **more: Any) -> AccountsWell:
    return AccountsWell({"lambda": "clean", **more}, {MAKER: "sandboxes"}, site)


SITE = site_toml(
    targets={"default": {}},
    wells={"sandboxes": "hand"},
    resources={"sandbox": {"well": "sandboxes", "names": ["red", "blue"], "settings": {"region": "eu-west-1"}}},
)
POOL = "resource/sandbox"


def whole(site: Site, **more: Any) -> Twin:
    made = Twin()
    made.drivers.basin = well(site, **more)  # type: ignore[assignment]
    made.drivers.quarantining = True
    apply.apply(made.on, "root", SITE, "site.toml")
    made.run()
    return made


def used(twin: Twin) -> str:
    """A job that has had a sandbox, and is over."""
    job = submit(twin, ADA, resources=["sandbox"])
    twin.run()
    hello(twin, job)
    finish(twin, job)
    return job


def after(twin: Twin, seconds: int, times: int = 1) -> None:
    for _ in range(times):
        twin.pass_time(seconds)
        twin.run()


def test_the_registry_knows_it() -> None:
    registry = Registry({})
    assert registry.quarantines("well", "accounts")
    assert not registry.reusable("well", "accounts")
    assert "has no options" in registry.objections("well", "accounts", {"size": 1})[0]
    assert list(well(Site()).list()) == []


def test_a_job_has_the_name_and_what_the_site_says() -> None:
    done = well(Site()).create(Order("r-1", "sandbox", "red", {"region": "eu-west-1"}))
    assert done == Ready({"name": "red", "type": "sandbox", "region": "eu-west-1"}, public=("name", "type"))


def test_a_sandbox_is_leased_to_one_job() -> None:
    with pytest.raises(Misconfigured, match="leases"):
        well(Site()).create(Order("r-1", "sandbox", "red/2"))
    with pytest.raises(Misconfigured, match="the slot of"):
        well(Site()).destroy("r-1", NOW)


def test_a_thing_is_free_again_after_it_was_cleaned_by_name() -> None:
    site = Site()
    twin = whole(site)
    used(twin)
    assert resource_of(twin).lease.slot not in slots(twin, POOL, SlotState.FREE)
    after(twin, 2)
    assert sorted(slots(twin, POOL, SlotState.FREE)) == ["blue", "red"]
    (asked,) = site.asked
    unit = resource_of(twin)
    assert (asked["do"], asked["name"], asked["unit"], asked["well"]) == (
        "clean",
        unit.lease.slot,
        unit.id,
        "sandboxes",
    )
    assert unit.cleaning.proof
    assert unit.cleaning.proof.checked == f"{unit.lease.slot} was cleaned once: no bucket is left"


def test_a_thing_is_cleaned_as_often_as_the_site_sets() -> None:
    site = Site()
    twin = whole(site, cleanings=3)
    used(twin)
    for count in (1, 2):
        after(twin, 2)
        assert len(site.ids("clean")) == count
        assert len(slots(twin, POOL, SlotState.FREE)) == 1
    after(twin, 2)
    assert len(set(site.ids("clean"))) == 3
    assert len(slots(twin, POOL, SlotState.FREE)) == 2
    proof = resource_of(twin).cleaning.proof
    assert proof
    assert "3 times in a row" in proof.checked


@pytest.mark.parametrize("fails", [Unknown("it crashed"), {"state": "failed", "reason": "a role is in use"}])
def test_a_failed_cleaning_restarts_the_series_with_other_ids(fails: Said) -> None:
    site = Site()
    site.cleans = [CLEAN, fails]
    twin = whole(site, cleanings=2)
    used(twin)
    after(twin, 2, times=2)
    assert len(site.ids("clean")) == 2
    assert len(slots(twin, POOL, SlotState.FREE)) == 1
    after(twin, 60, times=3)
    assert len(set(site.ids("clean"))) == 4
    assert len(slots(twin, POOL, SlotState.FREE)) == 2


def test_to_be_told_to_slow_down_is_no_failure() -> None:
    site = Site()
    site.cleans = [CLEAN, RateLimited("slow down", 30)]
    twin = whole(site, cleanings=2)
    used(twin)
    after(twin, 2, times=2)
    after(twin, 61)
    ids = site.ids("clean")
    assert len(ids) == 3
    assert ids[1] == ids[2]
    assert len(slots(twin, POOL, SlotState.FREE)) == 2


def test_what_is_slow_is_asked_for_again_by_the_same_id() -> None:
    site = Site()
    site.cleans = [{"state": "not-yet", "after": 40, "reason": "emptying buckets"}, {"state": "not-yet"}]
    twin = whole(site)
    job = used(twin)
    after(twin, 2)
    assert "emptying buckets" in str(resource_of(twin).step.reason)
    assert any("emptying buckets" in line for line in told(twin, job))
    after(twin, 39)
    assert len(site.asked) == 1
    after(twin, 2)
    after(twin, 20)
    assert len(site.ids("clean")) == 3
    assert len(set(site.ids("clean"))) == 1
    assert len(slots(twin, POOL, SlotState.FREE)) == 2


def test_what_cannot_be_cleaned_is_quarantined_and_lent_to_nobody() -> None:
    site = Site()
    site.cleans = [{"state": "failed", "reason": "a role is in use"}] * 3
    twin = whole(site)
    used(twin)
    after(twin, 61, times=8)
    unit = resource_of(twin)
    assert unit.state is UnitState.QUARANTINED
    assert "a role is in use" in str(unit.step.reason)
    assert len(slots(twin, POOL, SlotState.FREE)) == 1
    maintenance.release(twin.on, ROOT, UnitKind.RESOURCE, unit.id)
    after(twin, 181, times=2)
    assert len(slots(twin, POOL, SlotState.FREE)) == 2
    assert len(set(site.ids("clean"))) == 4


def test_a_cleaner_that_is_down_is_waited_for() -> None:
    site = Site()
    site.cleans = [Unknown("it crashed")] * 30
    twin = whole(site)
    used(twin)
    after(twin, 601, times=40)
    assert resource_of(twin).state is UnitState.DIRTY
    site.cleans = []
    after(twin, 601, times=2)
    assert len(slots(twin, POOL, SlotState.FREE)) == 2


def test_what_is_as_before_the_lease_is_free() -> None:
    site = Site()
    twin = whole(site, check=True)
    used(twin)
    after(twin, 2, times=2)
    assert [request["do"] for request in site.asked] == ["check", "clean", "check"]
    proof = resource_of(twin).cleaning.proof
    assert proof
    assert "its digest is d1" in proof.checked
    assert len(slots(twin, POOL, SlotState.FREE)) == 2


def test_what_is_not_as_before_is_cleaned_again_and_then_quarantined_with_what_differs() -> None:
    site = Site()
    twin = whole(site, check=True)
    used(twin)
    site.state = {"digest": "d2", "parts": {"vpcs": "a2", "users": "c"}}
    after(twin, 61, times=12)
    unit = resource_of(twin)
    assert unit.state is UnitState.QUARANTINED
    assert "still differs: vpcs has changed, roles is gone, users is new" in str(unit.step.reason)
    assert len(site.ids("clean")) == len(set(site.ids("clean"))) == 3
    assert len(slots(twin, POOL, SlotState.FREE)) == 1
    site.state = {"digest": "d1", "parts": {}}
    maintenance.release(twin.on, ROOT, UnitKind.RESOURCE, unit.id)
    after(twin, 181, times=3)
    assert len(slots(twin, POOL, SlotState.FREE)) == 2


def test_the_sites_own_baseline_comes_first() -> None:
    site = Site()
    baseline = {"red": "d1", "blue": "d1"}
    twin = whole(site, check=True, baseline=baseline)
    site.state = {"digest": "d2"}
    job = submit(twin, ADA, resources=["sandbox"])
    twin.run()
    assert job_of(twin, job).state != "settled"
    assert "so it is not leased: its digest was d1 and is now d2" in str(resource_of(twin).step.reason)
    site.state = {"digest": "d1"}
    after(twin, 20)
    hello(twin, job)
    site.state = {"digest": "d2"}
    finish(twin, job)
    after(twin, 61, times=12)
    assert resource_of(twin).state is UnitState.QUARANTINED


def test_a_job_that_was_never_given_it_is_put_back_without_a_baseline() -> None:
    made = well(Site(), check=True).with_context(UnitContext("red", 1, {"round": "x", "done": 1, "checked": "it"}))
    done = made.destroy("r-1", NOW)
    assert isinstance(done, CleanProof)


@pytest.mark.parametrize(
    "look",
    [{}, {"digest": ""}, {"digest": 1}, {"digest": "x" * 301}, {"digest": "a", "parts": []},
     {"digest": "a", "parts": {"a": 1}}, {"digest": "a", "parts": {str(n): "" for n in range(41)}}],
)  # fmt: skip
def test_a_check_that_says_nothing_is_none(look: dict[str, Any]) -> None:
    site = Site()
    site.state = look
    with pytest.raises(Misconfigured, match="digest"):
        well(site, check=True).create(Order("r-1", "sandbox", "red"))


def test_a_check_may_be_slow_and_its_failure_is_no_jobs_fault() -> None:
    site = Site()
    site.state = {"state": "not-yet", "after": 7}
    assert well(site, check=True).create(Order("r-1", "sandbox", "red")) == NotYet(7, "the cleaner is not done")
    site.state = {"state": "failed"}
    with pytest.raises(Unknown, match="the check before the lease failed"):
        well(site, check=True).create(Order("r-1", "sandbox", "red"))


@pytest.mark.parametrize("said", [{}, {"state": "checked"}, {"state": "done"}, {"state": 1}])
def test_an_answer_to_something_else_is_no_cleaning(said: dict[str, Any]) -> None:
    site = Site()
    site.cleans = [said]
    made = well(site).with_context(UnitContext("red", 1, {"round": "x", "done": 0}))
    with pytest.raises(Misconfigured, match="answer to clean"):
        made.destroy("r-1", NOW)


def test_what_differs_is_told_in_words_that_end() -> None:
    before = CheckResult("a", {f"part-{number:02}": "1" for number in range(30)})
    said = difference(before, CheckResult("b"))
    assert said
    assert said.endswith("and 20 more")
    assert difference(before, CheckResult("a", {"other": "1"})) is None
    assert difference(CheckResult("a"), CheckResult("b")) == "its digest was a and is now b"


@pytest.mark.parametrize(
    ("given", "part"),
    [
        ({}, "either"),
        ({"lambda": "clean", "command": ["clean"]}, "either"),
        ({"lambda": "clean it"}, "function"),
        ({"lambda": "arn:aws:lambda:eu-west-1:123456789012:function:clean:prod"}, "alias"),
        ({"command": []}, "empty"),
        ({"lambda": "clean", "cleanings": 0}, "from 1"),
        ({"lambda": "clean", "baseline": {"red": "a"}}, "check = true"),
        ({"lambda": "clean", "no_such": 1}, "no_such"),
    ],
)
def test_settings_are_checked(given: dict[str, Any], part: str) -> None:
    assert any(part in each for each in settings.complaints(given))
    with pytest.raises(Misconfigured):
        settings.read(given)
    assert settings.complaints({"command": ["./clean"], "check": True, "baseline": {"red": "a"}}) == []


class Lambda:
    """The service that runs functions, as far as the well asks it."""

    def __init__(self, said: object = CLEAN, *, timeout: int = 60, failed: bool = False, code: str = "") -> None:
        self.said, self.timeout, self.failed, self.code = said, timeout, failed, code
        self.asked: list[Any] = []

    def get_function_configuration(self, FunctionName: str) -> dict[str, Any]:
        return {"Timeout": self.timeout}

    def invoke(self, FunctionName: str, Payload: bytes) -> dict[str, Any]:
        self.asked.append((FunctionName, json.loads(Payload)))
        if self.code == "timeout":
            raise ReadTimeoutError(endpoint_url="here")
        if self.code:
            raise ClientError({"Error": {"Code": self.code, "Message": "no"}}, "Invoke")
        said = self.said if isinstance(self.said, bytes) else json.dumps(self.said).encode()
        return {"Payload": io.BytesIO(said), **({"FunctionError": "Unhandled"} if self.failed else {})}


def test_a_function_is_asked_and_answers() -> None:
    service = Lambda()
    assert cleaner.function("clean", lambda: service)({"do": "clean"}) == CLEAN
    assert service.asked == [("clean", {"do": "clean"})]


@pytest.mark.parametrize(
    ("service", "error", "part"),
    [
        (Lambda(timeout=61), Misconfigured, "has a timeout of 61 s"),
        (Lambda(code="TooManyRequestsException"), RateLimited, "TooMany"),
        (Lambda(code="AccessDeniedException"), Misconfigured, "accounts_lambdas"),
        (Lambda(code="ResourceNotFoundException"), Misconfigured, "NotFound"),
        (Lambda(code="ServiceException"), Unknown, "ServiceException"),
        (Lambda(code="timeout"), Unknown, "ReadTimeoutError"),
        (Lambda({"errorType": "KeyError", "errorMessage": "password"}, failed=True), Unknown, "failed: KeyError"),
        (Lambda(b"garbage", failed=True), Unknown, "clean failed"),
        (Lambda(b"garbage"), Misconfigured, "not JSON"),
        (Lambda([]), Misconfigured, "not a JSON object"),
        (Lambda(b"[" * 65_000), Misconfigured, "not JSON"),
        (Lambda(b" " * 70_000), Misconfigured, "more than"),
    ],
)
def test_a_function_that_does_not(service: Lambda, error: type[DriverError], part: str) -> None:
    with pytest.raises(error, match=part) as told:
        cleaner.function("clean", lambda: service)({})
    assert "password" not in str(told.value)
    assert bool(service.asked) is (service.timeout <= 60)


def script(text: str) -> list[str]:
    return [sys.executable, "-S", "-c", text]


@pytest.mark.parametrize(
    ("words", "error", "part"),
    [
        (["/no/such/command"], Misconfigured, "cannot be run"),
        (script("print(1); raise SystemExit(3)"), Unknown, "exited with status 3"),
        (script("print('x' * 70000)"), Misconfigured, "more than"),
        (script("print('hello')"), Misconfigured, "not JSON"),
        (script("import time; time.sleep(60)"), Unknown, "took more than"),
    ],
)
def test_a_command_that_does_not_answer(words: list[str], error: type[DriverError], part: str) -> None:
    with pytest.raises(error, match=part):
        cleaner.command(words, seconds=0.5 if "sleep" in words[-1] else 30)({})


def test_a_command_has_nothing_of_our_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """SEC-1"""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    said = cleaner.command(script("import json, os; print(json.dumps({'has': sorted(os.environ)}))"))({})
    assert "AWS_SECRET_ACCESS_KEY" not in said["has"]
    assert "PATH" in said["has"]


def test_a_command_is_for_the_local_cloud_only() -> None:
    with pytest.raises(Misconfigured, match="only with the local cloud"):
        AccountsWell({"command": ["./clean"]}, {MAKER: "sandboxes"})
    assert AccountsWell({"command": ["./clean"]}, {MAKER: "sandboxes", "PENSTOCK_HOME": "/tmp"})
