"""What the console's pages are looked at with: real jobs on a real cloud, in every state."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime

import pytest

from penstock.aws.dynamodb import Table
from penstock.domain.units import quarantine
from penstock.domain.units.units import Unit, unit_key
from penstock.kernel.rows import Replace
from penstock.local.cloud import REGION
from tests.e2e.conftest import Local

JOB = '#: name = "{name}"\n#: variety = "basic"\n{more}{script}\n'
FILE = '#: output_rules = ["/work/report.txt"]\n'
BENCH = '#: resources = ["bench"]\n'


def text(name: str, script: str, more: str = "") -> str:
    """A job file, without its first line."""
    return JOB.format(name=name, script=script, more=more)


HANGS = 'while true; do echo "tick $(date +%T)"; sleep 1; done'


def running(local: Local, name: str, resource: str) -> tuple[str, str, str]:
    """A job that runs until it is cancelled, with a resource: the ids of the job, its worker and its resource."""
    job = local.submit(text(name, HANGS, f'#: resources = ["{resource}"]\n'))
    local.until(lambda: local.job(job)["state"] == "running")
    found = local.call("GET", "/v1/resources").json()["items"]
    return job, str(local.job(job)["worker"]), next(str(each["id"]) for each in found if each["job"] == job)


def put_apart(local: Local, unit: str, reason: str) -> None:
    """Put a unit that waits to be destroyed into quarantine, as a driver's refusals do in the course of hours."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in local.deployer().items():
            patch.setenv(name, value)
        table = Table(local.output("TableName"), REGION)
        was = table.get(unit_key(unit), Unit)
        assert was is not None
        apart = quarantine.enter(replace(was, hold=None), reason, datetime.now(UTC))
        assert table.commit([Replace(was, apart)])


@dataclass(frozen=True)
class Scene:
    """Ids of jobs, by what they are."""

    succeeded: str
    failed: str
    running: str
    waiting: str

    @staticmethod
    def of(local: Local) -> Scene:
        """Submit them, and wait until each is what it should be."""
        runs = local.submit(text("soak test", HANGS, '#: resources = ["bench", "licence"]\n'))
        for _ in range(2):
            local.submit(text("flash", HANGS, BENCH))
        made = 'printf "\\033[32mok\\033[0m\\n"; seq 1 300; echo fine > "$PENSTOCK_WORK/report.txt"'
        good = local.submit(text("build", made, FILE))
        bad = local.submit(text("unit tests", 'echo "assertion failed" >&2; exit 3'))
        local.until(lambda: local.job(runs)["state"] == "running")
        waits = local.submit(text("flash again", "true", BENCH))
        assert local.settled(good)["outcome"] == "succeeded"
        assert local.settled(bad)["outcome"] == "failed"
        local.until(lambda: local.job(waits)["waits_for"])
        return Scene(succeeded=good, failed=bad, running=runs, waiting=waits)
