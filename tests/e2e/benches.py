"""A machine that exists already, with its agent."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from penstock.drivers.factories import process
from tests.e2e.conftest import Local


class Bench:
    """A host with its agent, as a person starts it."""

    def __init__(self, local: Local, name: str, folder: Path, target: str = "benches", *more: str) -> None:
        self.local, self.name, self.state, self.more = local, name, folder / name, more
        folder.mkdir(exist_ok=True)
        assert local.cli("user", "create", name).returncode == 0
        assert local.cli("user", "grant", name, f"host.{name}").returncode == 0
        self.token = folder / f"{name}.token"
        scope = f"host:target/{target}/{name}"
        self.token.write_text(local.json("token", "create", "--user", name, "--scope", scope)["token"])
        self.agent: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        words = ["agent", "--host", self.name, "--token-file", str(self.token), "--state", str(self.state), *self.more]
        with self.state.with_suffix(".log").open("ab") as log:
            self.agent = subprocess.Popen(
                [sys.executable, "-m", "penstock.cli", *words],
                env=self.local.environment(),
                stderr=log,
                start_new_session=True,
            )

    def log(self) -> str:
        return self.state.with_suffix(".log").read_text()

    def standing(self) -> dict[str, Any]:
        return dict(json.loads((self.state / "standing.json").read_text()))

    def lose_power(self) -> None:
        """Everything on the machine ends at once."""
        assert self.agent
        self.agent.kill()
        self.agent.wait(25)
        if not (self.state / "standing.json").exists():  # it had no worker yet
            return
        standing = self.standing()
        if standing["pid"]:  # of its worker, which may have ended
            process.kill({standing["pid"]}, signal.SIGKILL)
        if standing["worker"]:
            process.kill(process.tagged("PENSTOCK_WORKER_ID", standing["worker"]), signal.SIGKILL)

    def stop(self) -> int | None:
        if self.agent is None:
            return None
        self.agent.terminate()
        return self.agent.wait(25)
