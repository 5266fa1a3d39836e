"""What is read from the store."""

from __future__ import annotations

from typing import Any

from penstock.kernel.rows import Key, Row
from penstock.testing.twin import Twin


def gets(twin: Twin, kind: type[Row]) -> list[Key]:
    """What rows of a kind are read one by one from here on."""
    get, found = twin.store.get, list[Key]()

    def noting(key: Key, of_kind: type[Any]) -> Any:
        found.extend([key] if of_kind is kind else [])
        return get(key, of_kind)

    twin.store.get = noting  # type: ignore[method-assign]
    return found
