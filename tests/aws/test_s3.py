"""The `s3` well: a prefix for one lease, that nobody else reaches, and of which nothing is left. [SEC-1] [UNIT-1]"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from penstock.domain.units.units import CleanProof
from penstock.drivers.wells.aws import prefixes
from penstock.drivers.wells.aws.denials import Denials
from penstock.kernel.errors import Misconfigured
from penstock.ports import NotYet
from tests.aws.account import BUCKET, Account, keys_of, said
from tests.aws.helpers import HERE, JOB, NOW, OTHER, UNIT, clean, order, s3_well, sts_well
from tests.aws.helpers import lent as lent_by

SECOND = timedelta(seconds=1)


def s3(account: Account, metadata: Mapping[str, Any]) -> Any:
    return account.client("s3", keys=keys_of(metadata))


def fill(account: Account, metadata: Mapping[str, Any], count: int = 3, *, uploads: int = 1) -> None:
    """What a job leaves behind: objects, some of them twice, one deleted, and uploads that were never finished."""
    client, prefix = s3(account, metadata), metadata["prefix"]
    for number in range(count):
        client.put_object(Bucket=BUCKET, Key=f"{prefix}{number}", Body=b"x")
    client.put_object(Bucket=BUCKET, Key=f"{prefix}0", Body=b"y")
    client.delete_object(Bucket=BUCKET, Key=f"{prefix}1")
    for number in range(uploads):
        client.create_multipart_upload(Bucket=BUCKET, Key=f"{prefix}big-{number}")


def test_a_job_has_its_own_prefix_and_sees_no_other(account: Account) -> None:
    mine, theirs = lent_by(s3_well(account)), lent_by(s3_well(account), OTHER)
    fill(account, theirs)
    client = s3(account, mine)
    assert said(client.put_object, Bucket=BUCKET, Key=mine["prefix"] + "a", Body=b"x") == "ok"
    assert said(client.get_object, Bucket=BUCKET, Key=mine["prefix"] + "a") == "ok"
    assert said(client.list_objects_v2, Bucket=BUCKET, Prefix=mine["prefix"]) == "ok"
    denied = [
        said(client.get_object, Bucket=BUCKET, Key=theirs["prefix"] + "0"),
        said(client.put_object, Bucket=BUCKET, Key=theirs["prefix"] + "0", Body=b"x"),
        said(client.delete_object, Bucket=BUCKET, Key=f"{HERE}/scratch/.leases/{UNIT}.json"),
        said(client.list_objects_v2, Bucket=BUCKET, Prefix=theirs["prefix"]),
        said(client.list_objects_v2, Bucket=BUCKET),
        said(client.put_object, Bucket=BUCKET, Key=mine["prefix"].rstrip("/") + "x", Body=b"x"),
    ]
    assert denied == ["AccessDenied"] * 6


def test_what_it_is_told(account: Account) -> None:
    made = lent_by(s3_well(account, prefix="jobs/scratch"), settings={"team": "tools"})
    prefix = f"jobs/scratch/{HERE}/scratch/{UNIT}/"
    assert (made["bucket"], made["prefix"], made["url"]) == (BUCKET, prefix, f"s3://{BUCKET}/{prefix}")
    assert made["team"] == "tools"
    assert {"access_key_id", "secret_access_key", "session_token", "expiration", "region"} <= set(made)


def test_what_its_session_may_do(account: Account) -> None:
    """The whole text, and that it is short enough."""
    found = s3_well(account)._policy(UNIT)
    where = f"{HERE}/scratch/{UNIT}/*"
    objects = "AbortMultipartUpload DeleteObject GetObject ListMultipartUploadParts PutObject"
    assert found["Statement"] == [
        {
            "Effect": "Allow",
            "Action": [f"s3:{each}" for each in objects.split()],
            "Resource": f"arn:aws:s3:::lent/{where}",
        },
        {
            "Effect": "Allow",
            "Action": "s3:ListBucket",
            "Resource": "arn:aws:s3:::lent",
            "Condition": {"StringLike": {"s3:prefix": where}},
        },
    ]
    assert len(json.dumps(found)) < 600


@pytest.mark.parametrize("versions", [False, True])
def test_nothing_is_left_of_a_prefix(account: Account, versions: bool) -> None:
    bucket = account.bucket("kept" if versions else "plain", versions=versions)
    well = s3_well(account, bucket=bucket)
    made = lent_by(well)
    client, prefix = s3(account, made), made["prefix"]
    for key in ("a", "a", "b", "c/d"):
        client.put_object(Bucket=bucket, Key=prefix + key, Body=b"x")
    client.delete_object(Bucket=bucket, Key=prefix + "b")
    client.create_multipart_upload(Bucket=bucket, Key=prefix + "big")
    proof = clean(well)
    assert account.left(bucket) == []
    removed = 5 if versions else 2
    assert proof.checked.startswith(
        f"removed {removed} versions and delete markers and 1 unfinished uploads below s3://"
    )
    assert "and then listed none; role jobs denies everything" in proof.checked


def test_other_leases_keep_what_they_have(account: Account) -> None:
    """UNIT-1: also one whose id begins alike, and what is in the bucket besides."""
    well = s3_well(account)
    mine, theirs = lent_by(well, "r-1"), lent_by(well, "r-10")
    fill(account, mine)
    fill(account, theirs)
    account.client("s3").put_object(Bucket=BUCKET, Key="readme", Body=b"x")
    before = [key for key in account.left() if "/r-10" in key or key == "readme"]
    clean(well, "r-1")
    assert account.left() == before
    assert list(well.list()) == ["r-10"]


def test_sessions_end_first_and_the_prefix_is_emptied_when_that_is_known(account: Account) -> None:
    """Or a leaked credential would write behind our back."""
    well = s3_well(account, settle=20)
    made = lent_by(well)
    fill(account, made)
    account.calls.clear()
    waiting = well.destroy(UNIT, NOW)
    assert isinstance(waiting, NotYet)
    assert waiting.after == 20
    assert not [call for call in account.calls if call.startswith(("Delete", "Abort"))]
    assert said(s3(account, made).put_object, Bucket=BUCKET, Key=made["prefix"] + "a", Body=b"x") == "AccessDenied"
    assert isinstance(well.destroy(UNIT, NOW + 19 * SECOND), NotYet)
    assert isinstance(well.destroy(UNIT, NOW + 20 * SECOND), CleanProof)
    assert account.left() == []


def test_a_role_without_room_leaves_the_prefix_as_it_is(account: Account) -> None:
    well = s3_well(account)
    fill(account, lent_by(well))
    before = account.left()
    account.fail("PutRolePolicy", "LimitExceeded", times=9, status=409)
    assert isinstance(well.destroy(UNIT, NOW), NotYet)
    assert account.left() == before


def test_much_takes_several_steps_and_is_counted_over_all(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call of a driver may take a minute: a step does what there is time for."""
    monkeypatch.setattr(prefixes, "PAGE", 2)
    monkeypatch.setattr(prefixes, "UPLOADS", 1)
    monkeypatch.setattr(prefixes, "PAGES_PER_STEP", 2)
    well = s3_well(account)
    made = lent_by(well)
    for number in range(7):
        s3(account, made).put_object(Bucket=BUCKET, Key=f"{made['prefix']}{number}", Body=b"x")
    for number in range(3):
        s3(account, made).create_multipart_upload(Bucket=BUCKET, Key=f"{made['prefix']}big-{number}")
    steps = []
    while isinstance(done := s3_well(account).destroy(UNIT, NOW), NotYet):
        steps.append(done.reason)
        assert list(well.list()) == [UNIT], "it is listed until nothing is left"
    assert steps == [
        "removed 4 versions and delete markers and 2 unfinished uploads, and there is more",
        "removed 7 versions and delete markers and 3 unfinished uploads, and there is more",
    ]
    assert done.checked.startswith("removed 7 versions and delete markers and 3 unfinished uploads")
    assert account.left() == []


