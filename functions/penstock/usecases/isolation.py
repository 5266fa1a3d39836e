"""Steps of a sweep that are taken one by one, so that one that fails costs only itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from aws_lambda_powertools import Logger

log = Logger(child=True)


@dataclass
class Isolation:
    """Runs the steps of a sweep one by one. One that fails costs only itself: it is logged and counted."""

    failed: int = 0

    @contextmanager
    def step(self, what: str, **of: object) -> Iterator[None]:
        """One step: what it does, and what for."""
        try:
            yield
        except Exception:
            log.exception(f"{what} failed", extra=of)
            self.failed += 1
