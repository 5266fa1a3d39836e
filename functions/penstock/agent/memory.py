"""Whether the kernel killed processes for want of memory: what it counts of that, before a task and after it.

The count of the agent's own control group is about the job alone, for the job runs in it; the kernel's own is about the
whole machine, and proves something only of a task that was killed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

GROUPS = Path("/sys/fs/cgroup")
UNLIMITED = 1 << 60  # what the first version of control groups calls no limit is a little less than 2^63
COUNT = "oom_kill"


@dataclass(frozen=True)
class Record:
    """Where kills are counted, and where the limit is said; `is_ours` when nobody else's are counted there."""

    source: str
    path: Path
    limit: Path | None = None

    @property
    def is_ours(self) -> bool:
        return self.limit is not None


@dataclass(frozen=True)
class Kills:
    """Processes that were killed for want of memory."""

    count: int
    source: str
    limit: int | None


def counts() -> dict[Record, int]:
    """Return what is counted so far, by record; of those that this machine has."""
    found = {}
    for record in _records():
        with contextlib.suppress(OSError, ValueError):
            for line in record.path.read_text(encoding="ascii").splitlines():
                name, _, count = line.partition(" ")
                if name == COUNT:
                    found[record] = int(count)
    return found


def since(before: dict[Record, int], was_killed: bool) -> Kills | None:
    """Return what was killed since then, if it was of the job: the whole machine's count needs a killed task."""
    for record, count in counts().items():
        more = count - before.get(record, count)
        if more > 0 and (record.is_ours or was_killed):
            return Kills(more, record.source, _limit(record))
    return None


def _records() -> Iterator[Record]:
    """Yield where to look, what is most exact first."""
    for line in _groups():
        _, controllers, path = line.split(":", 2)
        if not controllers:
            folder = GROUPS / path.lstrip("/")
            yield Record("memory.events of its control group", folder / "memory.events", folder / "memory.max")
        elif "memory" in controllers.split(","):
            folder = GROUPS / "memory" / path.lstrip("/")
            limit = folder / "memory.limit_in_bytes"
            yield Record("memory.oom_control of its control group", folder / "memory.oom_control", limit)
    yield Record("oom_kill of the whole machine", Path("/proc/vmstat"))


def _groups() -> list[str]:
    with contextlib.suppress(OSError):
        return Path("/proc/self/cgroup").read_text(encoding="utf-8", errors="replace").splitlines()
    return []


def _limit(record: Record) -> int | None:
    """Return the limit in bytes, if there is one."""
    with contextlib.suppress(OSError, ValueError):
        if record.limit:
            limit = int(record.limit.read_text(encoding="ascii"))
            return limit if limit < UNLIMITED else None
    return None
