"""Wells at the account, and orders."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from penstock.domain.units.units import CleanProof
from penstock.drivers import MAKER
from penstock.drivers.wells.aws.sessions import SITE_VARIABLE
from penstock.drivers.wells.s3 import S3Well
from penstock.drivers.wells.sts import StsWell
from penstock.kernel import rows
from penstock.ports import Driver, NotYet, Order, Ready
from tests.aws.account import ACCOUNT, BUCKET, Account

NOW = datetime(2026, 1, 1, tzinfo=UTC)
JOB, JOB2 = (rows.ulid(NOW, bytes([*bytes(9), number])) for number in (1, 2))
UNIT, OTHER, *MORE = (f"r-{rows.ulid(NOW, bytes([*bytes(8), 9, number]))}" for number in range(9))
HERE = "Penstock.eu-west-1"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/jobs"
POLICY = [{"Effect": "Allow", "Action": ["s3:GetObject", "s3:PutObject"], "Resource": "arn:aws:s3:::lent/${job}/*"}]
STS: dict[str, Any] = {"role": ROLE, "region": "eu-west-1", "policy": POLICY}
S3: dict[str, Any] = {"role": ROLE, "region": "eu-west-1", "bucket": BUCKET, "settle": 0}


def sts_well(account: Account, now: datetime = NOW, site: str = HERE, keys: Any = None, **more: Any) -> StsWell:
    """A driver that shares nothing with others but the account."""
    client = account.as_(keys) if keys else account.client
    return StsWell({**STS, **more}, {SITE_VARIABLE: site, MAKER: "aws"}, client, lambda: now)


def s3_well(account: Account, site: str = HERE, name: str = "scratch", keys: Any = None, **more: Any) -> S3Well:
    """The same for the other well."""
    client = account.as_(keys) if keys else account.client
    return S3Well({**S3, **more}, {SITE_VARIABLE: site, MAKER: name}, client)


def order(unit: str = UNIT, job: str = JOB, **more: Any) -> Order:
    return Order(unit, "aws", "1", job=job, **more)


def lent(well: Driver, unit: str = UNIT, job: str = JOB, **more: Any) -> Mapping[str, Any]:
    """What a job may know of what was lent to it."""
    made = well.create(order(unit, job, **more))
    assert isinstance(made, Ready)
    return made.metadata


def clean(well: Driver, unit: str = UNIT, now: datetime = NOW) -> CleanProof:
    """Destroy until it is destroyed, at one instant."""
    for _ in range(50):
        done = well.destroy(unit, now)
        if isinstance(done, CleanProof):
            return done
        assert isinstance(done, NotYet)
        now += timedelta(seconds=done.after)
    raise AssertionError("it does not get clean")
