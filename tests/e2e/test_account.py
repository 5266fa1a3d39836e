"""What was left behind outside is told to operators: end to end. [UNIT-1]"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from penstock.kernel import rows
from tests.e2e.conftest import Local

pytestmark = pytest.mark.xdist_group("e2e")


def compared(local: Local) -> Any:
    """A new diff that the command waits for. The sweep begins it."""
    with local.sweeping():
        return local.json("account", "diff", "--now")


def test_a_worker_that_no_row_knows_is_a_line_until_it_is_gone(local: Local) -> None:
    left = f"w-{rows.ulid(datetime.now(UTC) - timedelta(hours=3), bytes(10))}"
    folder = Path(local.running.home) / "workers" / left
    folder.mkdir(parents=True)
    try:
        found = compared(local)
        assert found["unlisted"] == 0
        assert [(each["kind"], each["id"], each["owner"]) for each in found["leftovers"]] == [("worker", left, None)]
        assert (found["left"], round(found["leftovers"][0]["seconds_old"] / 3600)) == (1, 3)
        assert "there is no row of its unit" in local.cli("account", "diff", "--id", found["id"]).stdout
    finally:
        (folder / "gone").touch()
    again = compared(local)
    assert (again["left"], again["leftovers"]) == (0, [])
    assert [each["id"] for each in local.json("account", "diff", "--history")][:2] == [again["id"], found["id"]]
