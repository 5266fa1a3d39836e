"""The alarms. docs/operators/operations.md has a section for each: what it means, and what to do.

Each alarm uses one metric, without metric math, which the local cloud does not support.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from aws_cdk import Aws, Duration, RemovalPolicy, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct

from infra.measures import Monitored
from infra.queues import TRIES
from penstock.domain import metrics
from penstock.domain.alarms import MEANING_ENDS
from penstock.domain.metrics import Level
from penstock.domain.units.units import UnitKind, UnitState

BELOW = cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD
AT_LEAST = cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD
ALARM_IF_MISSING = cloudwatch.TreatMissingData.BREACHING
OK_IF_MISSING = cloudwatch.TreatMissingData.NOT_BREACHING

QUEUE_SECONDS = 1800
"""Messages may be delayed by 15 minutes. One that is twice as old is not being processed."""

LATE_SECONDS, UNTIDY_SECONDS = 300, 3600
"""A sweep a minute comes to everything within two, if it is neither stopped nor throttled."""

HOLD_SECONDS = 24 * 3600
DIRTY_SECONDS = 3600
DIFF_SECONDS = 50 * 3600
"""One night's diff may fail: the next comes after 48 hours, and takes less than two more."""

WAIT_PERCENT = 50
BOOT_PERCENT = 50


@dataclass(frozen=True)
class Alarm:
    """One alarm. `section` is its section in docs/operators/operations.md, `of` the function, queue or kind."""

    section: str
    what: str
    metric: cloudwatch.IMetric
    threshold: float = 1
    times: int = 1
    of: str = ""
    missing: cloudwatch.TreatMissingData = OK_IF_MISSING
    compare: cloudwatch.ComparisonOperator = AT_LEAST

    @property
    def name(self) -> str:
        """Its name, without the deployment's."""
        return f"{self.section}-{self.of}" if self.of else self.section

    @property
    def description(self) -> str:
        """The text of its mail."""
        return f'{self.what}{MEANING_ENDS} docs/operators/operations.md, "{self.section}".'


def alarms(on: Monitored) -> Iterator[Alarm]:
    """All alarms. Without Penstock's own metrics, those that need them are left out."""
    yield from _of_aws(on)
    if on.level is Level.OFF:
        called = on.functions["sweep"].metric_invocations(period=Duration.minutes(5), statistic="Sum")
        yield Alarm(
            "SweepStopped", "The sweep has not run for 5 minutes", called, missing=ALARM_IF_MISSING, compare=BELOW
        )
    else:
        yield from _of_penstock(on)
        yield from _of_drivers(on)


def _of_aws(on: Monitored) -> Iterator[Alarm]:
    five, quarter = Duration.minutes(5), Duration.minutes(15)
    for name, function in on.functions.items():
        errors = function.metric_errors(period=quarter, statistic="Sum")
        yield Alarm("FunctionErrors", f"The function {name} failed or timed out 3 times", errors, 3, of=name)
        throttles = function.metric_throttles(period=five, statistic="Sum")
        yield Alarm("FunctionThrottles", f"Lambda throttles the function {name}", throttles, times=2, of=name)
    for name, queue in on.queues.items():
        dead = on.dead[name].metric_approximate_number_of_messages_visible(period=five, statistic="Maximum")
        yield Alarm("DeadLetters", f"The function {name} failed {TRIES} times on a message", dead, of=name)
        age = queue.metric_approximate_age_of_oldest_message(period=five, statistic="Maximum")
        yield Alarm("QueueAge", f"A message to {name} has waited for half an hour", age, QUEUE_SECONDS, of=name)
    errors = on.api.metric_server_error(period=five, statistic="Sum")
    yield Alarm("ApiErrors", "The API answered with 5xx 5 times", errors, 5)
    yield Alarm(
        "FlowsFailed", "The flow of an attempt failed", on.machine.metric_failed(period=quarter, statistic="Sum")
    )
    throttled = on.machine.metric_throttled(period=five, statistic="Sum")
    yield Alarm("FlowsThrottled", "Step Functions throttles flows", throttled, times=2)
    for of in ("Read", "Write"):
        yield Alarm(
            "TableThrottled",
            f"DynamoDB throttles {of.lower()}s of the table",
            on.of_table(f"{of}ThrottleEvents"),
            10,
            of=of,
        )


