"""What a job wrote into its log with its worker's token, so that others believe that the service said it. [SEC-2]"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.functions.service import Service, refused
from tests.functions.stage import Stage

MINUTES = timedelta(minutes=6)


@pytest.fixture
def stage(service: Service) -> Stage:
    return Stage(service)


def write(stage: Stage, stream: str, time: datetime, payload: str = "cancelled by root", first: int = 2) -> Any:
    line = {"time": time.isoformat(), "stream": stream, "payload": payload}
    return stage.agent(f"/v1/agent/jobs/{stage.job}/events", {"first": first, "events": [line]})


def read(stage: Stage) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = stage.service.ask("GET", f"/v1/jobs/{stage.job}/events").json["items"]
    return found


@pytest.mark.parametrize("stream", ["control", "console", "bg.\x1b]52;c;x\x07.stdout", "a\u202eb", "contr\u2066ol"])
def test_lines_of_the_services_own(stage: Stage, stream: str) -> None:
    before = read(stage)
    refused(write(stage, stream, stage.service.twin.world.now()), 400, "bad-stream")
    assert read(stage) == before


@pytest.mark.parametrize("stream", ["stdout", "stderr", "task", "worker", "health", "detail", "bg.db.stdout"])
def test_what_workers_write_is_written(stage: Stage, stream: str) -> None:
    assert write(stage, stream, stage.service.twin.world.now(), "hello").status == 200
    assert read(stage)[-1]["payload"] == "hello"


def test_lines_from_before_the_attempt_and_from_the_future(stage: Stage) -> None:
    now = stage.service.twin.world.now()
    for number, time in enumerate((now - timedelta(days=400), now + timedelta(days=400)), 2):
        assert write(stage, "stdout", time, "x", number).status == 200
        shown = datetime.fromisoformat(read(stage)[-1]["time"])
        assert now - MINUTES < shown < now + MINUTES
