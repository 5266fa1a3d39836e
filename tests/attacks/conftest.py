from __future__ import annotations

from tests.functions.conftest import service, twin

__all__ = ["service", "twin"]
