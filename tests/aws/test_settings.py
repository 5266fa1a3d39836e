"""What a site may say of wells in AWS; all that is wrong is told when it is checked, and AWS is not asked."""

from __future__ import annotations

import json
from typing import Any

import pytest

from penstock.drivers import Registry
from penstock.drivers.wells.aws import policies
from penstock.drivers.wells.aws import settings as aws_settings
from penstock.kernel.errors import Misconfigured
from tests.aws.helpers import JOB, POLICY, S3, STS, UNIT

ALLOW = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*"}


def told(driver: str, **more: Any) -> str:
    given = {"sts": STS, "s3": S3}[driver] | more
    return "; ".join(
        Registry({}).complaints("well", driver, {key: value for key, value in given.items() if value is not None})
    )


@pytest.mark.parametrize(
    "policy",
    [
        POLICY,
        POLICY[0],
        {"Statement": POLICY},
        {"Version": "2012-10-17", "Id": "x", "Statement": POLICY[0]},
        json.dumps({"Statement": POLICY}),
        json.dumps(POLICY),
        [{**ALLOW, "Sid": "x", "Condition": {"StringLike": {"s3:prefix": ["${job}/*", "${aws:username}"]}}}],
        [{**ALLOW, "Condition": {"Bool": {"aws:SecureTransport": True}, "NumericLessThan": {"s3:max-keys": 5}}}],
        [{"Effect": "Deny", "NotAction": "s3:*", "NotResource": ["a", "b"]}],
        [{"Effect": "Deny", "Action": "*", "Resource": "*"}],
        [{"Effect": "Allow", "NotAction": ["sts:*", "iam:*"], "Resource": "*"}],
        [{"Effect": "Allow", "Action": ["sts:GetCallerIdentity", "s3:*"], "Resource": "${*}${?}${$}"}],
    ],
)
def test_policies_that_may_be(policy: Any) -> None:
    assert told("sts", policy=policy) == ("" if policy != POLICY[0] else told("sts", policy=policy))


@pytest.mark.parametrize(
    ("policy", "why"),
    [
        ("{", "`sts.policy` is not JSON: Expecting property name"),
        ('{"Statement": []}', "is empty"),
        ([], "is empty"),
        ("5", "wants a table, not a whole number"),
        (True, "wants a table, not true or false"),
        ({}, "has no `Statement`"),
        ({"Statements": POLICY}, "unknown key `Statements`: did you mean `Statement`?"),
        ({"Version": "2008-10-17", "Statement": POLICY}, "must have the version 2012-10-17"),
        (["x"], "wants a table, not a string"),
        ([{**ALLOW, "Effect": "allow"}], "`allow` is neither Allow nor Deny"),
        ([{"Action": "s3:*", "Resource": "*"}], "has no `Effect`"),
        ([{"Effect": "Allow", "Resource": "*"}], "needs either `Action` or `NotAction`"),
        ([{**ALLOW, "NotAction": "sts:*"}], "needs either `Action` or `NotAction`"),
        ([{"Effect": "Allow", "Action": "s3:*"}], "needs either `Resource` or `NotResource`"),
        ([{**ALLOW, "Principal": "*"}], "unknown key `Principal`"),
        ([{**ALLOW, "Resource": 5}], "wants a string"),
        ([{**ALLOW, "Resource": ["a", 5]}], "wants a string"),
        ([{**ALLOW, "Condition": "x"}], "wants a table of tables"),
        ([{**ALLOW, "Condition": {"StringLike": "x"}}], "wants a table of tables"),
        ([{**ALLOW, "Resource": "arn:aws:s3:::b/${jobs}/*"}], "there is no placeholder `${jobs}`"),
        ([{**ALLOW, "Condition": {"StringLike": {"s3:prefix": "${prefix}"}}}], "there is no placeholder `${prefix}`"),
        ([{**ALLOW, "Action": "*"}], "lets a session assume other roles"),
        ([{**ALLOW, "Action": ["s3:*", "STS:Assume*"]}], "lets a session assume other roles"),
        ([{**ALLOW, "Action": "sts:AssumeRole"}], "lets a session assume other roles"),
        ([{"Effect": "Allow", "NotAction": "iam:*", "Resource": "*"}], "lets a session assume other roles"),
        ([{**ALLOW, "Resource": "x" * 2000}], "characters after filling in; AWS allows 2048"),
        (None, "has neither `policy` nor `policies`"),
    ],
)
def test_policies_that_may_not(policy: Any, why: str) -> None:
    assert why in told("sts", policy=policy)
    with pytest.raises(Misconfigured):
        aws_settings.sts({key: value for key, value in {**STS, "policy": policy}.items() if value is not None})


