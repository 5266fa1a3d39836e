"""A port that is plugged in when it is first used, so that a function pays only for the clients it needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Lazy:
    """Stands for what `make` returns, and makes it once."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    def __getattr__(self, name: str) -> Any:
        made = self._make()
        self.__dict__.update({key: getattr(made, key) for key in dir(made) if not key.startswith("_")})
        return self.__dict__[name]
