"""Readers on a worker: what a job's scripts ask of the agent, and the archives of caches that it fetched."""

from __future__ import annotations

import atexit
import gzip
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from penstock.agent import archive as archives
from penstock.agent.archive import NotUnpacked, pack, unpack
from penstock.agent.client import Control, Refused
from penstock.agent.job import Background, Order, Posts
from penstock.agent.machine import Machine
from penstock.agent.masking import Mask
from penstock.agent.tasks import BmatRequests

PATHS = ["/work/deps", "/work/more"]
"""What the cache has."""

PATIENCE = 300
"""How often an archive is looked at while it is unpacked, before its job's time is over."""

OUTSIDE = {"keep": b"outside", "root/work/other": b"of the job", "root/work/deps/old": b"old"}
"""What is there before; the last is below a path of the cache, where an archive may replace it."""


class Over(Exception):
    """The job's time is over."""


def bmat(data: bytes) -> None:
    """A line that a script wrote to the agent's socket: it is always answered, in one JSON object."""
    requests, job = _requests()
    with mock.patch.object(subprocess, "Popen", _not_started):
        answer = json.loads(requests.answer(data))
    assert isinstance(answer, dict)
    for task in job.posts.due("succeeded", 1):
        assert all(isinstance(each, str) for each in (*task.env, *task.env.values())), "no process can have that"


def _not_started(command: list[str], *, cwd: str, env: Mapping[str, str], **_: Any) -> None:
    """What subprocess does before it forks, for what a fuzzer makes up is not to be run."""
    words = [os.fsencode(each) for each in (command[0], *command, cwd, *env, *env.values())]
    if any(b"\0" in each for each in words):
        raise ValueError("embedded null byte")
    raise FileNotFoundError(command[0])


class Told:
    """A service that has one value, no cache, and one token to give."""

    def call(self, job: str, what: str, body: dict[str, Any], tries: int = 0) -> dict[str, Any]:
        json.dumps(body).encode()
        answers: dict[str, dict[str, Any]] = {
            "store/get": {"there": True, "value": "hunter3!", "secret": True},
            "store/put": {},
            "identity": {"token": "a.b.c"},
            "caches/find": {"hit": False},
        }
        if what not in answers:
            raise Refused(422, "not here")
        return answers[what]


def _requests() -> tuple[BmatRequests, Any]:
    """The requests of a job whose task runs, in a root of its own."""
    reply = {
        "job": "job", "tasks": [], "output_rules": [], "timeout_seconds": 60, "heartbeat_seconds": 15,
        "limits": {"cache_bytes": 4096}, "factory": {"id": "f"},
        "resources": {"db": {"type": "db", "metadata": {"password": "tr0ub4dor"}}},
    }  # fmt: skip
    mask, job = Mask(), SimpleNamespace()
    job.order, job.mask, job.control, job.service = Order.read(reply), mask, Control(), Told()
    job.config, job.machine, job.posts = SimpleNamespace(worker="w-1"), Machine(str(_root() / "root")), Posts()
    job.background = Background(lambda *_: None, mask, SimpleNamespace(), 4096, job.machine)
    job.background.begin(0)
    return BmatRequests(job), job


def archive(data: bytes) -> None:
    """The tar in an archive. It stays within the paths of its cache, leaves no trace when it is refused, and what was
    unpacked is packed and unpacked again the same."""
    root = _root()
    _lay(root)
    packed = root / "archive.tar.gz"
    packed.write_bytes(gzip.compress(data, 1))
    before = dict(_tree(root))
    with mock.patch.object(archives, "CHUNK_BYTES", 4096):
        count = _unpack(root, packed)
    after = dict(_tree(root))
    if count is None:
        assert after == before, "it was refused, and something of it is there"
        return
    for name in before.keys() | after.keys():
        is_its = any(f"/{name}".startswith(f"/root{path}") for path in PATHS)
        assert is_its or before.get(name) == after.get(name), f"{name} is none of the cache's"
    _again(root, after)


def _unpack(root: Path, packed: Path) -> int | None:
    """How many entries there were; None when it was refused, or took too long."""
    left = iter(range(PATIENCE))

    def check() -> None:
        if next(left, None) is None:
            raise Over

    try:
        return unpack(Machine(str(root / "root")), PATHS, str(packed), check)
    except (NotUnpacked, Over):
        return None


def _again(root: Path, was: Mapping[str, Any]) -> None:
    """Pack what is there, take it away, unpack it: then the same is there."""
    machine, packed = Machine(str(root / "root")), root / "archive.tar.gz"
    with packed.open("wb") as stream:
        pack(machine, PATHS, stream, 1 << 30, lambda: None)
    for path in PATHS:
        _remove(root / f"root{path}")
    assert unpack(machine, PATHS, str(packed), lambda: None)
    here = dict(_tree(root))
    assert here.pop("archive.tar.gz", None)
    assert {**was, "archive.tar.gz": 0} == {**here, "archive.tar.gz": 0}


@cache
def _root() -> Path:
    """A folder for this process. Under the fuzzer, which ends without a word to Python, `hunt` takes it away."""
    found = Path(tempfile.mkdtemp(prefix="penstock-fuzz-"))
    atexit.register(shutil.rmtree, found, ignore_errors=True)
    return found


def _lay(root: Path) -> None:
    """Make all as it is before."""
    for each in root.iterdir():
        _remove(each)
    for name, content in OUTSIDE.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)


def _remove(path: Path) -> None:
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.exists():
        shutil.rmtree(path)


def _tree(root: Path) -> Iterator[tuple[str, Any]]:
    """Everything there is: what it is, its mode, and its content or what it leads to."""
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = Path(folder, name)
            mode = path.lstat().st_mode
            content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
            yield str(path.relative_to(root)), (mode, content)