def test_the_longest_that_may_be_is_counted_with_its_names_filled_in_and_with_its_managed_policies() -> None:
    arn = "arn:aws:iam::aws:policy/ReadOnlyAccess"
    room = policies.MOST - policies.size(policies.document([{**ALLOW, "Resource": "${unit}"}], place()), [arn])
    for more, is_fine in ((0, True), (1, False)):
        policy = [{**ALLOW, "Resource": "${unit}" + "x" * (room + more)}]
        assert (told("sts", policy=policy, policies=[arn]) == "") is is_fine


def place() -> Any:
    from penstock.toml.checks import Place

    return Place(("sts",))


def test_names_are_filled_in_and_awss_own_variables_stay() -> None:
    text = policies.document([{**ALLOW, "Resource": "${job}/${unit}/${site}/${aws:userid}/${*}"}], place())
    found = json.loads(policies.filled(text, {"job": JOB, "unit": UNIT, "site": "here"}))
    assert found == {
        "Version": "2012-10-17",
        "Statement": [{**ALLOW, "Resource": f"{JOB}/{UNIT}/here/${{aws:userid}}/${{*}}"}],
    }


@pytest.mark.parametrize("driver", ["sts", "s3"])
@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"role": None}, "has no `role`"),
        ({"region": None}, "has no `region`"),
        ({"role": "jobs"}, "is not the ARN of a role"),
        ({"role": "arn:aws:iam::123456789012:user/jobs"}, "is not the ARN of a role"),
        ({"region": "Ireland"}, "is not a region"),
        ({"duration": "14m"}, "must be from 15 minutes to 1 hour"),
        ({"duration": "61m"}, "must be from 1 second to 1 hour"),
        ({"duration": 5.5}, "duration"),
        ({"external_id": "a b"}, "is not an external id"),
        ({"unknown": 1}, "unknown key `unknown`"),
    ],
)
def test_settings_that_may_not_be(driver: str, more: dict[str, Any], why: str) -> None:
    assert why in told(driver, **more)


@pytest.mark.parametrize(
    ("driver", "more", "why"),
    [
        ("sts", {"policies": ["ReadOnlyAccess"]}, "is not the ARN of a policy"),
        ("sts", {"policies": ["arn:aws:iam::aws:policy/x"] * 11}, "at most 10"),
        ("s3", {"bucket": None}, "has no `bucket`"),
        ("s3", {"bucket": "s3://b"}, "is not a bucket"),
        ("s3", {"prefix": "/a/"}, "is not a prefix"),
        ("s3", {"settle": 601}, "must be from 0 to 600"),
        ("s3", {"policy": POLICY}, "unknown key `policy`"),
    ],
)
def test_settings_of_one_that_may_not_be(driver: str, more: dict[str, Any], why: str) -> None:
    assert why in told(driver, **more)


def test_settings_that_may_be() -> None:
    arns = ["arn:aws:iam::aws:policy/ReadOnlyAccess", "arn:aws-cn:iam::123456789012:policy/team/x"]
    found = aws_settings.sts({**STS, "policies": arns, "duration": "15m", "external_id": "a-1"})
    assert (found.duration, found.external_id, found.policies) == (900, "a-1", tuple(arns))
    assert (found.role_name, found.partition) == ("jobs", "aws")
    assert aws_settings.sts({**{key: STS[key] for key in ("role", "region")}, "policies": arns}).policy == ""
    assert aws_settings.sts({**STS, "role": "arn:aws-cn:iam::123456789012:role/a/b/jobs"}).role_name == "jobs"
    lending, space = aws_settings.s3({**S3, "prefix": "jobs/x", "settle": 5, "duration": "1h"})
    assert (space.bucket, space.prefix, space.settle, lending.duration) == ("lent", "jobs/x", 5, 3600)
    assert aws_settings.s3({key: value for key, value in S3.items() if key != "settle"})[1].settle == 30
