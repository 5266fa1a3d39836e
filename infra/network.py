"""The network that wells work in, where their servers are in one.

`cdk deploy -c well_subnets=subnet-…,subnet-… -c well_security_groups=sg-…`.

Only who calls wells joins it: `well`, and `sweep`, which lists them. They then reach nothing but what the network lets
them reach, so it must have a way to the services that they use: docs/operators/wells/postgres.md says which.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aws_cdk import Aws, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_

from infra.functions import Functions

JOINED = ("well", "sweep")

ATTACH = (
    "ec2:AssignPrivateIpAddresses",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:UnassignPrivateIpAddresses",
)
"""What Lambda does in a function's name to join it to a network. Source: AWSLambdaVPCAccessExecutionRole."""

REASONS: Mapping[str, str] = {
    "AwsSolutions-IAM5[Resource::*]": "an interface has no name before Lambda makes it, and our code may not make any"
}


def join(functions: Functions, subnets: Sequence[str], groups: Sequence[str]) -> None:
    """Put who calls wells into these subnets."""
    for each in JOINED:
        functions.allow(each, _attach(f"{Stack.of(functions).stack_name}-{each}"))
        shape = functions.of[each].node.default_child
        assert isinstance(shape, lambda_.CfnFunction)
        shape.vpc_config = lambda_.CfnFunction.VpcConfigProperty(
            subnet_ids=list(subnets), security_group_ids=list(groups)
        )


def _attach(function: str) -> Sequence[iam.PolicyStatement]:
    """Leave for Lambda to join a function, which shares its role with Lambda: so our own code is denied it.

    The function is named, not referred to: it needs its role's policy before it is there itself.
    """
    arn = f"arn:{Aws.PARTITION}:lambda:{Aws.REGION}:{Aws.ACCOUNT_ID}:function:{function}"
    ours = {"ArnEquals": {"lambda:SourceFunctionArn": arn}}
    return [
        iam.PolicyStatement(actions=list(ATTACH), resources=["*"]),
        iam.PolicyStatement(effect=iam.Effect.DENY, actions=list(ATTACH), resources=["*"], conditions=ours),
    ]
