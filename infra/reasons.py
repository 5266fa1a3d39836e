"""Exceptions from the AwsSolutions rules of cdk-nag, and their reasons."""

from __future__ import annotations

from collections.abc import Mapping

from aws_cdk import Acknowledgment, Aws, Stack, Validations
from aws_cdk import aws_s3 as s3
from constructs import IConstruct

from infra.grants import EC2_GRANTS, alarms_arn, cloud_arns, ec2_arn

EVERYWHERE: Mapping[str, str] = {
    "AwsSolutions-L1": "Python 3.13 is what the tests run on; a new runtime is taken up by a change, not by a rule",
    "AwsSolutions-S1": "objects are reached by presigned URLs only, and the API logs each URL it gives out",
    "AwsSolutions-SMG4": "bootstrap keys are HMACs made with this secret: rotating it would lock out booting workers",
    "AwsSolutions-APIG4": "the functions check bearer tokens; agent.py and openapi.json are public on purpose",
    "AwsSolutions-SF1": "a standard flow's history is kept for 90 days and says all; logging it too doubles the price",
    "AwsSolutions-SF2": "five transitions per attempt, most of them waiting for days: a trace would say nothing",
}


def wildcards(bucket: s3.Bucket, flow: str) -> Mapping[str, str]:
    """Wildcards for objects and executions, which do not exist yet when the stack is deployed, and for alarms."""
    shape = bucket.node.default_child
    assert isinstance(shape, s3.CfnBucket)
    inside = f"<{Stack.of(bucket).get_logical_id(shape)}.Arn>"
    executions = f"arn:<AWS::Partition>:states:<AWS::Region>:<AWS::AccountId>:execution:{flow}:*"
    return {
        f"AwsSolutions-IAM5[Resource::{inside}/artifacts/*]": "one object per artifact, below one prefix of one bucket",
        f"AwsSolutions-IAM5[Resource::{inside}/bells/*]": "one object per lease of an idle worker, below one prefix",
        f"AwsSolutions-IAM5[Resource::{_shown(alarms_arn())}]": "names are asked for by prefix, which needs all alarms",
        f"AwsSolutions-IAM5[Resource::{executions}]": "one execution per attempt, of one state machine",
    }


def machines() -> Mapping[str, str]:
    """Wildcards for EC2: machines that do not exist yet, and images and networks that a site's settings name."""
    why = "what is made has no name before, and is bound by its tag; what it is made of, the site's settings name"
    permissions = [permission for each in EC2_GRANTS.values() for permission in each]
    names = dict.fromkeys(name for permission in permissions for name in permission.resources)
    wide = [ec2_arn(name).replace(Aws.PARTITION, "<AWS::Partition>") for name in names]
    named = [each.replace(Aws.ACCOUNT_ID, "<AWS::AccountId>") for each in wide]
    return {f"AwsSolutions-IAM5[Resource::{each}]": why for each in named}


def cloud_secrets() -> Mapping[str, str]:
    """Wildcards for credentials of other clouds, which a site's settings name."""
    why = "which secrets there are, the site's settings say; they are below one name, and nothing of ours is"
    return {f"AwsSolutions-IAM5[Resource::{_shown(each)}]": why for each in cloud_arns().values()}


def tasks(reasons: Mapping[str, str]) -> Mapping[str, str]:
    """Wildcards for tasks of ECS: ARNs, each with its reason."""
    return {f"AwsSolutions-IAM5[Resource::{_shown(arn)}]": why for arn, why in reasons.items()} | {
        "AwsSolutions-IAM5[Resource::*]": "ECS has no narrower permission to list tasks and to handle definitions"
    }


def lent_objects(arn: str) -> Mapping[str, str]:
    """A wildcard for the objects below this deployment's prefix in the lent bucket."""
    return {f"AwsSolutions-IAM5[Resource::{_shown(arn)}]": "one prefix per lease, below one that is this deployment's"}


def _shown(arn: str) -> str:
    """An ARN in the notation of the rules."""
    names = {Aws.PARTITION: "<AWS::Partition>", Aws.REGION: "<AWS::Region>", Aws.ACCOUNT_ID: "<AWS::AccountId>"}
    for token, shown in names.items():
        arn = arn.replace(token, shown)
    return arn


def acknowledge(scope: IConstruct, reasons: Mapping[str, str]) -> None:
    """Accept findings below a construct, each with its reason."""
    for rule, reason in reasons.items():
        Validations.of(scope).acknowledge(Acknowledgment(id=rule, reason=reason))
