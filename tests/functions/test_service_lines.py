"""The command line knows some of the service's lines by how they begin: those that a table or a summary repeats."""

from __future__ import annotations

from typing import Any

from penstock.cli.logview import SETTLED, USUAL
from tests.functions.service import Service
from tests.functions.stage import Stage


def told(service: Service, job: str) -> list[str]:
    """The lines of a job's log that every reader needs."""
    found: list[dict[str, Any]] = service.ask("GET", f"/v1/jobs/{job}/events").json["items"]
    return [str(event["payload"]) for event in found if event["stream"] == "control"]


def test_every_line_is_known_of_a_job_to_which_nothing_happens(service: Service) -> None:
    stage = Stage(service)
    assert service.ask("POST", f"/v1/jobs/{stage.job}/cancel").status == 200
    stage.end()
    running, waiting, given = (told(service, job) for job in (stage.job, stage.waiting, stage.given))
    assert [line.split()[0] for line in running] == ["running", "cancelled", "settled:"]
    assert USUAL.match(running[0])
    assert running[-1].startswith(SETTLED)
    assert USUAL.match(waiting[0]), waiting
    assert waiting[0].startswith("the job waits for ")
    assert USUAL.match(given[0]), given
    assert given[0].startswith("job ")
