"""Lines of output as agents send them, checked."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime

from penstock.domain import limits
from penstock.domain.commands import AgentLine
from penstock.domain.errors import Refused
from penstock.domain.logs import Line


def parse(given: Sequence[AgentLine]) -> list[Line]:
    """Lines as an agent sent them. Raises Refused 413 when they are too many, 400 for a time that is none."""
    size = sum(len(line.payload.encode()) for line in given)
    if len(given) > limits.EVENTS_PER_BATCH or size > limits.EVENT_BATCH_BYTES or _kept(given) > limits.ROW_BYTES:
        most = f"{limits.EVENTS_PER_BATCH} lines and {limits.EVENT_BATCH_BYTES} bytes (a control character counts six)"
        raise Refused(413, "batch-too-big", f"send at most {most}")
    return [Line(_time(line.time), line.stream, line.payload, line.task) for line in given]


def _kept(given: Sequence[AgentLine]) -> int:
    """The bytes that lines take in their row: JSON writes a control character as six."""
    return sum(len(json.dumps(asdict(line), ensure_ascii=False).encode()) for line in given)


def _time(text: str) -> datetime:
    """A time in UTC, whatever the machine's zone is. Raises Refused 400, also for a time before the first year's."""
    try:
        found = datetime.fromisoformat(text)
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise Refused(400, "bad-request", f"{text!r} is not a time as in RFC 3339") from None
