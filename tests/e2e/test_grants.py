"""Every operation of the API is answered by the deployed functions, whose roles may do what the stack grants them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.local import cloud
from penstock.local.state import StateFolder
from tests.e2e.conftest import SITE, Local
from tests.e2e.operations import OPERATIONS, Everything

pytestmark = pytest.mark.xdist_group("grants")  # a cloud of its own


@pytest.fixture
def everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Everything]:
    """A cloud of its own, as the requests end users and change the site; with the front end for GitHub."""
    place = StateFolder(tmp_path / "state")
    running = cloud.up(report=print, config=SITE, tied=True, place=place, context={"github": "true"})
    try:
        local = Local(running, tmp_path, place.key(), place)
        for name, value in local.deployer().items():
            monkeypatch.setenv(name, value)
        yield Everything(local)
    finally:
        cloud.down(print, place)


def refused(local: Local) -> Iterator[str]:
    """What functions logged of what they may not do."""
    logs = local.aws("logs")
    for group in logs.describe_log_groups()["logGroups"]:
        for page in logs.get_paginator("filter_log_events").paginate(logGroupName=group["logGroupName"]):
            for each in page["events"]:
                if "AccessDenied" in each["message"]:
                    yield f"{group['logGroupName']}: {each['message'][-2000:]}"


def test_every_operation_is_granted_what_it_needs(everything: Everything) -> None:
    """Also what follows from it, in the functions behind the queues."""
    everything.take()
    assert not OPERATIONS.keys() - everything.asked
    everything.rest()
    assert not list(refused(everything.local))
