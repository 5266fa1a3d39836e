"""A task's container, as a process of this machine: what its definition and its overrides say is run, in a folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from penstock.drivers.factories.fargate import boot
from tests.fargate.fake import Ecs, Made

PAUSES = "attempt * PAUSE_SECONDS"
"""What the program waits between two tries to fetch the agent; here it does not."""

PATIENCE_SECONDS = 60
"""How long a container may take. Nothing is asserted about how long it took."""


def start(ecs: Ecs, task: Made, folder: Path) -> subprocess.Popen[bytes]:
    """Start the container. The folder stands for its root; the job's folders are below it as well."""
    definition = ecs.definitions[task.definition]["containerDefinitions"][0]
    _, option, program = definition["entryPoint"]
    (overrides,) = task.wanted["overrides"]["containerOverrides"]
    assert overrides["name"] == definition["name"]
    given = {each["name"]: each["value"] for each in overrides["environment"]}
    known: dict[str, Any] = json.loads(given[boot.GIVEN])
    known["config"]["root"] = str(folder / "root")
    assert PAUSES in program
    program = program.replace(PAUSES, f"{PAUSES} * 0").replace(boot.HOME, str(folder / "opt"))
    environment = {"PATH": os.environ["PATH"], boot.GIVEN: json.dumps(known)}
    with (folder / "console").open("wb") as console:
        return subprocess.Popen(
            [sys.executable, option, program], env=environment, stdout=console, stderr=console, start_new_session=True
        )


def finish(running: subprocess.Popen[bytes], meanwhile: Callable[[], object]) -> int:
    """Wait for its end, and do something meanwhile, again and again."""
    for _ in range(PATIENCE_SECONDS * 10):
        if running.poll() is not None:
            return running.returncode
        meanwhile()
    os.killpg(running.pid, 9)
    return running.wait()
