"""The folder where the local cloud keeps its state, readable by its owner only."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import platformdirs

from penstock.drivers.factories import process


class LocalCloudError(Exception):
    """The local cloud cannot do that. The message says what, why, and what to do."""


@dataclass(frozen=True)
class Running:
    """A local cloud that is up.

    `token` is the first operator's; `pid` the guard's; `home` holds the process factory's workers; `console` is the
    console's address, "" if there is none.
    """

    url: str
    token: str
    pid: int
    home: str
    console: str = ""


class StateFolder:
    """The folder of one local cloud.

    guard      {"pid", "started"} of the guard      running    the Running, once it is up
    host.log   what the emulator says               lock       held while it is brought up or down
    key        the deployer's AWS access key id
    home/      workers of the process factory       tmp/       unzipped functions
    kept/      what is in it, while it is down      resumed    the pools to resume when it is restored
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.guard = root / "guard"
        self.running = root / "running"
        self.key_file = root / "key"
        self.log = root / "host.log"
        self.home = root / "home"
        self.tmp = root / "tmp"
        self.kept = root / "kept"
        self.resumed = root / "resumed"

    @staticmethod
    def default() -> StateFolder:
        """$PENSTOCK_STATE, or this user's state folder."""
        given = os.environ.get("PENSTOCK_STATE")
        return StateFolder(Path(given) if given else platformdirs.user_state_path("penstock") / "local")

    def make(self) -> None:
        """Make the folders."""
        for folder in (self.root, self.home, self.tmp):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def key(self) -> str:
        """The AWS access key id of whoever deploys to this cloud: kept, like a password, in a file of theirs."""
        if not self.key_file.exists():
            with os.fdopen(os.open(self.key_file, os.O_CREAT | os.O_WRONLY, 0o600), "w") as new:
                new.write(f"AKIA{secrets.token_hex(16).upper()}")
        return self.key_file.read_text()

    def record_guard(self, pid: int) -> None:
        """Note the guard, with its start time, so that a reused id is never mistaken for it."""
        self.guard.write_text(json.dumps({"pid": pid, "started": process.started(pid)}))

    def save(self, running: Running) -> None:
        """Note that it is up. The token in it is a secret: owner only."""
        with os.fdopen(os.open(self.running, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w") as file:
            json.dump(asdict(running), file)

    def load(self) -> Running | None:
        """What was saved, while the guard of then is alive."""
        if not process.recorded(self.guard):
            return None
        try:
            return Running(**json.loads(self.running.read_text()))
        except (OSError, ValueError, TypeError):
            return None

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Nobody else brings this cloud up or down meanwhile. Raises LocalCloudError if somebody is."""
        self.make()
        with (self.root / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise LocalCloudError(
                    f"another command is bringing the local cloud in {self.root} up or down; try again when it is done"
                ) from None
            yield
