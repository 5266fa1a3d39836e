"""The large size of `test_api`: many requests of each operation, and which operations were ever answered well."""

from __future__ import annotations

import traceback
from collections import Counter
from contextlib import closing
from functools import partial
from multiprocessing import get_context

import pytest

from tests.fuzz.drive import EVERY, drive
from tests.fuzz.stage import Stage

Met = Counter[tuple[str, int]]


def everything(requests: int, number: int, processes: int) -> int:
    """So many right and so many wrong requests of each operation. Returns of how many something was found."""
    with get_context("spawn").Pool(processes) as pool:
        parts = pool.map(partial(_some, requests=requests, number=number, of=processes), range(processes))
    met: Met = sum((each for each, _ in parts), Counter())
    found = [line for _, lines in parts for line in lines]
    well = {name for name, status in met if status < 400}
    never = sorted({operation.name for operation in EVERY} - well)
    print(f"api: {met.total()} requests of {len(EVERY)} operations, {len(well)} of them answered well")
    print(f"  never: {', '.join(never) or 'none'}")
    print("\n".join([*found, f"api: {len(found)} found"]), flush=True)
    return len(found)


def _some(part: int, *, requests: int, number: int, of: int) -> tuple[Met, list[str]]:
    """Every so manieth operation, on a site of this process's own."""
    found = []
    with pytest.MonkeyPatch.context() as patch, closing(Stage(patch)) as stage:
        for operation in EVERY[part::of]:
            try:
                drive(stage, operation, requests, number)
            except (Exception, BaseExceptionGroup):  # what is found is a group, of what need not be an Exception
                found.append(f"{operation.name}: {traceback.format_exc()[-3000:]}")
        return stage.met, found
