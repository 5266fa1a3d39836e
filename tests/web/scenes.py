"""What the console's pages are looked at with: real jobs on a real cloud, in every state."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

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


BOARDS = """\
#: [matrix]
#: board = ["a", "b", "c", "d"]
#: mode = ["debug", "release"]
"""
SIGN = """\
#: [dependencies.built]
#: job = "build (c, debug)"
"""
REPORT = """\
#: [dependencies.signed]
#: job = "sign"
#: on = "always"
"""
FAMILY = {
    "build": text("build", '[ "$MATRIX_BOARD $MATRIX_MODE" != "c debug" ] || exit 4', BOARDS),
    "sign": text("sign", "true", SIGN),
    "report": text("report", "true", REPORT),
}
"""A matrix of eight jobs of which one fails, one that depends on it, and one that waits for that one."""

PAIR = {
    "flash": text("flash board", "true", BENCH),
    "check": text("check board", "true", '#: [dependencies.flash]\n#: job = "flash board"\n'),
}
"""A job that waits for a bench, and one that waits for it."""


def family(local: Local, files: dict[str, str]) -> str:
    """Submit some job files as one set, and return the set's id."""
    folder = local.folder / f"set-{len(list(local.folder.glob('set-*')))}"
    folder.mkdir()
    for name, content in files.items():
        (folder / f"{name}.sh").write_text(f"#!/bin/bash\n{content}", encoding="utf-8")
    done = local.cli("job", "run", str(folder), "--no-wait")
    assert done.returncode == 0, done.stderr
    newest = local.call("GET", "/v1/jobs?limit=1").json()["items"][0]
    return str(newest["tags"]["set"])


def members(local: Local, of: str) -> dict[str, dict[str, Any]]:
    """The jobs of a set by their names, as the API shows them."""
    return {each["name"]: each for each in local.call("GET", f"/v1/sets/{of}").json()["items"]}


def all_settled(local: Local, of: str) -> dict[str, dict[str, Any]]:
    """Wait until all jobs of a set have settled, and return them by their names."""
    local.until(lambda: all(each["state"] == "settled" for each in members(local, of).values()))
    return members(local, of)


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
