"""The options of a deployment as text, which the stack remembers and the CDK's context has."""

from __future__ import annotations

import pytest

from infra.settings import Settings
from penstock.domain.metrics import Level

ALL = Settings(
    ephemeral=True,
    ec2=True,
    ec2_role="arn:aws:iam::123456789012:role/workers",
    fargate=("arn:aws:ecs:eu-west-1:123456789012:cluster/jobs", "arn:aws:ecs:us-east-1:123456789012:cluster/jobs"),
    fargate_role="arn:aws:iam::123456789012:role/pull",
    fargate_logs="/penstock/workers",
    well_secrets=("penstock/a", "penstock/b"),
    metrics=Level.POOLS,
    agents_at_once=20,
    snapstart=("api",),
)


@pytest.mark.parametrize("settings", [Settings(), ALL, Settings(github=True, identity_keys=("1", "2"))])
def test_options_are_read_as_they_were_written(settings: Settings) -> None:
    assert Settings.of(settings.options) == settings


def test_only_what_is_not_as_by_default_is_remembered() -> None:
    assert Settings(name="Other").options == {}
    assert Settings(ec2=True, well_secrets=("penstock/a", "penstock/b")).options == {
        "ec2": "true",
        "well_secrets": "penstock/a,penstock/b",
    }


def test_a_name_that_no_option_has_is_refused_and_the_cdks_own_are_not() -> None:
    with pytest.raises(ValueError, match=r"there is no option 'ec'; did you mean 'ec2'\?"):
        Settings.of({"ec": "true"})
    assert Settings.of({"@aws-cdk/core:checkSecretUsage": True, "aws:cdk:path": 1, "cli-telemetry": 1}) == Settings()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"fargate": "jobs"}, "fargate must be ARNs of clusters of ECS, with commas between them, not 'jobs'"),
        ({"fargate_role": "arn:aws:iam::123456789012:role/pull"}, "need fargate"),
        ({"fargate_logs": "/penstock/workers"}, "need fargate"),
    ],
)
def test_tasks_run_in_clusters_that_are_named(given: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Settings.of(given)
