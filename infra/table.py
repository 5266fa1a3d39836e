"""The table with all rows, and its two indexes, which project keys only."""

from __future__ import annotations

from aws_cdk import RemovalPolicy
from aws_cdk import aws_dynamodb as dynamodb
from constructs import Construct

DUE = "due"
"""Unfinished rows by due time."""

LISTING = "listing"
"""Rows by listing, such as a user's jobs."""


class Rows(Construct):
    """One table, billed on demand, so that an idle site costs nothing."""

    def __init__(self, scope: Construct, name: str, *, keep: RemovalPolicy) -> None:
        super().__init__(scope, name)
        self.table = dynamodb.TableV2(
            self,
            "Table",
            partition_key=_text("pk"),
            sort_key=_text("sk"),
            billing=dynamodb.Billing.on_demand(),
            encryption=dynamodb.TableEncryptionV2.aws_managed_key(),
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            time_to_live_attribute="ttl",
            deletion_protection=keep is RemovalPolicy.RETAIN,
            removal_policy=keep,
            global_secondary_indexes=[_index(DUE, "due_shard", "due"), _index(LISTING, "list_key", "list_sort")],
        )


def _text(name: str) -> dynamodb.Attribute:
    return dynamodb.Attribute(name=name, type=dynamodb.AttributeType.STRING)


def _index(name: str, partition: str, sort: str) -> dynamodb.GlobalSecondaryIndexPropsV2:
    return dynamodb.GlobalSecondaryIndexPropsV2(
        index_name=name,
        partition_key=_text(partition),
        sort_key=_text(sort),
        projection_type=dynamodb.ProjectionType.KEYS_ONLY,
    )
