"""Whatever EC2 says, the core hears words that it knows. [SEC-1]"""

from __future__ import annotations

from typing import Any

import pytest

from penstock.drivers import MAKER, Registry
from penstock.drivers.factories.aws.tags import SITE
from penstock.drivers.factories.ec2.factory import Ec2Factory
from penstock.kernel.errors import (
    DriverError,
    Misconfigured,
    NoCapacity,
    QuotaReached,
    RateLimited,
    Unknown,
    Unsatisfiable,
)
from tests.ec2.fake import Ec2
from tests.ec2.helpers import HERE, KEY, SETTINGS, clean, factory, order

CLOSED_SET = (RateLimited, QuotaReached, NoCapacity, Unsatisfiable, Misconfigured, Unknown)


class TestErrors:
    """Whatever EC2 says, the core hears words that it knows."""

    @pytest.mark.parametrize("call", ["DescribeInstances", "RunInstances", "TerminateInstances", "DescribeVolumes"])
    @pytest.mark.parametrize(
        "code", ["RequestLimitExceeded", "UnauthorizedOperation", "InternalError", "NeverHeardOf", "Unsupported"]
    )
    def test_every_error_is_of_the_closed_set(self, ec2: Ec2, call: str, code: str) -> None:
        made = factory(ec2)
        if call != "RunInstances":
            made.create(order())
        ec2.fail(call, code, times=8)
        with pytest.raises(DriverError) as found:
            live(made)
        assert type(found.value) in CLOSED_SET

    def test_a_network_that_is_down_is_waited_for(self) -> None:
        made = Ec2Factory(SETTINGS, {SITE: HERE, MAKER: "aws"}, unreachable)
        with pytest.raises(Unknown, match="EndpointConnectionError"):
            made.create(order())

    def test_parameters_that_botocore_refuses_are_the_sites_fault(self, ec2: Ec2) -> None:
        made = factory(ec2)
        monkey: Any = made._settings
        object.__setattr__(monkey, "key_name", 5)
        with pytest.raises(Misconfigured, match="KeyName"):
            made.create(order())

    def test_what_is_in_no_table_is_counted(self, ec2: Ec2, capsys: pytest.CaptureFixture[str]) -> None:
        ec2.fail("RunInstances", "NeverHeardOf")
        with pytest.raises(Unknown):
            factory(ec2).create(order())
        said = capsys.readouterr().out
        assert '"UnknownDriverErrors":[1.0]' in said.replace(" ", "")
        assert "NeverHeardOf" in said

    def test_the_key_is_in_no_error(self, ec2: Ec2) -> None:
        """SEC-1: not even where botocore repeats what it was given."""
        made = factory(ec2)
        monkey: Any = made._settings
        object.__setattr__(monkey, "key_name", 5)
        with pytest.raises(Misconfigured) as found:
            made.create(order())
        assert KEY not in str(found.value)

    @pytest.mark.parametrize("missing", [SITE, MAKER])
    def test_a_factory_that_could_not_tag_makes_nothing(self, missing: str) -> None:
        known = {SITE: HERE, MAKER: "aws"}
        del known[missing]
        with pytest.raises(Misconfigured, match="tag"):
            Ec2Factory(SETTINGS, known)

    def test_the_registry_makes_it_with_its_name(self) -> None:
        made: Any = Registry({SITE: HERE}).factory("ec2", SETTINGS, "aws")
        assert made._tags.factory == "aws"
        with pytest.raises(Misconfigured, match="region"):
            Registry({SITE: HERE}).factory("ec2", {}, "aws")


def live(made: Ec2Factory) -> None:
    """A worker's whole life."""
    made.create(order())
    clean(made)


def unreachable(region: str) -> Any:
    import boto3
    from botocore.config import Config

    return boto3.client(
        "ec2",
        region,
        endpoint_url="http://127.0.0.1:9",
        aws_access_key_id="test",
        aws_secret_access_key="test",
        config=Config(retries={"total_max_attempts": 1}),
    )
