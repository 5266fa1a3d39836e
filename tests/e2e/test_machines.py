"""Machines by need, end to end: a job runs on the larger of two targets because it needs more, or on none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import SITE, Local

pytestmark = pytest.mark.xdist_group("jobs")

FAMILY = """
[prices]
currency = "USD"

[targets.small]
factory = "here"
limit = 1
price = 0.04
machine = { cpus = 2, memory = "4GiB" }

[targets.large]
factory = "here"
limit = 1
price = 0.16
machine = { cpus = 8, memory = "32GiB" }

[targets.any]
machines = ["small", "large"]
"""
NEEDS = '#: name = "needy"\n#: variety = "basic"\n#: target = "any"\n#: machine = { cpus = 4 }\necho hello\n'


@pytest.fixture(scope="module", autouse=True)
def family(local: Local, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    site = Path(tmp_path_factory.mktemp("machines")) / "site.toml"
    site.write_text(SITE.read_text() + FAMILY)
    with local.having(site):
        yield


def test_a_job_that_needs_more_runs_on_the_larger_and_pays_its_price(local: Local) -> None:
    """The job file and the command line say it, and the plan said it before."""
    planned = local.cli("job", "run", local.job_file(NEEDS), "--plan").stdout
    needy = local.submit(NEEDS)
    plain = local.submit("echo hello\n", "-t", "any")
    more = local.submit("echo hello\n", "-t", "any", "--machine", "cpus=3", "--machine", "memory=8GiB")
    ended = [local.settled(job) for job in (needy, plain, more)]
    assert [(each["outcome"], each["target_resolved"]) for each in ended] == [
        ("succeeded", "large"),
        ("succeeded", "small"),
        ("succeeded", "large"),
    ]
    assert ended[0]["chosen"] == "large is the cheapest of any that fits cpus = 4"
    assert ended[0]["chosen"] in planned
    assert ended[0]["chosen"] in local.cli("job", "show", needy).stdout
    assert any("(target large" in line["payload"] for line in local.log(needy))
    assert [each["type"] for each in local.json("job", "cost", needy)["charges"]] == ["large"]


def test_what_fits_nothing_is_refused_with_the_nearest(local: Local) -> None:
    done = local.cli("job", "run", local.job_file(NEEDS), "--machine", "cpus=9", "--no-wait")
    assert done.returncode != 0
    assert "no machine of any fits cpus = 9: the nearest is large: cpus = 9 is 1 more than its 8" in done.stderr
