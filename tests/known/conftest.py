from __future__ import annotations

import pytest

from penstock.domain.users.users import User
from tests.known.site import ADA, Known


@pytest.fixture
def twin() -> Known:
    return Known()


@pytest.fixture
def ada() -> User:
    return ADA
