"""What every code and reason of ECS comes to. [SEC-1]"""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from penstock.drivers import MAKER, Registry
from penstock.drivers.factories.aws.errors import COMMON
from penstock.drivers.factories.aws.tags import SITE
from penstock.drivers.factories.fargate.alternatives import Reach
from penstock.drivers.factories.fargate.errors import CODES, TABLE, failure_of
from penstock.drivers.factories.fargate.factory import FargateFactory
from penstock.kernel.errors import (
    DriverError,
    Misconfigured,
    NoCapacity,
    QuotaReached,
    RateLimited,
    Unknown,
    Unsatisfiable,
)
from tests.fargate.fake import AT_ONCE, FULL, LIMIT, Ecs
from tests.fargate.helpers import HERE, KEY, OWN, SETTINGS, WORKER, Desk, clean, factory

CODES_OF: dict[tuple[type[DriverError], Reach | None], str] = {
    (RateLimited, None): "ThrottlingException RequestLimitExceeded TooManyRequestsException",
    (QuotaReached, Reach.ALL): "LimitExceededException",
    (Misconfigured, Reach.MARKET): "UnsupportedFeatureException",
    (Misconfigured, None): """
        AccessDeniedException BlockedException ClientException ClusterNotFoundException InvalidParameterException
        PlatformTaskDefinitionIncompatibilityException PlatformUnknownException ResourceNotFoundException""",
    (Unknown, None): "ConflictException ServerException InternalFailure",
}
EACH = [(code, kind, reach) for (kind, reach), codes in CODES_OF.items() for code in codes.split()]


@pytest.mark.parametrize(("code", "kind", "reach"), EACH)
def test_what_a_code_comes_to(code: str, kind: type[DriverError], reach: Reach | None) -> None:
    said: Any = {"Error": {"Code": code, "Message": "in words"}, "ResponseMetadata": {"HTTPStatusCode": 400}}
    failure = CODES.classify("RunTask", ClientError(said, "RunTask"))
    assert failure.meaning.is_known
    assert (type(failure.error()), failure.meaning.reach) == (kind, reach)


def test_every_code_that_is_ecs_own_is_tested() -> None:
    assert set(TABLE) - set(COMMON) <= {code for code, _, _ in EACH}


@pytest.mark.parametrize(
    ("code", "message", "kind", "reach"),
    [
        ("ClientException", FULL, NoCapacity, Reach.OFFER),
        ("ClientException", LIMIT, QuotaReached, Reach.MARKET),
        ("ClientException", "the quota of tasks in the PROVISIONING state is reached", QuotaReached, Reach.ALL),
        ("ClientException", "Rate exceeded", RateLimited, None),
        ("ClientException", "TaskDefinition is inactive", Unknown, None),
        ("ClientException", AT_ONCE, Unknown, None),
        ("ClientException", "No Fargate configuration exists for given values.", Misconfigured, None),
        ("InvalidParameterException", "The subnet ID 'subnet-1' does not exist", Misconfigured, Reach.SUBNET),
        ("InvalidParameterException", "The specified capacity provider is not associated", Misconfigured, Reach.MARKET),
        ("InvalidParameterException", "subnet-1 has not enough free addresses", NoCapacity, Reach.SUBNET),
        ("InvalidParameterException", "Security group sg-1 does not exist", Misconfigured, None),
    ],
)
def test_codes_that_say_nothing_without_their_message(
    code: str, message: str, kind: type[DriverError], reach: Reach | None
) -> None:
    found = CODES.meaning(code, message)
    assert (found.kind, found.reach, found.is_known) == (kind, reach, True)


@pytest.mark.parametrize(
    ("reason", "kind", "reach"),
    [
        (FULL, NoCapacity, Reach.OFFER),
        (LIMIT, QuotaReached, Reach.MARKET),
        ("You've reached the limit on the number of tasks you can run concurrently", QuotaReached, Reach.MARKET),
        ("The requested CPU configuration is above your limit", QuotaReached, Reach.ALL),
        ("RESOURCE:MEMORY", NoCapacity, Reach.OFFER),
        ("RESOURCE:ENI", NoCapacity, Reach.OFFER),
    ],
)
def test_reasons_of_a_failure_have_no_code(reason: str, kind: type[DriverError], reach: Reach | None) -> None:
    failure = failure_of("RunTask", {"reason": reason, "detail": "more"})
    assert (failure.meaning.kind, failure.meaning.reach, failure.meaning.is_shortage) == (kind, reach, True)
    assert str(failure).endswith(f"{reason}: more")


def test_a_reason_that_nobody_knows_is_not_taken_for_another() -> None:
    for told in ({}, {"reason": "The moon"}):
        assert not failure_of("RunTask", told).meaning.is_known


CALLS = ("ListTasks", "RunTask", "StopTask", "DescribeTasks", "DescribeTaskDefinition", "RegisterTaskDefinition")


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    "code", ["ThrottlingException", "AccessDeniedException", "ServerException", "NeverHeardOf", "ClientException"]
)
def test_every_error_is_of_the_closed_set(ecs: Ecs, desk: Desk, call: str, code: str) -> None:
    if call in ("StopTask", "DescribeTasks"):
        desk.create()
    ecs.fail(call, code, times=8)
    if (call, code) == ("DescribeTaskDefinition", "ClientException"):
        return  # that means that there is none
    with pytest.raises(DriverError) as found:
        live(desk)
    closed = (RateLimited, QuotaReached, NoCapacity, Unsatisfiable, Misconfigured, Unknown)
    assert type(found.value) in closed
    assert KEY not in str(found.value)


def test_parameters_that_botocore_refuses_are_the_sites_fault_and_show_no_key(ecs: Ecs) -> None:
    made = factory(ecs)
    settings: Any = made._settings
    object.__setattr__(settings, "cluster", 5)
    with pytest.raises(Misconfigured, match="cluster") as found:
        made.destroy(WORKER, HERE)  # type: ignore[arg-type]
    assert KEY not in str(found.value)


@pytest.mark.parametrize("missing", [SITE, MAKER])
def test_a_factory_that_could_not_tag_makes_nothing(missing: str) -> None:
    known = {SITE: HERE, MAKER: "tasks"}
    del known[missing]
    with pytest.raises(Misconfigured, match="tag"):
        FargateFactory(SETTINGS, known)


def test_the_registry_makes_it_and_asks_it_about_a_jobs_image() -> None:
    registry = Registry({SITE: HERE})
    made: Any = registry.factory("fargate", SETTINGS, "tasks")
    assert made._tags.factory == "tasks"
    assert registry.objections("factory", "fargate", {"image": OWN}, SETTINGS) == []
    (said,) = registry.objections("factory", "fargate", {"image": OWN}, {**SETTINGS, "images": []})
    assert "jobs may not name images" in said


def live(desk: Desk) -> None:
    """A worker's whole life."""
    desk.create()
    clean(desk)
