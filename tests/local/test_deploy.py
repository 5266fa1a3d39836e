"""Deploying an assembly: create, update, nothing to do, and why it failed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from penstock.local.deploy import Cloud, DeployError
from penstock.local.stack import Assembly, zipped
from tests.local.conftest import Host, quiet


@pytest.fixture
def cloud(host: Host, monkeypatch: pytest.MonkeyPatch) -> Cloud:
    """The host's account, as its deployer sees it."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", host.place.key())
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "local")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    return Cloud(host.url)


def assembled(folder: Path, stack: str, resources: dict[str, Any]) -> Assembly:
    """What `cdk synth` would write for a stack of these resources with one asset."""
    (folder / "asset").mkdir(exist_ok=True)
    (folder / "asset" / "file.txt").write_text("content")
    template = {
        "Parameters": {"PublicUrl": {"Type": "String"}},
        "Resources": resources,
        "Outputs": {"Url": {"Value": {"Ref": "PublicUrl"}}},
    }
    (folder / "template.json").write_text(json.dumps(template))
    place = {"bucketName": "assets-${AWS::AccountId}-${AWS::Region}"}
    files = {
        "a": {"source": {"path": "asset", "packaging": "zip"}, "destinations": {"x": {**place, "objectKey": "a.zip"}}},
        "t": {
            "source": {"path": "template.json", "packaging": "file"},
            "destinations": {"x": {**place, "objectKey": "t.json"}},
        },
    }
    (folder / f"{stack}.assets.json").write_text(json.dumps({"files": files}))
    artifact = {"type": "aws:cloudformation:stack", "properties": {"templateFile": "template.json"}}
    (folder / "manifest.json").write_text(json.dumps({"artifacts": {stack: artifact, "Tree": {"type": "cdk:tree"}}}))
    return Assembly.read(folder)


def test_a_stack_is_created_then_updated_then_left_alone(cloud: Cloud, tmp_path: Path) -> None:
    queue = {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "deployed"}}
    first = assembled(tmp_path, "Grows", {"One": queue})
    assert cloud.deploy(first, {"PublicUrl": "http://a"}, quiet) == {"Url": "http://a"}
    assert cloud.deploy(first, {"PublicUrl": "http://a"}, quiet) == {"Url": "http://a"}
    second = assembled(tmp_path, "Grows", {"One": queue, "Two": {"Type": "AWS::SNS::Topic"}})
    assert cloud.deploy(second, {"PublicUrl": "http://b"}, quiet) == {"Url": "http://b"}
    topics = [each["TopicArn"] for each in cloud.client("sns").list_topics()["Topics"]]
    assert len([each for each in topics if ":Grows-" in each]) == 1


def test_assets_are_where_the_template_expects_them(cloud: Cloud, tmp_path: Path) -> None:
    cloud.deploy(assembled(tmp_path, "Assets", {"Q": {"Type": "AWS::SQS::Queue"}}), {"PublicUrl": "u"}, quiet)
    stored = cloud.client("s3").get_object(Bucket="assets-000000000000-us-east-1", Key="a.zip")["Body"].read()
    assert stored == zipped(tmp_path / "asset")


def test_a_stack_that_fails_says_which_resource_and_why(cloud: Cloud, tmp_path: Path) -> None:
    broken = {"Type": "AWS::SQS::Queue", "Properties": {"VisibilityTimeout": 10_000_000}}
    with pytest.raises(DeployError, match=r"Broken \(AWS::SQS::Queue\)"):
        cloud.deploy(assembled(tmp_path, "Fails", {"Broken": broken}), {"PublicUrl": "u"}, quiet)


def test_an_assembly_has_one_stack(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps({"artifacts": {}}))
    with pytest.raises(ValueError, match="expected one stack"):
        Assembly.read(tmp_path)
