"""What alarms and the dashboard look at: our own metrics, which cannot be misspelt, and those that AWS gives."""

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

from infra.dimensions import SERVICE, of_site
from penstock.domain.metrics import NAMESPACE, Level, Metric
from penstock.domain.site.site import Site


@dataclass(frozen=True)
class Watched:
    """The parts of the stack that are watched, and how much our own code tells."""

    service: str
    level: Level
    functions: Mapping[str, lambda_.IFunction]
    queues: Mapping[str, sqs.IQueue]
    dead: Mapping[str, sqs.IQueue]
    table: dynamodb.ITableV2
    machine: stepfunctions.IStateMachine
    api: apigatewayv2.IHttpApi

    def own(self, metric: Metric, statistic: str, minutes: int = 1, **by: str) -> cloudwatch.Metric:
        """A metric of ours for the site as a whole. Raises ValueError for dimensions that it is never told by.

        It has no label of its own: an alarm on a metric with one is written as arithmetic.
        """
        return cloudwatch.Metric(
            namespace=NAMESPACE,
            metric_name=metric.name,
            dimensions_map=of_site(metric, self.service, by),
            statistic=statistic,
            period=Duration.minutes(minutes),
        )

    def each(self, metric: Metric, statistic: str, minutes: int = 1, **only: str) -> list[cloudwatch.IMetric]:
        """A metric with each of its combinations, or of those with some values."""
        found = [by for by in metric.combinations(Site(), Level.SITE) if by.items() >= only.items()]
        return [self.own(metric, statistic, minutes, **by).with_(label=_label(by, only)) for by in found]

    def by_name(self, metric: Metric, statistic: str, minutes: int = 5) -> cloudwatch.MathExpression:
        """A metric for each pool, target, factory or well that there is, also of those that come later."""
        names = ",".join([SERVICE, *(each.name for each in metric.pools or ())])
        wanted = f'{{{NAMESPACE},{names}}} {SERVICE}="{self.service}" MetricName="{metric.name}"'
        return cloudwatch.MathExpression(
            expression=f"SEARCH('{wanted}', '{statistic}', {60 * minutes})",
            label="",
            using_metrics={},
            period=Duration.minutes(minutes),
        )

    def of_table(self, name: str) -> cloudwatch.Metric:
        """A metric of the table, its indexes left out."""
        return cloudwatch.Metric(
            namespace="AWS/DynamoDB",
            metric_name=name,
            dimensions_map={"TableName": self.table.table_name},
            statistic="Sum",
            period=Duration.minutes(5),
        )


def _label(by: Mapping[str, str], only: Mapping[str, str]) -> str:
    return " ".join(value for name, value in by.items() if name not in only)