def _of_penstock(on: Monitored) -> Iterator[Alarm]:
    own = on.own
    swept = own(metrics.SWEEPS, "Sum", 5)
    yield Alarm("SweepStopped", "No sweep has finished for 5 minutes", swept, missing=ALARM_IF_MISSING, compare=BELOW)
    late = own(metrics.SWEEP_LATE, "Maximum", 5)
    yield Alarm("SweepLate", "The sweep came to an overdue row 5 minutes after its time", late, LATE_SECONDS)
    failed = own(metrics.FAILED_NUDGES, "Sum", 15)
    yield Alarm("FailedNudges", "The sweep failed 5 times to move an overdue row on", failed, 5)
    untidy = own(metrics.TIDY_LATE, "Maximum", 60)
    yield Alarm("Untidy", "The sweep deletes an hour late what nobody owns any more", untidy, UNTIDY_SECONDS)
    lost = own(metrics.BYTES_LOST, "Sum", 15)
    yield Alarm("BytesLost", "The object of an artifact that somebody owns is missing", lost)
    unlisted = own(metrics.STORE_UNLISTED, "Sum", 15)
    yield Alarm("StoreUnlisted", "The bucket cannot be listed", unlisted, 5)
    wait = own(metrics.OLDEST_WAIT_PERCENT, "Maximum", 5)
    yield Alarm("OldestWait", "A job has waited for more than half of the queue deadline", wait, WAIT_PERCENT)
    errored = own(metrics.JOBS_SETTLED, "Sum", 15, outcome="errored")
    yield Alarm("JobsErrored", "A job settled as errored: the service failed, not its script", errored)
    hold = own(metrics.OLDEST_HOLD, "Maximum", 15)
    yield Alarm("ForgottenHold", "A unit has been held for more than a day", hold, HOLD_SECONDS)
    dirty = own(metrics.OLDEST_DIRTY, "Maximum", 15)
    yield Alarm("NotPutBack", "A unit has waited for an hour to be destroyed", dirty, DIRTY_SECONDS)
    canary = own(metrics.CANARIES_FAILING, "Minimum", 5)
    yield Alarm("CanaryFailing", "A canary failed", canary)
    for kind in UnitKind:
        apart = own(metrics.UNITS, "Minimum", 15, kind=kind, state=UnitState.QUARANTINED)
        yield Alarm("Quarantined", f"A {kind} is quarantined: an operator must decide", apart, of=kind)


def _of_drivers(on: Monitored) -> Iterator[Alarm]:
    own = on.own
    unlisted = own(metrics.UNLISTED, "Minimum", 10)
    yield Alarm("Unlisted", "A factory or well has not been listed for 10 minutes", unlisted)
    strays = own(metrics.STRAYS, "Minimum", 15)
    yield Alarm("Strays", "Something with our tag has existed without a row for 15 minutes", strays)
    left = own(metrics.LEFTOVERS, "Minimum", 15)
    yield Alarm("Leftovers", "The account diff found something with our tag that belongs to no unit", left)
    age = own(metrics.DIFF_AGE, "Minimum", 15)
    yield Alarm("DiffAge", "No account diff has listed everything for two nights", age, DIFF_SECONDS)
    wrong = own(metrics.DRIVER_CALLS, "Sum", 15, result="Misconfigured")
    yield Alarm("Misconfigured", "A driver reports that its settings are wrong", wrong)
    unknown = own(metrics.DRIVER_CALLS, "Sum", 15, result="Unknown")
    yield Alarm("UnknownErrors", "A driver met an error that it does not know", unknown)
    boots = own(metrics.BOOT_FAILURES, "Average", 15)
    yield Alarm("BootFailures", "At least half of the new workers do not boot", boots, BOOT_PERCENT, times=2)


class Alarms(Construct):
    """The alarms, and the topic that they are published to. `email` is subscribed, if set."""

    def __init__(self, scope: Construct, name: str, *, on: Monitored, email: str) -> None:
        super().__init__(scope, name)
        self.topic = self._topic(email)
        notify = actions.SnsAction(self.topic)
        for alarm in alarms(on):
            made = self._alarm(alarm)
            made.add_alarm_action(notify)
            made.add_ok_action(notify)

    def _alarm(self, alarm: Alarm) -> cloudwatch.Alarm:
        return cloudwatch.Alarm(
            self,
            alarm.name,
            alarm_name=f"{Stack.of(self).stack_name}-{alarm.name}",
            alarm_description=alarm.description,
            metric=alarm.metric,
            threshold=alarm.threshold,
            evaluation_periods=alarm.times,
            comparison_operator=alarm.compare,
            treat_missing_data=alarm.missing,
        )

    def _topic(self, email: str) -> sns.Topic:
        """The topic, with its own key, because CloudWatch may not use the key that AWS manages for SNS."""
        key = kms.Key(self, "Key", enable_key_rotation=True, removal_policy=RemovalPolicy.DESTROY)
        topic = sns.Topic(self, "Topic", master_key=key, enforce_ssl=True)
        publisher = iam.ServicePrincipal("cloudwatch.amazonaws.com")
        same_account = {"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}}
        key.add_to_resource_policy(_permission(publisher, ["kms:Decrypt", "kms:GenerateDataKey*"], ["*"], same_account))
        topic.add_to_resource_policy(_permission(publisher, ["sns:Publish"], [topic.topic_arn], same_account))
        if email:
            topic.add_subscription(subscriptions.EmailSubscription(email))
        return topic


def _permission(
    who: iam.ServicePrincipal, what: list[str], on: list[str], conditions: dict[str, dict[str, str]]
) -> iam.PolicyStatement:
    return iam.PolicyStatement(principals=[who], actions=what, resources=on, conditions=conditions)
