"""What the wells in AWS have outside, of every kind, for the account diff. UNIT-1"""

from __future__ import annotations

from datetime import timedelta

from penstock.drivers.wells.aws.denials import SLACK
from tests.aws.account import BUCKET, Account
from tests.aws.helpers import HERE, NOW, OTHER, UNIT, clean, lent, s3_well, sts_well

HOUR = timedelta(hours=1)


def test_a_prefix_and_a_record_are_things_also_of_wells_that_are_gone_and_of_no_other_site(account: Account) -> None:
    lent(s3_well(account))
    lent(s3_well(account, name="older"), OTHER)
    lent(s3_well(account, site="Other.eu-west-1"), "r-elsewhere")
    lent(s3_well(account, prefix="x"), "r-elsewhere")
    account.client("s3").put_object(Bucket=BUCKET, Key=f"{HERE}/scratch/{UNIT}/late", Body=b"x")
    account.client("s3").put_object(Bucket=BUCKET, Key=f"{HERE}/stranger", Body=b"x")
    found = {(each.kind, each.id, each.unit, each.maker) for each in s3_well(account).things()}
    assert found == {
        ("lease record", f"{HERE}/scratch/.leases/{UNIT}.json", UNIT, "scratch"),
        ("prefix", f"{HERE}/scratch/{UNIT}/", UNIT, "scratch"),
        ("lease record", f"{HERE}/older/.leases/{OTHER}.json", OTHER, "older"),
    }


def test_a_denial_is_a_thing_that_outlives_its_unit_until_its_sessions_are_over(account: Account) -> None:
    well = sts_well(account)
    lent(well)
    assert list(well.things()) == []
    clean(well)
    (found,) = well.things()
    assert (found.kind, found.id, found.unit, found.made) == (
        "role policy", f"jobs/penstock-{HERE}-{UNIT}", UNIT, NOW
    )  # fmt: skip
    assert found.until == NOW + HOUR + SLACK
    assert list(s3_well(account).things()) == [found]
    assert list(sts_well(account, site="Other.eu-west-1").things()) == []
