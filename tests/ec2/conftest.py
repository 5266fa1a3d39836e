from __future__ import annotations

import pytest

from tests.ec2.fake import Ec2


@pytest.fixture
def ec2() -> Ec2:
    return Ec2()
