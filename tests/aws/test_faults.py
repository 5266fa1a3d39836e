"""Whatever call fails, before or after it is done: again, and then the end, and nothing is left. [UNIT-1] [SEC-1]"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from penstock.kernel.errors import DriverError, Misconfigured, QuotaReached, RateLimited, Unknown
from penstock.ports import Driver
from tests.aws.account import BUCKET, Account, keys_of, said
from tests.aws.helpers import NOW, UNIT, clean, lent, order, s3_well, sts_well

CLOSED = (Misconfigured, QuotaReached, RateLimited, Unknown)
CALLS = {
    "sts": ("AssumeRole", "GetRolePolicy", "PutRolePolicy", "ListRolePolicies", "DeleteRolePolicy"),
    "s3": (
        "AssumeRole", "GetRolePolicy", "PutRolePolicy", "PutObject", "GetObject", "ListObjectVersions",
        "ListMultipartUploads", "AbortMultipartUpload", "DeleteObjects", "ListObjectsV2",
    ),
}  # fmt: skip
EACH = [(well, call) for well, calls in CALLS.items() for call in calls]
WELLS: dict[str, Callable[..., Driver]] = {"sts": sts_well, "s3": s3_well}
LATER = NOW + timedelta(hours=2)


def life(account: Account, name: str) -> None:
    """A lease from its beginning to its end, and the sweep's look."""
    well = WELLS[name](account)
    made = lent(well)
    if name == "s3":
        client = account.client("s3", keys=keys_of(made))
        client.put_object(Bucket=BUCKET, Key=made["prefix"] + "a", Body=b"x")
        client.create_multipart_upload(Bucket=BUCKET, Key=made["prefix"] + "b")
    clean(well)
    list(well.list())
    list(sts_well(account, LATER).list())


def ended(account: Account, name: str) -> None:
    """What a handler does that comes after one that failed."""
    well = WELLS[name](account)
    clean(well)
    assert list(well.list()) == []
    list(sts_well(account, LATER).list())
    assert account.policies() == {}
    assert account.left() == []


@pytest.mark.parametrize("is_done", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(("name", "call"), EACH)
def test_a_call_that_fails_is_made_again_and_nothing_is_left(
    account: Account, name: str, call: str, is_done: bool
) -> None:
    account.fail(call, "InternalError", is_done=is_done, status=500)
    with pytest.raises(DriverError):
        life(account, name)
    assert account.faults[call].times == 0
    ended(account, name)


@pytest.mark.parametrize("name", WELLS)
def test_every_call_of_a_life_is_tried(account: Account, name: str) -> None:
    """Or a new one would go untested."""
    account.calls.clear()
    life(account, name)
    assert set(CALLS[name]) <= set(account.calls)
    made = {"CreateMultipartUpload"} if name == "s3" else set()
    assert set(account.calls) <= {*CALLS[name], "ListRolePolicies", "DeleteRolePolicy", *made}


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("AccessDenied", Misconfigured),
        ("Throttling", RateLimited),
        ("InternalError", Unknown),
        ("NeverHeardOf", Unknown),
    ],
)
@pytest.mark.parametrize(("name", "call"), EACH)
def test_every_error_is_one_that_the_core_knows(
    account: Account, name: str, call: str, code: str, kind: type[DriverError]
) -> None:
    account.fail(call, code, times=9)
    with pytest.raises(DriverError) as found:
        life(account, name)
    assert type(found.value) is kind
    assert str(found.value).startswith(f"{call}: {code}")
    assert "in words" in str(found.value)


def test_while_a_denial_could_not_be_written_the_lease_is_not_over(account: Account) -> None:
    """SEC-1: no proof without it."""
    well = sts_well(account)
    made: Any = lent(well)
    account.fail("PutRolePolicy", "AccessDenied", times=3)
    for _ in range(3):
        with pytest.raises(Misconfigured):
            well.destroy(UNIT, NOW)
    assert account.policies() == {}
    clean(well)
    assert said(account.client("s3", keys=keys_of(made)).list_buckets) == "AccessDenied"


def test_what_is_in_no_table_is_counted(account: Account, capsys: pytest.CaptureFixture[str]) -> None:
    account.fail("AssumeRole", "NeverHeardOf")
    with pytest.raises(Unknown) as found:
        sts_well(account).create(order())
    assert found.value.code == "NeverHeardOf"
    told = capsys.readouterr().out.replace(" ", "")
    assert '"UnknownDriverErrors":[1.0]' in told
    assert "NeverHeardOf" in told
