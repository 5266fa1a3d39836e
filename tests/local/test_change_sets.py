"""`penstock deploy` by change sets, on the emulator: made, shown, executed, dropped, refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.deploy import options
from penstock.deploy.account import Account
from penstock.deploy.assembly import Assembly, DeployError
from penstock.deploy.changes import Change, ChangeSet
from tests.local.assemblies import BUCKET, assembled

QUEUE = {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "one"}}
TOPIC = {"Type": "AWS::SNS::Topic"}


def proposed(account: Account, assembly: Assembly) -> ChangeSet:
    return ChangeSet(account, assembly, account.publish(assembly))


def status(account: Account, stack: str) -> str:
    """The state of a stack that is not deleted; none if there is no such stack."""
    pages = account.client("cloudformation").get_paginator("list_stacks").paginate()
    found = [each for page in pages for each in page["StackSummaries"] if each["StackName"] == stack]
    return next((each["StackStatus"] for each in found if each["StackStatus"] != "DELETE_COMPLETE"), "none")


def test_a_stack_is_made_then_changed_then_left_alone(account: Account, tmp_path: Path) -> None:
    first = proposed(account, assembled(tmp_path, "Changing", {"One": QUEUE}))
    assert (first.is_new, first.changes) == (True, [Change("Add", "AWS::SQS::Queue", "One")])
    assert first.execute() == {"Url": ""}
    (tmp_path / "b").mkdir()
    second = proposed(account, assembled(tmp_path / "b", "Changing", {"Two": TOPIC}))
    assert (second.is_new, {(each.action, each.name) for each in second.changes}) == (
        False,
        {("Remove", "One"), ("Add", "Two")},
    )
    second.execute()
    same = proposed(account, assembled(tmp_path / "b", "Changing", {"Two": TOPIC}))
    assert (same.changes, same.outputs()) == ([], {"Url": ""})
    same.drop()


def test_what_is_only_shown_leaves_nothing(account: Account, tmp_path: Path) -> None:
    shown = proposed(account, assembled(tmp_path, "Shown", {"One": QUEUE}))
    assert status(account, "Shown") == "REVIEW_IN_PROGRESS"
    shown.drop()
    assert status(account, "Shown") == "none"


def test_dropping_changes_leaves_the_stack(account: Account, tmp_path: Path) -> None:
    proposed(account, assembled(tmp_path, "Stays", {"One": TOPIC})).execute()
    proposed(account, assembled(tmp_path, "Stays", {"Two": TOPIC})).drop()
    assert status(account, "Stays") == "CREATE_COMPLETE"
    listed = account.client("cloudformation").list_change_sets(StackName="Stays")["Summaries"]
    assert [each for each in listed if each["ExecutionStatus"] == "AVAILABLE"] == []


def test_parameters_keep_their_values(account: Account, tmp_path: Path) -> None:
    first = assembled(tmp_path, "Keeps", {"One": TOPIC})
    formation = account.client("cloudformation")
    formation.create_stack(
        StackName="Keeps",
        TemplateURL=account.publish(first),
        Parameters=[{"ParameterKey": "PublicUrl", "ParameterValue": "https://penstock.example.com"}],
    )
    formation.get_waiter("stack_create_complete").wait(StackName="Keeps", WaiterConfig={"Delay": 1})
    after = proposed(account, assembled(tmp_path, "Keeps", {"One": TOPIC, "Two": TOPIC}))
    assert after.execute() == {"Url": "https://penstock.example.com"}


def test_a_failure_says_which_resource_and_why(account: Account, tmp_path: Path) -> None:
    broken = {"Type": "AWS::SQS::Queue", "Properties": {"VisibilityTimeout": 10_000_000}}
    with pytest.raises(DeployError, match=r"Fails could not be deployed.*Broken \(AWS::SQS::Queue\)"):
        proposed(account, assembled(tmp_path, "Fails", {"Broken": broken})).execute()
    with pytest.raises(DeployError, match="delete it with `aws cloudformation delete-stack --stack-name Fails`"):
        proposed(account, assembled(tmp_path, "Fails", {"One": TOPIC}))


def test_an_account_that_was_not_bootstrapped_is_told_how(account: Account, tmp_path: Path) -> None:
    assembly = assembled(tmp_path, "Bare", {"One": TOPIC})
    for file in assembly.files.values():
        file["destinations"]["x"]["bucketName"] = "nobodys"
    with pytest.raises(DeployError, match=r"`npx aws-cdk@.* bootstrap aws://000000000000/us-east-1` once"):
        account.publish(assembly)


def test_assets_are_uploaded_once_and_where_the_template_expects_them(account: Account, tmp_path: Path) -> None:
    assembly = assembled(tmp_path, "Assets", {"One": TOPIC})
    account.publish(assembly)
    s3 = account.client("s3")
    assert s3.get_object(Bucket=BUCKET, Key="a.zip")["Body"].read() == assembly.content(assembly.files["a"]["source"])
    s3.put_object(Bucket=BUCKET, Key="a.zip", Body=b"there already")
    account.publish(assembly)
    assert s3.get_object(Bucket=BUCKET, Key="a.zip")["Body"].read() == b"there already"
    s3.delete_object(Bucket=BUCKET, Key="a.zip")


def test_the_stack_remembers_its_options(account: Account, tmp_path: Path) -> None:
    assert options.remembered(account, "Remembers") is None
    proposed(account, assembled(tmp_path, "Remembers", {"One": TOPIC}, ec2="true", alarm_email="a@b.c")).execute()
    before = options.remembered(account, "Remembers")
    assert before == {"ec2": "true", "alarm_email": "a@b.c"}
    assert options.merged(before, {"ec2": "", "github": "true"}) == {"alarm_email": "a@b.c", "github": "true"}


def test_a_file_of_drivers_must_be_there_and_is_found_from_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DeployError, match=r"there is no file .*drivers\.txt"):
        options.merged({"drivers": "drivers.txt"}, {})
    (tmp_path / "drivers.txt").write_text("")
    assert options.merged({}, {"drivers": "drivers.txt"}) == {"drivers": str(tmp_path / "drivers.txt")}


def test_no_region_and_no_profile_are_told(account: Account, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    with pytest.raises(DeployError, match="give --region"):
        Account()
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    assert (Account().region, Account(region="us-east-1").region) == ("eu-west-1", "us-east-1")
    with pytest.raises(DeployError, match=r"nobody.*give --profile"):
        Account("nobody", "us-east-1")
