"""Whole jobs that are lent something of AWS: leaked credentials die with the lease, and long jobs have fresh ones.

The real use cases over the twin's rows; sessions, policies and objects are MiniStack's, its policy check on. [SEC-1]
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from penstock.domain.jobs.jobs import Outcome
from penstock.domain.units.units import UnitState
from penstock.domain.users.users import User
from penstock.drivers import MAKER, Registry
from penstock.drivers.wells.aws.sessions import SITE_VARIABLE
from penstock.drivers.wells.s3 import S3Well
from penstock.drivers.wells.sts import StsWell
from penstock.system import current_site
from penstock.testing.twin import START, Twin
from penstock.usecases.site import apply
from penstock.usecases.workers import agents
from tests.aws.account import BUCKET, Account, keys_of, said
from tests.aws.helpers import HERE, ROLE
from tests.usecases.exact import unit_of
from tests.usecases.steps import TOKEN, finish, hello, job_of, submit, sweep, told

ADA = User(name="ada", created=START, version=1)
SITE_TEXT = f"""
[factories.hand]
driver = "hand"
[targets.default]
factory = "hand"
limit = 2
[wells.keys]
driver = "sts"
role = "{ROLE}"
region = "eu-west-1"
policy = [{{ Effect = "Allow", Action = "s3:PutObject", Resource = "arn:aws:s3:::{BUCKET}/free/${{job}}/*" }}]
[wells.scratch]
driver = "s3"
role = "{ROLE}"
region = "eu-west-1"
bucket = "{BUCKET}"
settle = 5
[resources.aws]
well = "keys"
limit = 2
[resources.scratch]
well = "scratch"
limit = 2
"""


@pytest.fixture
def twin(account: Account) -> Twin:
    """A site with both wells, on the emulator's clock."""
    made = Twin()
    made.world.time = datetime.now(UTC)  # sessions end by it
    wells: Mapping[str, Any] = {"sts": StsWell, "s3": S3Well}
    made.drivers.well = lambda driver, settings, name="": wells[driver](  # type: ignore[method-assign]
        settings, {SITE_VARIABLE: HERE, MAKER: name}, account.client
    )
    apply.apply(made.on, "admin", SITE_TEXT, "site.toml")
    made.run()
    return made


def running(twin: Twin, *resources: str) -> str:
    job = submit(twin, ADA, resources=list(resources))
    twin.run()
    hello(twin, job)
    return job


def told_of(twin: Twin, job: str, name: str) -> Mapping[str, Any]:
    return agents.resources(twin.on, agents.authenticate(twin.on, job, TOKEN)).resources[name].metadata


def put(account: Account, metadata: Mapping[str, Any], key: str) -> str:
    return said(account.client("s3", keys=keys_of(metadata)).put_object, Bucket=BUCKET, Key=key, Body=b"x")


def test_a_leaked_token_no_longer_works_after_release_and_other_jobs_go_on(account: Account, twin: Twin) -> None:
    first, second = running(twin, "aws"), running(twin, "aws")
    leaked, theirs = told_of(twin, first, "aws"), told_of(twin, second, "aws")
    assert put(account, leaked, f"free/{first}/x") == "ok"
    assert put(account, leaked, f"free/{second}/x") == "AccessDenied"
    finish(twin, first)
    assert job_of(twin, first).end.outcome is Outcome.SUCCEEDED
    assert put(account, leaked, f"free/{first}/x") == "AccessDenied"
    assert put(account, theirs, f"free/{second}/x") == "ok"
    finish(twin, second)
    assert put(account, theirs, f"free/{second}/x") == "AccessDenied"


def test_nothing_is_left_of_a_lent_prefix(account: Account, twin: Twin) -> None:
    job = running(twin, "scratch")
    unit, leaked = unit_of(twin, job, 1), told_of(twin, job, "scratch")
    assert put(account, leaked, leaked["prefix"] + "x") == "ok"
    finish(twin, job)
    assert put(account, leaked, leaked["prefix"] + "y") == "AccessDenied"
    assert account.left(), "until the end of its sessions is known everywhere"
    for _ in range(3):
        sweep(twin)
    found = twin.store.get(unit.key, type(unit))
    assert found is not None
    assert found.state is UnitState.GONE
    assert found.cleaning.proof is not None
    assert "removed 1 versions" in found.cleaning.proof.checked
    assert account.left() == []


def test_a_job_longer_than_a_session_gets_new_credentials(account: Account, twin: Twin) -> None:
    job = running(twin, "aws")
    first = told_of(twin, job, "aws")
    for _ in range(32):
        agents.heartbeat(twin.on, agents.authenticate(twin.on, job, TOKEN))
        sweep(twin, 60)
    second = told_of(twin, job, "aws")
    assert second["access_key_id"] != first["access_key_id"]
    assert put(account, second, f"free/{job}/x") == "ok"
    finish(twin, job)
    assert {put(account, each, f"free/{job}/x") for each in (first, second)} == {"AccessDenied"}
    assert not [line for line in told(twin, job) if first["secret_access_key"] in line]


def test_the_sweep_takes_denials_away_when_they_are_needed_no_longer(account: Account, twin: Twin) -> None:
    """UNIT-1"""
    finish(twin, running(twin, "aws"))
    assert len(account.policies()) == 1
    list(
        StsWell(
            dict(configured(twin)), {SITE_VARIABLE: HERE, MAKER: "keys"}, account.client, lambda: later(twin)
        ).list()
    )
    assert account.policies() == {}


def configured(twin: Twin) -> Mapping[str, Any]:
    return current_site(twin.on).wells["keys"].settings


def later(twin: Twin) -> datetime:
    return twin.world.now() + timedelta(hours=2)


def test_what_a_site_says_wrong_is_told_when_it_is_applied(twin: Twin) -> None:
    complaints = Registry({}).complaints("well", "sts", {"role": ROLE, "region": "eu-west-1", "policy": "{"})
    assert any("is not JSON" in each for each in complaints)
