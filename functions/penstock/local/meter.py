"""What a bill would count: operations, DynamoDB units, function calls and flow transitions."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any


class Meter:
    """Counts since the last reset. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[str, Counter[str]] = {}
        self.reset()

    def reset(self) -> None:
        """Start from nothing."""
        with self._lock:
            self._counts = {}

    def add(self, kind: str, name: str, amount: float = 1) -> None:
        """Count some of one thing, for instance add("operations", "sqs:SendMessage")."""
        with self._lock:
            self._counts.setdefault(kind, Counter())[name] += amount  # type: ignore[assignment]

    def reading(self) -> dict[str, dict[str, Any]]:
        """Everything counted, by kind and name."""
        with self._lock:
            return {kind: dict(sorted(counts.items())) for kind, counts in sorted(self._counts.items())}
