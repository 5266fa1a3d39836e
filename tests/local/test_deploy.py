"""Deploying an assembly to the local cloud: the account is prepared, then it is created, updated, or left alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.deploy.account import Account
from penstock.deploy.assembly import Assembly, DeployError, zipped
from penstock.local.deploy import deploy
from tests.local.assemblies import assembled
from tests.local.conftest import quiet


def test_a_stack_is_created_then_updated_then_left_alone(account: Account, tmp_path: Path) -> None:
    queue = {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "deployed"}}
    first = assembled(tmp_path / "first", "Grows", {"One": queue})
    assert deploy(account, first, {"PublicUrl": "http://a"}, quiet) == {"Url": "http://a"}
    assert deploy(account, first, {"PublicUrl": "http://a"}, quiet) == {"Url": "http://a"}
    second = assembled(tmp_path / "second", "Grows", {"One": queue, "Two": {"Type": "AWS::SNS::Topic"}})
    assert deploy(account, second, {"PublicUrl": "http://b"}, quiet) == {"Url": "http://b"}
    topics = [each["TopicArn"] for each in account.client("sns").list_topics()["Topics"]]
    assert len([each for each in topics if ":Grows-" in each]) == 1


def test_the_buckets_of_assets_are_made(account: Account, tmp_path: Path) -> None:
    bare = assembled(tmp_path, "Bare", {"Q": {"Type": "AWS::SQS::Queue"}})
    for file in bare.files.values():
        file["destinations"]["x"]["bucketName"] = "new-${AWS::Region}"
    deploy(account, bare, {"PublicUrl": "u"}, quiet)
    stored = account.client("s3").get_object(Bucket="new-us-east-1", Key="a.zip")["Body"].read()
    assert stored == zipped(tmp_path / "asset")


def test_a_stack_that_fails_says_which_resource_and_why(account: Account, tmp_path: Path) -> None:
    broken = {"Type": "AWS::SQS::Queue", "Properties": {"VisibilityTimeout": 10_000_000}}
    with pytest.raises(DeployError, match=r"Broken \(AWS::SQS::Queue\)"):
        deploy(account, assembled(tmp_path, "Unmade", {"Broken": broken}), {"PublicUrl": "u"}, quiet)


def test_an_assembly_has_one_stack(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps({"artifacts": {}}))
    with pytest.raises(ValueError, match="expected one stack"):
        Assembly.read(tmp_path)
