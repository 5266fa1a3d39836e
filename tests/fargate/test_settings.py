"""What a site may say of a fargate factory, and what it is told about the rest."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.drivers.factories.aws.settings import Subnet
from penstock.drivers.factories.fargate import settings
from penstock.kernel.errors import Misconfigured
from tests.fargate.helpers import FULL, SETTINGS

LEAST = {key: value for key, value in SETTINGS.items() if key != "images"}


def test_the_least_and_the_most_that_can_be_said() -> None:
    assert settings.complaints(LEAST) == []
    assert settings.complaints(FULL) == []
    found = settings.read(FULL)
    assert found.subnets == (Subnet("subnet-1"), Subnet("subnet-2", "us-gov-east-1b"))
    assert set(FULL) == set(settings.Settings.__dataclass_fields__), "every setting is in this test"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"region": None}, "`fargate` has no `region`"),
        ({"cluster": None}, "`fargate` has no `cluster`"),
        ({"cluster": "my cluster"}, "`my cluster` is not a cluster: its name or its ARN"),
        ({"image": None}, "`fargate` has no `image`"),
        ({"image": "python:3.13"}, "does not name an image by its digest"),
        ({"images": ["python:3.13 "]}, "is not a name of images"),
        ({"subnets": []}, "`fargate.subnets` is empty: name at least one"),
        ({"subnets": ["vpc-1"]}, "`vpc-1` is not a subnet's id"),
        ({"subnets": [f"subnet-{n}" for n in range(30)], "market": "spot-first"}, "make 60 alternatives: at most 48"),
        ({"security_groups": [f"sg-{n}" for n in range(6)]}, "has 6 entries; it may have at most 5"),
        ({"cpu": "1"}, "wants a number of vCPUs"),
        ({"cpu": 3}, "Fargate has no 3 vCPUs: the nearest is 2; there are: 0.25, 0.5, 1, 2, 4, 8, 16"),
        ({"cpu": 0.25, "memory": 3000}, "has no 3000 MiB for 0.25 vCPUs: the nearest that it has is 2048"),
        ({"cpu": 8, "memory": 18 * 1024}, "the nearest that it has is 16384"),
        ({"cpu": 2}, "has no 2048 MiB for 2 vCPUs: the nearest that it has is 4096"),
        ({"memory": "2GB"}, "wants a whole number from 512 to 122880"),
        ({"storage": 20}, "must be from 21 to 200"),
        ({"arch": "amd64"}, "`amd64` is not allowed here: one of: x86_64, arm64"),
        ({"market": "cheap"}, "one of: on-demand, spot, spot-first"),
        ({"public_ip": "yes"}, "wants true or false"),
        ({"price": 0}, "must be more than 0"),
        ({"execution_role": "pull"}, "`pull` is not a role: its ARN"),
        ({"log_group": "/w"}, "`fargate.log_group` needs `execution_role`"),
        ({"tags": {"penstock:site": "x"}}, "`penstock:site` cannot be set"),
        ({"python": "python3; rm"}, "is not a program"),
        ({"imgae": "x"}, "unknown key `imgae`: did you mean `image`?"),
    ],
)
def test_what_is_wrong_is_told_with_what_to_do(change: dict[str, Any], said: str) -> None:
    given = {key: value for key, value in {**LEAST, **change}.items() if value is not None}
    found = settings.complaints(given)
    assert any(said in each for each in found), found
    with pytest.raises(Misconfigured):
        settings.read(given)


def test_a_size_that_fargate_has_is_no_complaint() -> None:
    sizes = [(cpu, memory) for cpu, memories in settings.SIZES.items() for memory in memories]
    assert len(sizes) == 3 + 4 + 7 + 13 + 23 + 12 + 12
    for cpu, memory in sizes:
        assert settings.complaints({**LEAST, "cpu": cpu, "memory": memory}) == []
