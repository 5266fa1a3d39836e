"""The exception that reports a broken promise."""

from __future__ import annotations


class Broken(BaseException):
    """A promise was broken; no `except Exception` of the code under test sees it."""

    def __init__(self, label: str, says: str) -> None:
        super().__init__(f"[{label}] {says}")
        self.label = label
