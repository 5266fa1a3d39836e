"""The `sts` well: what its credentials may do, and that they are worth nothing after their lease. [SEC-1]"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from penstock.domain.units.units import CleanProof
from penstock.drivers import MAKER, Registry
from penstock.drivers.wells.aws import denials, sessions
from penstock.drivers.wells.aws.sessions import SITE_VARIABLE
from penstock.drivers.wells.sts import StsWell
from penstock.kernel.errors import Misconfigured
from penstock.ports import NotYet, Ready
from tests.aws.account import BUCKET, Account, keys_of, said
from tests.aws.helpers import HERE, JOB, JOB2, MORE, NOW, OTHER, ROLE, STS, UNIT, clean, order, sts_well
from tests.aws.helpers import lent as lent_by

HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)


def put(account: Account, metadata: Any, key: str) -> str:
    return said(account.client("s3", keys=keys_of(metadata)).put_object, Bucket=BUCKET, Key=key, Body=b"x")


def test_a_job_may_do_what_the_policy_says_and_nothing_else(account: Account) -> None:
    made = lent_by(sts_well(account))
    assert put(account, made, f"{JOB}/x") == "ok"
    assert put(account, made, f"{JOB2}/x") == "AccessDenied"
    assert said(account.client("sqs", keys=keys_of(made)).create_queue, QueueName="q") != "ok", "although its role may"


def test_what_it_is_told(account: Account) -> None:
    made = sts_well(account).create(order(settings={"team": "tools"}))
    assert isinstance(made, Ready)
    assert made.expires is not None
    assert made.metadata == {
        "team": "tools",
        **{key: made.metadata[key] for key in ("access_key_id", "secret_access_key", "session_token")},
        "expiration": made.expires.isoformat(),
        "region": "eu-west-1",
        "role": ROLE,
    }


def test_a_leaked_credential_is_worth_nothing_after_the_lease(account: Account) -> None:
    made = lent_by(sts_well(account))
    assert put(account, made, f"{JOB}/x") == "ok"
    clean(sts_well(account))
    assert put(account, made, f"{JOB}/x") == "AccessDenied"


def test_all_sessions_of_a_lease_are_denied_also_late_ones(account: Account) -> None:
    """A call that was under way when the lease ended gives out a session all the same; it is denied everything."""
    well = sts_well(account)
    made = [lent_by(well), lent_by(well)]
    clean(well)
    late = lent_by(well)
    assert [put(account, each, f"{JOB}/x") for each in (*made, late)] == ["AccessDenied"] * 3


def test_the_sessions_of_other_leases_go_on(account: Account) -> None:
    """Also of another lease of the same job, and of one that began before."""
    well = sts_well(account)
    before, ended, after = (lent_by(well, unit) for unit in (OTHER, UNIT, MORE[0]))
    clean(well)
    assert [put(account, each, f"{JOB}/x") for each in (before, ended, after)] == ["ok", "AccessDenied", "ok"]


def test_what_is_asked_of_sts(account: Account) -> None:
    """The text itself, for what no emulator looks at: who is behind a session is in CloudTrail by its source."""
    arn = "arn:aws:iam::aws:policy/ReadOnlyAccess"
    sts_well(account, external_id="ours", duration="20m", policies=[]).create(order())
    asked = account.asked["AssumeRole"]
    assert json.loads(asked.pop("Policy")) == {
        "Version": "2012-10-17",
        "Statement": [{**STS["policy"][0], "Resource": f"arn:aws:s3:::lent/{JOB}/*"}],
    }
    assert asked == {
        "RoleArn": ROLE,
        "RoleSessionName": UNIT,
        "SourceIdentity": JOB,
        "DurationSeconds": 1200,
        "ExternalId": "ours",
        "Tags": [
            {"Key": "penstock:site", "Value": HERE},
            {"Key": "penstock:well", "Value": "aws"},
            {"Key": "penstock:job", "Value": JOB},
        ],
    }
    with pytest.raises(Misconfigured, match="ValidationError"):  # the account has none of AWS's own policies
        sts_well(account, policies=[arn + "x"]).create(order(job=""))
    asked = account.asked["AssumeRole"]
    assert asked["PolicyArns"] == [{"arn": arn + "x"}]
    assert "SourceIdentity" not in asked
    assert len(asked["Tags"]) == 2


@pytest.mark.parametrize(
    ("lasts", "seconds"), [(None, 3600), (7200, 3600), (3600, 3600), (3599, 3599), (900, 900), (899, 900), (-5, 900)]
)
def test_a_session_lasts_no_longer_than_its_lease_may(account: Account, lasts: int | None, seconds: int) -> None:
    sts_well(account).create(order(lasts=lasts))
    assert account.asked["AssumeRole"]["DurationSeconds"] == seconds


def test_what_a_denial_says(account: Account) -> None:
    """The whole text. It must hold on AWS too, where aws:userid is the role's id, a colon, and the session's name."""
    sts_well(account, duration="15m").destroy(UNIT, NOW)
    assert account.policies() == {
        f"penstock-{HERE}-{UNIT}": {
            "Version": "2012-10-17",
            "Statement": {
                "Sid": f"Since{int(NOW.timestamp())}Until{int(NOW.timestamp()) + 900 + 300}",
                "Effect": "Deny",
                "Action": "*",
                "Resource": "*",
                "Condition": {"StringLike": {"aws:userid": f"*:{UNIT}"}},
            },
        }
    }


def test_a_role_has_room_for_fifty_of_them() -> None:
    (text,) = {json.dumps(denials.Denial(each, NOW, NOW + HOUR).document, separators=(",", ":")) for each in (UNIT,)}
    assert len(text) == 196
    assert 10_240 // len(text) >= 50


def test_the_proof_says_what_was_looked_at_and_from_when_to_when_it_holds(account: Account) -> None:
    proof = sts_well(account).destroy(UNIT, NOW)
    assert isinstance(proof, CleanProof)
    assert (proof.by, proof.time) == ("sts", NOW)
    assert proof.checked == (
        f"role jobs denies everything to sessions named {UNIT} since 2026-01-01T00:00:00Z; "
        "the last session expires by 2026-01-01T01:05:00Z, and then the denial is removed"
    )
    again = sts_well(account).destroy(UNIT, NOW + HOUR)
    assert isinstance(again, CleanProof)
    assert again.checked == proof.checked
    assert account.calls.count("PutRolePolicy") == 1 + 1, "its own, and one denial"


def test_a_denial_that_iam_does_not_show_is_no_proof(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    account.client("iam")
    with monkeypatch.context() as patch:
        patch.setattr(denials.Denials, "find", lambda *_: None)
        said = sts_well(account).destroy(UNIT, NOW)
    assert isinstance(said, NotYet)
    assert "does not show the denial" in str(said.reason)
    assert isinstance(sts_well(account).destroy(UNIT, NOW), CleanProof)


def test_what_somebody_else_wrote_under_our_name_is_written_over_when_the_lease_ends(account: Account) -> None:
    name = f"penstock-{HERE}-{UNIT}"
    for document in (
        {"Statement": {"Sid": "Ours", "Effect": "Deny", "Action": "*", "Resource": "*"}},
        {"Statement": {"Sid": "Since1Until2", "Effect": "Allow", "Action": "*", "Resource": "*"}},
    ):
        text = json.dumps({"Version": "2012-10-17", **document})
        account.client("iam").put_role_policy(RoleName="jobs", PolicyName=name, PolicyDocument=text)
        assert list(sts_well(account, NOW + 9 * HOUR).list()) == []
        assert account.policies()[name] == json.loads(text), "and left alone until then"
        clean(sts_well(account))
        assert account.policies()[name]["Statement"]["Effect"] == "Deny"


def test_a_denial_goes_when_no_session_of_its_name_can_be_left(account: Account) -> None:
    """UNIT-1: and not before. The sweep asks for the list every few minutes."""
    clean(sts_well(account))
    end = NOW + HOUR + denials.SLACK
    assert list(sts_well(account, end - SECOND).list()) == []
    assert len(account.policies()) == 1
    assert list(sts_well(account, end).list()) == []
    assert account.policies() == {}
    assert list(sts_well(account, end).list()) == []


def test_only_what_is_ours_is_taken_away(account: Account) -> None:
    """UNIT-1: nothing of the role's own, nor of another deployment's."""
    clean(sts_well(account))
    clean(sts_well(account, site="Other.eu-west-1"), OTHER)
    list(sts_well(account, NOW + 9 * HOUR).list())
    assert set(account.policies()) == {f"penstock-Other.eu-west-1-{OTHER}"}
    assert "own" in account.client("iam").list_role_policies(RoleName="jobs")["PolicyNames"]


def test_denials_are_looked_for_on_every_page(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    """The emulator has all on one: here IAM gives one name at a time."""
    for unit in (UNIT, OTHER):
        clean(sts_well(account), unit)
    client = account.client("iam")
    names = client.list_role_policies(RoleName="jobs")["PolicyNames"]

    class Pages:
        def paginate(self, **given: str) -> Iterator[dict[str, list[str]]]:
            assert given == {"RoleName": "jobs"}
            yield from ({"PolicyNames": [name]} for name in names)

    monkeypatch.setattr(client, "get_paginator", {"list_role_policies": Pages()}.__getitem__)
    list(sts_well(account, NOW + 9 * HOUR).list())
    assert account.policies() == {}


def test_a_role_without_room_makes_the_slot_wait(account: Account) -> None:
    """What is over makes room at once; else the lease is not over until there is some. [UNIT-2]"""
    account.fail("PutRolePolicy", "LimitExceeded", times=2, status=409)
    waiting = sts_well(account).destroy(UNIT, NOW)
    assert isinstance(waiting, NotYet)
    assert waiting.after == sessions.NO_ROOM_SECONDS
    assert "no space for another denial" in str(waiting.reason)
    assert account.policies() == {}
    account.faults.clear()
    clean(sts_well(account), OTHER)
    account.fail("PutRolePolicy", "LimitExceeded", times=1, status=409)
    assert isinstance(sts_well(account).destroy(UNIT, NOW + 2 * HOUR), CleanProof)
    assert set(account.policies()) == {f"penstock-{HERE}-{UNIT}"}


def test_without_the_role_every_lease_is_over(account: Account) -> None:
    well, client = sts_well(account), account.client("iam")
    client.delete_role_policy(RoleName="jobs", PolicyName="own")
    client.delete_role(RoleName="jobs")
    assert "role jobs does not exist any more" in clean(well).checked
    assert list(well.list()) == []
    with pytest.raises(Misconfigured):
        well.create(order())


@pytest.mark.parametrize("missing", [SITE_VARIABLE, MAKER])
def test_a_well_that_could_not_tag_lends_nothing(missing: str) -> None:
    known = {SITE_VARIABLE: HERE, MAKER: "aws"}
    del known[missing]
    with pytest.raises(Misconfigured, match="tag"):
        StsWell(STS, known)


def test_the_registry_makes_it_and_jobs_choose_nothing() -> None:
    assert isinstance(Registry({SITE_VARIABLE: HERE}).well("sts", STS, "aws"), StsWell)
    assert "speed" in Registry({}).objections("well", "sts", {"speed": 1})[0]
    assert Registry({}).objections("well", "sts", {}) == []
    assert not Registry({}).reusable("well", "sts"), "its denials name a unit, and a unit is one lease"
