from __future__ import annotations

import pytest

from tests.fargate.fake import Ecs
from tests.fargate.helpers import Desk


@pytest.fixture
def ecs() -> Ecs:
    return Ecs()


@pytest.fixture
def desk(ecs: Ecs) -> Desk:
    return Desk(ecs)
