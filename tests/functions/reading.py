"""Counts what a request reads of the table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from penstock.kernel.rows import Key
from tests.functions.service import StrictStore

WAYS = ("get", "find", "count", "rows_at", "entries", "listed")


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """How often rows are read meanwhile, by the way of reading; without those that say who calls."""
    reads: Counter[str] = Counter()
    with pytest.MonkeyPatch.context() as patch:
        for name in WAYS:
            patch.setattr(StrictStore, name, _counting(reads, name, getattr(StrictStore, name)))
        yield reads


def _counting(reads: Counter[str], name: str, was: Any) -> Any:
    def read(store: Any, first: Any, *words: Any, **more: Any) -> Any:
        keys = [first] if isinstance(first, Key) else first
        is_of_caller = not isinstance(keys, str) and all(key.pk.startswith(("token#", "user#")) for key in keys)
        reads.update([] if is_of_caller else [name])
        return was(store, first, *words, **more)

    return read
