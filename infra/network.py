"""Connects the functions of wells to a VPC, if the servers of wells are in one.

`cdk deploy -c well_subnets=subnet-…,subnet-… -c well_security_groups=sg-…`.

Only `well`, and `sweep`, which lists wells, are connected. They can then reach only what the network allows, so it
needs routes to the services that they use: docs/operators/wells/postgres.md lists them.
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
"""The actions with which Lambda connects a function to a network. Source: AWSLambdaVPCAccessExecutionRole."""

REASONS: Mapping[str, str] = {
    "AwsSolutions-IAM5[Resource::*]": "an interface has no name before Lambda makes it, and our code may not make any"
}


def join(functions: Functions, subnets: Sequence[str], groups: Sequence[str]) -> None:
    """Connect the functions that call wells to these subnets."""
    for each in JOINED:
        functions.allow(each, _attach(f"{Stack.of(functions).stack_name}-{each}"))
        shape = functions.of[each].node.default_child
        assert isinstance(shape, lambda_.CfnFunction)
        shape.vpc_config = lambda_.CfnFunction.VpcConfigProperty(
            subnet_ids=list(subnets), security_group_ids=list(groups)
        )


def _attach(function: str) -> Sequence[iam.PolicyStatement]:
    """Permissions for Lambda to connect a function. Lambda uses the function's role; calls by the function are denied.

    The function is named by ARN, because its role's policy must exist before the function.
    """
    arn = f"arn:{Aws.PARTITION}:lambda:{Aws.REGION}:{Aws.ACCOUNT_ID}:function:{function}"
    from_function = {"ArnEquals": {"lambda:SourceFunctionArn": [arn, f"{arn}:*"]}}
    return [
        iam.PolicyStatement(actions=list(ATTACH), resources=["*"]),
        iam.PolicyStatement(effect=iam.Effect.DENY, actions=list(ATTACH), resources=["*"], conditions=from_function),
    ]
