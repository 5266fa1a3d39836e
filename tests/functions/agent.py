"""What agents ask of the service."""

from __future__ import annotations

from typing import Any

from tests.functions.service import WORKER_TOKEN, Answer
from tests.functions.stage import Stage


def call(stage: Stage, what: str, body: Any, job: str = "", token: str | None = WORKER_TOKEN) -> Answer:
    path = f"/v1/agent/jobs/{job or stage.job}/{what}"
    return stage.service.ask("POST", path, body, token=token, as_=None)
