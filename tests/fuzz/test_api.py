"""Every operation answers as the document says, whatever it is sent and whoever sends it. [SEC-2]"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.api.app import Operation
from tests.fuzz.drive import EVERY, drive
from tests.fuzz.stage import Stage

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("fuzz")]
SIZE = 4
"""How many right and how many wrong requests of each operation there are; `python -m tests.fuzz api` makes more."""


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with pytest.MonkeyPatch.context() as patch:
        made = Stage(patch)
        yield made
        made.close()


@pytest.mark.parametrize("operation", EVERY, ids=lambda operation: operation.name)
def test_an_operation_answers_as_the_document_says(stage: Stage, operation: Operation) -> None:
    drive(stage, operation, SIZE)
