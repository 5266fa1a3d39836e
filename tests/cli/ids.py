"""Jobs with real ids, for a service that lists them as Penstock does."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from penstock.kernel.rows import is_ulid, ulid

BORN = datetime(2026, 1, 1, tzinfo=UTC)


def id_at(seconds: float, chance: bytes = b"0123456789") -> str:
    """The id of a job that was submitted some seconds after the others."""
    return ulid(BORN + timedelta(seconds=seconds), chance)


def older(jobs: Sequence[dict[str, Any]], query: dict[str, list[str]]) -> list[dict[str, Any]]:
    """The jobs of a page that is an id: those with smaller ids, newest first. Takes the page out of the query."""
    if not all(is_ulid(job["id"]) for job in jobs):
        return list(jobs)
    page = query.pop("page", ["~"])[0]
    return sorted((job for job in jobs if job["id"] < page), key=lambda job: str(job["id"]), reverse=True)
