"""EventBridge's rules: the sweep each minute, and `settle` after flows that ended without their last step."""

from __future__ import annotations

from aws_cdk import Duration
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

UNSETTLED = ["FAILED", "TIMED_OUT", "ABORTED"]
"""Statuses of flows that may have ended before their Settle state."""


class Schedule(Construct):
    """Two rules."""

    def __init__(
        self, scope: Construct, name: str, *, sweep: lambda_.IFunction, settle: lambda_.IFunction, flow: str
    ) -> None:
        super().__init__(scope, name)
        events.Rule(
            self,
            "EachMinute",
            schedule=events.Schedule.rate(Duration.minutes(1)),
            targets=[targets.LambdaFunction(sweep)],
        )
        events.Rule(
            self,
            "FlowEnded",
            event_pattern=events.EventPattern(
                source=["aws.states"],
                detail_type=["Step Functions Execution Status Change"],
                detail={"status": UNSETTLED, "stateMachineArn": [flow]},
            ),
            targets=[targets.LambdaFunction(settle)],
        )
