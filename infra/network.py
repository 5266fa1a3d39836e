"""Connects the functions of wells to a VPC, if the servers of wells are in one.

`cdk deploy -c well_subnets=subnet-…,subnet-… -c well_security_groups=sg-…`.

Only `well`, and `sweep`, which lists wells, are connected. They can then reach only what the network allows, so it
needs routes to the services that they use: docs/operators/wells/postgres.md lists them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from aws_cdk import Aws, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_

from infra.functions import Functions

ATTACH = (
    "ec2:AssignPrivateIpAddresses",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:UnassignPrivateIpAddresses",
)
"""The actions with which Lambda connects a function to a network. Source: AWSLambdaVPCAccessExecutionRole."""

JOINED: Mapping[str, tuple[str, ...]] = {"well": (), "sweep": ("ec2:DescribeNetworkInterfaces",)}
"""The functions that are connected, and which of these actions their own code needs: the account diff, a part of the
sweep, lists the interfaces that the `ec2` factory made, and what is denied no grant allows.
"""

REASONS: Mapping[str, str] = {
    "AwsSolutions-IAM5[Resource::*]": "an interface has no name before Lambda makes it, and our code may not make any"
}


def join(functions: Functions, subnets: Sequence[str], groups: Sequence[str]) -> None:
    """Connect the functions that call wells to these subnets."""
    for each, needed in JOINED.items():
        functions.allow(each, _attach(f"{Stack.of(functions).stack_name}-{each}", needed))
        shape = functions.of[each].node.default_child
        assert isinstance(shape, lambda_.CfnFunction)
        shape.vpc_config = lambda_.CfnFunction.VpcConfigProperty(
            subnet_ids=list(subnets), security_group_ids=list(groups)
        )


def _attach(function: str, needed: Collection[str]) -> Sequence[iam.PolicyStatement]:
    """Permissions for Lambda to connect a function. Lambda uses the function's role; calls by the function are denied,
    but for those that it needs itself.

    The function is named by ARN, because its role's policy must exist before the function.
    """
    arn = f"arn:{Aws.PARTITION}:lambda:{Aws.REGION}:{Aws.ACCOUNT_ID}:function:{function}"
    from_function = {"ArnEquals": {"lambda:SourceFunctionArn": [arn, f"{arn}:*"]}}
    denied = [each for each in ATTACH if each not in needed]
    return [
        iam.PolicyStatement(actions=list(ATTACH), resources=["*"]),
        iam.PolicyStatement(effect=iam.Effect.DENY, actions=denied, resources=["*"], conditions=from_function),
    ]
