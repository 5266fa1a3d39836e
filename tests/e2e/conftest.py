"""One local cloud for the end-to-end tests of a process: the synthesised stack, the real emulator, agent and CLI."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import httpx
import pytest

from penstock.drivers.factories import process
from penstock.local import cloud
from penstock.local.state import Running, StateFolder

WAIT_SECONDS = 300
"""How long a test waits for what must happen. Nothing is asserted about how long it took."""

SWEEP_SECONDS = 3
"""The time between two sweeps of a test that has them come."""

SITE = Path(__file__).parent / "site.toml"


@dataclass
class Local:
    """The cloud that is up, and the command line that dials it."""

    running: Running
    folder: Path
    key: str
    place: StateFolder

    def cli(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run `penstock` to its end."""
        command = [sys.executable, "-m", "penstock.cli", *words]
        return subprocess.run(
            command, env=self.environment() | self.deployer(), capture_output=True, text=True, timeout=WAIT_SECONDS
        )

    def json(self, *words: str) -> Any:
        """What a command prints with --json."""
        done = self.cli(*words, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def deployer(self) -> dict[str, str]:
        """The AWS settings of whoever deployed the stack."""
        return {
            "AWS_ENDPOINT_URL": self.running.url,
            "AWS_ACCESS_KEY_ID": self.key,
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": cloud.REGION,
        }

    def aws(self, service: str) -> Any:
        """A client of one service, as whoever deployed the stack."""
        session = boto3.Session(self.key, "test", region_name=cloud.REGION)
        client: Any = session.client  # the stubs know services by literal names only
        return client(service, endpoint_url=self.running.url)

    def output(self, name: str) -> str:
        """One of the stack's outputs."""
        (stack,) = self.aws("cloudformation").describe_stacks(StackName="Penstock")["Stacks"]
        return next(str(each["OutputValue"]) for each in stack["Outputs"] if each["OutputKey"] == name)

    def apply(self, site: Path) -> None:
        """Have another site from here on."""
        done = self.cli("config", "apply", str(site), "--yes")
        assert done.returncode == 0, done.stderr + done.stdout

    @contextmanager
    def having(self, site: Path) -> Iterator[None]:
        """Have another site meanwhile. The other tests have theirs again also if this one fails."""
        self.apply(site)
        try:
            yield
        finally:
            self.apply(SITE)

    def environment(self) -> dict[str, str]:
        """Nothing of this machine's own configuration."""
        path = str(Path(cloud.__file__).parents[2])
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "PYTHONPATH": path,
            "PENSTOCK_URL": self.running.url,
            "PENSTOCK_TOKEN": self.running.token,
        }

    def call(self, method: str, path: str, **more: Any) -> httpx.Response:
        """Plain HTTP, as curl would."""
        headers = {"authorization": f"Bearer {self.running.token}", **more.pop("headers", {})}
        return httpx.request(method, self.running.url + path, headers=headers, trust_env=False, timeout=30, **more)

    def job_file(self, text: str, name: str = "job.sh") -> str:
        """A job file on disk."""
        path = self.folder / name
        path.write_text(f"#!/bin/bash\n{text}")
        return str(path)

    def submit(self, text: str, *words: str) -> str:
        """Submit a script and return its job's id."""
        return str(self.json("job", "run", self.job_file(text), "--no-wait", *words)["id"])

    def job(self, job: str) -> dict[str, Any]:
        """A job as the API shows it."""
        return dict(self.call("GET", f"/v1/jobs/{job}").json())

    def log(self, job: str) -> list[dict[str, Any]]:
        """All lines of a job's log."""
        return list(self.call("GET", f"/v1/jobs/{job}/events?limit=1000").json()["items"])

    def until(self, happened: Callable[[], Any], more: Callable[[], Any] = lambda: "") -> Any:
        """Wait until something is so, and return it. Else the test fails, and says what is left, and `more`."""
        return cloud_wait(happened, lambda: (self.left(), more()))

    def settled(self, job: str) -> dict[str, Any]:
        """Wait until a job is settled."""
        return dict(self.until(lambda: (found := self.job(job))["state"] == "settled" and found))

    def given_back(self, *pools: str) -> None:
        """Wait until all of some pools is free, whatever goes on in others."""
        for name in pools:
            self.until(
                lambda path=f"/v1/pools/{name}": (found := self.call("GET", path).json())["free"] == found["limit"]
            )

    def put_back(self) -> None:
        """Wait until everything is free and nothing is left."""
        self.until(lambda: not self.left())

    def left(self) -> list[Any]:
        """What is not free: workers with the end of what their agents said, resources, and pools."""
        units = [one for kind in ("workers", "resources") for one in self.call("GET", f"/v1/{kind}").json()["items"]]
        pools = [one for one in self.call("GET", "/v1/pools").json()["items"] if not _is_free(one)]
        logs = [Path(self.running.home) / "workers" / one["id"] / "agent.log" for one in units]
        return [*units, *pools, *(log.read_text()[-2000:] for log in logs if log.exists())]

    def sweep(self) -> None:
        """Have the sweep come now, and not within a minute."""
        functions = self.aws("lambda").list_functions()["Functions"]
        name = next(each["FunctionName"] for each in functions if "sweep" in each["FunctionName"].lower())
        self.aws("lambda").invoke(FunctionName=name, Payload=b"{}")

    @contextmanager
    def sweeping(self) -> Iterator[None]:
        """Have the sweep come every few seconds meanwhile, for what only a sweep notices.

        That one comes each minute by itself is seen where nobody has it come: in test_wells.py, a lost agent.
        """
        enough = threading.Event()

        def again() -> None:
            while not enough.wait(SWEEP_SECONDS):
                self.sweep()

        with ThreadPoolExecutor(1) as beside:
            done = beside.submit(again)
            try:
                yield
            finally:
                enough.set()
        done.result()

    def agents(self) -> set[int]:
        """Processes of all workers."""
        workers = Path(self.running.home) / "workers"
        found: set[int] = set()
        for folder in workers.iterdir() if workers.is_dir() else ():
            found |= process.tagged("PENSTOCK_WORKER_ID", folder.name)
        return found


def _is_free(pool: dict[str, Any]) -> bool:
    return bool((pool["held"], pool["waiting"], pool["free"]) == (0, 0, pool["limit"]))


def assert_problem(answer: httpx.Response, status: int, code: str) -> None:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"].startswith("application/problem+json")
    assert answer.json()["code"] == code


def cloud_wait(happened: Callable[[], Any], left: Callable[[], Any] = lambda: "") -> Any:
    """Poll until something is true. Fails the test when it never becomes so, and says what is `left` then."""
    import time

    end = time.monotonic() + WAIT_SECONDS
    while (asked := time.monotonic()) < end:
        found = happened()
        if found:
            return found
        time.sleep(max(0.1, 2 * (time.monotonic() - asked)))  # else who asks slows down what is waited for
    pytest.fail(f"what was waited for did not happen: {left()}")


@pytest.fixture(scope="session")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Local]:
    folder = tmp_path_factory.mktemp("cloud")
    place = StateFolder(folder / "state")
    running = cloud.up(report=print, config=SITE, tied=True, place=place)
    try:
        yield Local(running, folder, place.key(), place)
    finally:
        cloud.down(print, place)
