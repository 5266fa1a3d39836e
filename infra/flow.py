"""The flow of one attempt: a state machine written in functions/attempt.asl.json."""

from __future__ import annotations

from pathlib import Path

from aws_cdk import ArnFormat, RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from aws_cdk import aws_stepfunctions as stepfunctions
from constructs import Construct

from infra.grants import FLOW_GRANTS, statements

DEFINITION = Path(__file__).parents[1] / "functions" / "attempt.asl.json"


def name(scope: Construct) -> str:
    """The state machine's name, fixed here so that the functions' environment can have its ARN before it exists."""
    return f"{Stack.of(scope).stack_name}-attempt"


def arn(scope: Construct, kind: str = "stateMachine", below: str = "") -> str:
    """The state machine's ARN; with kind "execution" and below ":*", that of its executions."""
    return Stack.of(scope).format_arn(
        service="states",
        resource=kind,
        resource_name=name(scope) + below,
        arn_format=ArnFormat.COLON_RESOURCE_NAME,
    )


class Flow(Construct):
    """The state machine. Its type is Standard, because attempts may wait for days."""

    def __init__(self, scope: Construct, name_: str, *, queue: sqs.IQueue, settle: lambda_.IFunction) -> None:
        super().__init__(scope, name_)
        role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("states.amazonaws.com"))
        arns = {"schedule queue": queue.queue_arn, "settle function": settle.function_arn}
        for statement in statements(FLOW_GRANTS, arns):
            role.add_to_policy(statement)
        self.machine = stepfunctions.StateMachine(
            self,
            "Machine",
            state_machine_name=name(self),
            state_machine_type=stepfunctions.StateMachineType.STANDARD,
            definition_body=stepfunctions.DefinitionBody.from_string(DEFINITION.read_text()),
            definition_substitutions={
                "schedule_queue_url": queue.queue_url,
                "settle_arn": settle.function_arn,
            },
            role=role.without_policy_updates(),
            removal_policy=RemovalPolicy.DESTROY,
        )
