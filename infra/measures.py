"""The metrics that alarms and the dashboard use: Penstock's own, whose names are checked, and those of AWS."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from aws_cdk import Duration
from aws_cdk import aws_apigatewayv2 as apigatewayv2
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from aws_cdk import aws_stepfunctions as stepfunctions

from infra.dimensions import SERVICE, site_dimensions
from penstock.domain.metrics import NAMESPACE, Level, Metric
from penstock.domain.site.site import Site


@dataclass(frozen=True)
class Monitored:
    """The monitored parts of the stack, and the level of Penstock's own metrics."""

    service: str
    level: Level
    functions: Mapping[str, lambda_.IFunction]
    queues: Mapping[str, sqs.IQueue]
    dead: Mapping[str, sqs.IQueue]
    table: dynamodb.ITableV2
    machine: stepfunctions.IStateMachine
    api: apigatewayv2.IHttpApi

    def own(self, metric: Metric, statistic: str, minutes: int = 1, **by: str) -> cloudwatch.Metric:
        """A metric of Penstock for the whole site. Raises ValueError for dimensions that it does not have.

        It has no label, because the CDK turns an alarm on a metric with a label into metric math.
        """
        return cloudwatch.Metric(
            namespace=NAMESPACE,
            metric_name=metric.name,
            dimensions_map=site_dimensions(metric, self.service, by),
            statistic=statistic,
            period=Duration.minutes(minutes),
        )

    def each(self, metric: Metric, statistic: str, minutes: int = 1, **only: str) -> list[cloudwatch.IMetric]:
        """A metric with each of its combinations, or of those with some values."""
        found = [by for by in metric.combinations(Site(), Level.SITE) if by.items() >= only.items()]
        return [self.own(metric, statistic, minutes, **by).with_(label=_label(by, only)) for by in found]

    def by_name(self, metric: Metric, statistic: str, minutes: int = 5) -> cloudwatch.MathExpression:
        """A metric for each pool, target, factory or well, also for those that are added later."""
        names = ",".join([SERVICE, *(each.name for each in metric.pools or ())])
        wanted = f'{{{NAMESPACE},{names}}} {SERVICE}="{self.service}" MetricName="{metric.name}"'
        return cloudwatch.MathExpression(
            expression=f"SEARCH('{wanted}', '{statistic}', {60 * minutes})",
            label="",
            using_metrics={},
            period=Duration.minutes(minutes),
        )

    def of_table(self, name: str) -> cloudwatch.Metric:
        """A metric of the table without its indexes."""
        return cloudwatch.Metric(
            namespace="AWS/DynamoDB",
            metric_name=name,
            dimensions_map={"TableName": self.table.table_name},
            statistic="Sum",
            period=Duration.minutes(5),
        )


def _label(by: Mapping[str, str], only: Mapping[str, str]) -> str:
    return " ".join(value for name, value in by.items() if name not in only)