def test_what_is_lent_is_listed_also_where_nothing_is_in_it_and_where_a_note_is_lost(account: Account) -> None:
    """UNIT-1: a write that was under way when the lease ended is found, and removed."""
    well = s3_well(account)
    lent_by(well)
    assert list(s3_well(account).list()) == [UNIT]
    account.client("s3").put_object(Bucket=BUCKET, Key=f"{HERE}/scratch/{OTHER}/late", Body=b"x")
    assert list(well.list()) == [UNIT, OTHER]
    clean(well, OTHER)
    assert list(well.list()) == [UNIT]


def test_another_deployment_and_another_well_have_lists_of_their_own(account: Account) -> None:
    """UNIT-1: in one bucket, nobody takes another's for a stray."""
    lent_by(s3_well(account))
    for other in (
        s3_well(account, site="Other.eu-west-1"),
        s3_well(account, name="more"),
        s3_well(account, prefix="x"),
    ):
        assert list(other.list()) == []
        clean(other)
    assert list(s3_well(account).list()) == [UNIT]


def test_lists_have_pages(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    units = [f"r-{number:04d}" for number in range(5)]
    for unit in units:
        s3_well(account)._write_record(unit, {})
    client = account.client("s3")
    made = client.get_paginator("list_objects_v2")
    whole = made.paginate
    monkeypatch.setattr(client, "get_paginator", lambda name: made)
    monkeypatch.setattr(made, "paginate", lambda **given: whole(**given, PaginationConfig={"PageSize": 2}))
    account.calls.clear()
    assert list(s3_well(account).list()) == units
    assert account.calls.count("ListObjectsV2") >= 4


def test_an_object_that_cannot_be_deleted_is_no_proof(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a call for many, each may fail alone: one is locked, for instance."""
    well = s3_well(account)
    fill(account, lent_by(well))
    failed = {"Errors": [{"Key": "k", "Code": "AccessDenied", "Message": "locked"}]}
    monkeypatch.setattr(account.client("s3"), "delete_objects", lambda **given: failed)
    with pytest.raises(Misconfigured, match="DeleteObjects: AccessDenied: k: locked"):
        well.destroy(UNIT, NOW)
    assert account.left()


def test_an_upload_that_ended_by_itself_meanwhile_is_fine(account: Account) -> None:
    well = s3_well(account)
    fill(account, lent_by(well), uploads=1)
    account.fail("AbortMultipartUpload", "NoSuchUpload", status=404)
    assert isinstance(clean(well), CleanProof)
    assert account.left() == []


def test_both_wells_end_their_leases_on_one_role(account: Account) -> None:
    first, second = sts_well(account), s3_well(account)
    lent_by(first, OTHER)
    lent_by(second)
    clean(first, OTHER)
    clean(second)
    assert Denials(account.client("iam"), "jobs", HERE).tidy(NOW + timedelta(hours=2)) == 2
    assert account.policies() == {}


def test_jobs_choose_nothing(account: Account) -> None:
    assert "size" in s3_well(account).objections({"size": 1})[0]
    assert s3_well(account).objections({}) == []
    assert order().job == JOB
