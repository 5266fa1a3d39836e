"""What a job's store may hold."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from penstock.domain.jobs.store import Value, is_name, sealed_as
from penstock.kernel.rows import Key

VALUE = Value(job="J", name="url", text="x", time=datetime(2026, 1, 1, tzinfo=UTC))


def test_a_value_stands_with_its_job_and_is_sealed_as_its_own() -> None:
    assert VALUE.key == Key("job#J", "value#url")
    assert VALUE.is_secret is False
    assert sealed_as("J", "a") != sealed_as("J", "b") != sealed_as("K", "b")


@pytest.mark.parametrize(
    ("text", "is_one"), [("url", True), ("A_b.c-9", True), ("", False), ("a/b", False), ("a\n", False), ("ä", False)]
)
def test_what_can_be_a_name(text: str, is_one: bool) -> None:
    assert is_name(text) is is_one
