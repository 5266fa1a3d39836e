"""What the synthesised stack lets its functions do is enough for both wells' whole lives, and nothing more. [SEC-2]

The statements of the template are put on roles of the emulator, whose policy check is on; the drivers run with these.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from ministack import app

from penstock.ports import NotYet
from tests.aws.account import Account, said
from tests.aws.helpers import NOW, OTHER, POLICY, UNIT, clean, lent, s3_well, sts_well
from tests.infra.stacks import BOUNDARY
from tests.infra.template import Template, listed, text

PLACES = {"<AWS::Partition>": "aws", "<AWS::Region>": "eu-west-1", "<AWS::AccountId>": "000000000000"}


@pytest.fixture(scope="module")
def lending(stacks_with_settings: Mapping[str, Path]) -> Template:
    return Template.of_assembly(stacks_with_settings["lent"])


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Account:
    monkeypatch.setattr(logging.root.manager, "disable", logging.CRITICAL)
    monkeypatch.setattr(app, "AUTH", True)
    made = Account()
    made.role()
    made.bucket()
    return made


def statements(stack: Template, name: str) -> list[dict[str, Any]]:
    """A function's leave as AWS would see it; but for the boundary's condition, which the emulator does not know."""
    found = json.loads(json.dumps(list(stack.statements(stack.functions()[name]["Role"]))))
    for each in found:
        each["Resource"] = [named(text(one)) for one in listed(each["Resource"])]
        for keys in each.get("Condition", {}).values():
            keys.update({key: [named(text(one)) for one in listed(value)] for key, value in keys.items()})
        if each.get("Condition") == {"StringEquals": {"iam:PermissionsBoundary": [BOUNDARY]}}:
            del each["Condition"]
    return found


def named(given: str) -> str:
    for name, value in PLACES.items():
        given = given.replace(name, value)
    return given


def keys(account: Account, stack: Template, name: str) -> dict[str, str]:
    """What a function acts with."""
    arn = account.role(name, {"Statement": statements(stack, name)})
    given = account.client("sts").assume_role(RoleArn=arn, RoleSessionName=name)["Credentials"]
    trust = account.client("iam").get_role(RoleName="jobs")["Role"]["AssumeRolePolicyDocument"]
    trust["Statement"][0]["Principal"]["AWS"] = [
        f"arn:aws:iam::000000000000:role/{name}",
        "arn:aws:iam::000000000000:root",
    ]
    account.client("iam").update_assume_role_policy(RoleName="jobs", PolicyDocument=json.dumps(trust))
    return {
        "aws_access_key_id": given["AccessKeyId"],
        "aws_secret_access_key": given["SecretAccessKey"],
        "aws_session_token": given["SessionToken"],
    }


def test_a_well_lives_its_life_with_its_own_leave(account: Account, lending: Template) -> None:
    well = keys(account, lending, "well")
    for made in (sts_well(account, keys=well), s3_well(account, keys=well)):
        lent(made, UNIT)
        list(made.list())
        assert not isinstance(clean(made, UNIT), NotYet)
        account.client("iam").delete_role_policy(RoleName="jobs", PolicyName=f"penstock-Penstock.eu-west-1-{UNIT}")


def test_the_sweep_ends_what_nobody_knows_and_lends_nothing(account: Account, lending: Template) -> None:
    sweep = keys(account, lending, "sweep")
    lent(s3_well(account), OTHER)
    assert list(s3_well(account, keys=sweep).list()) == [OTHER]
    clean(s3_well(account, keys=sweep), OTHER)
    list(sts_well(account, NOW + timedelta(hours=2), keys=sweep).list())
    assert account.policies() == {}
    asked = {"RoleArn": "arn:aws:iam::000000000000:role/jobs", "RoleSessionName": "sweep"}
    assert said(account.client("sts", keys=sweep).assume_role, **asked) == "AccessDenied"


def test_neither_reaches_another_role_nor_what_else_is_in_the_bucket(account: Account, lending: Template) -> None:
    account.role("other")
    account.client("s3").put_object(Bucket="lent", Key="readme", Body=b"x")
    policy = {
        "RoleName": "other",
        "PolicyName": "p",
        "PolicyDocument": json.dumps({"Version": "2012-10-17", "Statement": POLICY}),
    }
    for name in ("well", "sweep"):
        given = keys(account, lending, name)
        assert said(account.client("iam", keys=given).put_role_policy, **policy) == "AccessDenied"
        assert said(account.client("s3", keys=given).get_object, Bucket="lent", Key="readme") == "AccessDenied"
        assert said(account.client("s3", keys=given).delete_object, Bucket="lent", Key="readme") == "AccessDenied"
        assert said(account.client("s3", keys=given).list_objects_v2, Bucket="lent") == "AccessDenied"
