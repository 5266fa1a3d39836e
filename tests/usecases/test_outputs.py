"""Outputs: how many there may be."""

from __future__ import annotations

import pytest

from penstock.domain import limits
from penstock.domain.errors import Refused
from penstock.domain.users import User
from penstock.usecases import outputs
from penstock.wire.agent import AgentFile
from tests.twin.world import Twin
from tests.usecases.test_one_job import job_of, submit


def test_a_job_keeps_no_more_outputs_than_it_is_told(twin: Twin, ada: User) -> None:
    job = job_of(twin, submit(twin, ada))
    files = [AgentFile(f"/work/{number}", 1, "0" * 64) for number in range(limits.OUTPUTS_PER_CALL)]
    for _ in range(limits.OUTPUTS // limits.OUTPUTS_PER_CALL):
        outputs.begin(twin.on, job, files)
    with pytest.raises(Refused, match="at most 1000 outputs"):
        outputs.begin(twin.on, job, files[:1])
