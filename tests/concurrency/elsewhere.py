"""A second opinion on single conditional writes: the same store on dynalite, written by others in another language.

It is no library of ours: npm fetches it into a folder of its own when it is asked for (`--second-opinion`). It has no
transactions, so only what one write promises is asked: of many that create one row one wins, and no update is lost.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx

from penstock.aws import dynamodb
from penstock.aws.dynamodb import Table
from penstock.domain.pools.pools import Pool
from penstock.kernel.rows import Create, Replace
from penstock.local.cloud import REGION
from tests.concurrency.cloud import TABLE, environment
from tests.concurrency.run import SPAWN, together

VERSION = "4.0.0"
PROCESSES = 8
ROUNDS = 100
WAIT_SECONDS = 60


class Unavailable(Exception):
    """It cannot be had here; says why."""


@contextmanager
def dynalite() -> Iterator[dict[str, str]]:
    """An empty table on dynalite; what a process must have in its environment to reach it. Raises Unavailable."""
    npm = shutil.which("npm")
    if npm is None:
        raise Unavailable("npm is not on PATH")
    with TemporaryDirectory(prefix="penstock-dynalite-") as folder:
        get = [npm, "install", "--no-audit", "--no-fund", "--prefix", folder, f"dynalite@{VERSION}"]
        got = subprocess.run(get, capture_output=True, text=True, check=False)
        if got.returncode:
            raise Unavailable(f"npm cannot install dynalite: {got.stderr.strip()[-200:]}")
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        command = [str(Path(folder) / "node_modules" / ".bin" / "dynalite"), "--port", str(port), "--host", "127.0.0.1"]
        server = subprocess.Popen([*command, "--createTableMs", "0"], stdout=subprocess.DEVNULL)
        try:
            env = _env(f"http://127.0.0.1:{port}")
            with environment(env):
                dynamodb.model.__wrapped__(TABLE, REGION).create_table(billing_mode="PAY_PER_REQUEST", wait=True)
            yield env
        finally:
            server.kill()
            server.wait()


def _env(url: str) -> dict[str, str]:
    until = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            httpx.get(url, trust_env=False)
            break
        except httpx.TransportError as error:
            if time.monotonic() > until:
                raise Unavailable("dynalite does not answer") from error
            time.sleep(0.05)
    return {"AWS_ENDPOINT_URL": url, "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}


def ask() -> list[str]:
    """Race for single rows on dynalite; what was broken, in words. Raises Unavailable."""
    with dynalite() as env:
        won = SPAWN.Value("i", 0)
        together([(_race, (env, won))] * PROCESSES)
        with environment(env):
            row = Table(TABLE, REGION).get(Pool(name="counted", limit=0).key, Pool)
    found = [] if won.value == ROUNDS else [f"[SLOT-1] {won.value} created {ROUNDS} rows"]
    if row is None or row.used != PROCESSES * ROUNDS:
        found.append(f"[SLOT-1] {PROCESSES * ROUNDS} updates left {row and row.used}")
    return found


def _race(env: Mapping[str, str], won: Any) -> None:
    """Create rows that all create, and count in one that all count in."""
    os.environ.update(env)
    store, counted = Table(TABLE, REGION), Pool(name="counted", limit=0)
    store.commit([Create(counted)])
    for number in range(ROUNDS):
        if store.commit([Create(Pool(name=f"{number}", limit=0))]):
            with won.get_lock():
                won.value += 1
        while was := store.get(counted.key, Pool):
            if store.commit([Replace(was, replace(was, used=was.used + 1))]):
                break
