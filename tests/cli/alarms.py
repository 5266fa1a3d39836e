"""What the service of the tests says about alarms."""

from __future__ import annotations

from typing import Any

ALARM = {
    "name": "P-Strays", "section": "Strays", "of": None, "what": "A stray exists", "state": "ok",
    "since": "2026-01-01T10:00:00Z", "reason": "fine", "runbook": "docs/operators/operations.md#strays",
}  # fmt: skip
RAISED = {**ALARM, "name": "P-Unlisted-x", "section": "Unlisted", "of": "x", "state": "alarm"}
UNKNOWN = {**ALARM, "name": "P-Untidy", "section": "Untidy", "state": "insufficient_data"}
QUEUE = {"of": "factory", "messages": 2, "url": "https://sqs/1/factory-dead", "arn": "arn:aws:sqs:factory-dead"}


def answer() -> dict[str, Any]:
    """All of it. Tests change their copy."""
    return {
        "alarms": {"count": 1, "of": 3, "problem": None, "items": [RAISED, UNKNOWN, ALARM]},
        "dead_letters": {"count": 2, "problem": None, "runbook": "docs/operators/operations.md", "items": [QUEUE]},
    }
