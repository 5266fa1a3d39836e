"""What the fuzzer begins with: the repository's own examples, and what its tests send."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from penstock.api import openapi
from tests.functions.service import SITE as SERVICE_SITE
from tests.functions.service import WORKER_TOKEN
from tests.functions.stage import BODIES, DIGEST
from tests.fuzz.bodies import BODIES as KINDS
from tests.fuzz.bodies import NAMES
from tests.github import payloads

ROOT = Path(__file__).parents[2]
SHA = "a" * 40
SAID = {
    "agent_hello": {"worker": "w-1", "key": "k" * 43, "token": WORKER_TOKEN, "host": "here"},
    "agent_commit": {"ids": ["o-1"]},
    "agent_parts": {"id": "o-1", "first": 1, "sha256": [DIGEST]},
    "agent_commit_cache": {"id": "c-1", "name": "deps", "paths": ["/work/deps"], "key": "k"},
}
FAILED = {
    "result": "failed", "exit_code": 1, "reason": "the script failed", "task": 0,
    "failure": {"kind": "failed", "evidence": {"code": 1}, "task": 0, "task_name": "build", "lines": ["no"]},
}  # fmt: skip


def job_files() -> Iterator[bytes]:
    """Every job file there is."""
    for folder in ("examples", "examples/set", "tests/jobfile/corpus"):
        yield from _files(folder, "*.sh")


def sites() -> Iterator[bytes]:
    """Every site there is."""
    yield from _files("examples", "*.toml")
    yield from _files("tests/e2e", "*.toml")
    yield SERVICE_SITE.encode()


def policies() -> Iterator[bytes]:
    """A policy with every key."""
    yield b'enable = true\norg_only = false\nallow_users = ["ada", "dependabot[bot]"]\nsupersede = "all"\n'
    yield b'enable = true\n[permissions]\ncontents = "read"\nissues = "write"\n'


def events() -> Iterator[bytes]:
    """Batches of an agent."""
    yield json.dumps(BODIES["agent_events"]).encode()
    line = {"time": "2026-01-01T01:00:00.5+01:00", "stream": "bg.x.stderr", "payload": "\u00e4\u0007", "task": 3}
    yield json.dumps({"first": 7, "events": [line, {**line, "stream": "stdout", "task": None}]}).encode()


def agent() -> Iterator[bytes]:
    """One body of each kind that agents send, behind the byte that chooses the kind; plain, and in Base64."""
    every = [operation for operation in openapi.agents() if operation.body]
    for number, operation in enumerate(every):
        for said in (SAID.get(operation.name), BODIES.get(operation.name)):
            for mark in (number, number + len(KINDS) * (128 // len(KINDS) + 1)):
                yield bytes([mark]) + json.dumps(said or {}).encode()
    finish = [operation.name for operation in every].index("agent_finish")
    yield bytes([finish]) + json.dumps(FAILED).encode()


def deliveries() -> Iterator[bytes]:
    """Deliveries of every kind, behind the byte that chooses the kind."""
    run = {"id": 1, "name": "build", "head_sha": SHA, "external_id": "job-1", "app": {"id": 9}}
    found = {
        "push": [payloads.push(SHA), payloads.push(SHA, "x/y", deleted=True)],
        "pull_request": [payloads.pull_request(SHA)],
        "check_run": [payloads.check_run(run, "ada"), payloads.check_run(run, "ada", "cancel")],
        "ping": [{"zen": "Keep it logically awesome."}],
    }
    for name, each in found.items():
        for payload in each:
            yield bytes([NAMES.index(name)]) + json.dumps(payload).encode()
    suite = {**payloads.push(SHA), "action": "rerequested", "check_suite": {"head_sha": SHA, "app": {"id": 9}}}
    yield bytes([NAMES.index("check_suite")]) + json.dumps(suite).encode()


def asks() -> Iterator[bytes]:
    """Every word of bmat."""
    cache = {"do": "cache", "name": "deps", "paths": ["deps"], "key": "k", "restore_keys": ["k"], "cwd": "/work"}
    told = {"name": "x", "command": ["/bin/true", "x"], "cwd": "/", "env": {"A": "b"}}
    for ask in (
        {"do": "facts"},
        {"do": "get", "name": "answer"},
        {"do": "put", "name": "answer", "value": "forty two", "secret": True},
        {"do": "identity", "audience": "sts.amazonaws.com"},
        {"do": "process", **told},
        {"do": "post", "when": "always", **told},
        {**cache, "what": "save"},
        {**cache, "what": "restore", "key": '{{ hash "*.lock" }}'},
    ):
        yield json.dumps(ask).encode() + b"\n"


def archives() -> Iterator[bytes]:
    """Archives as tar writes them, in each of its formats."""
    for format in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT):
        yield _tar(format, ("work/deps", "d", ""), ("work/deps/a", "f", "a"), ("work/deps/l", "s", "../other"))
        yield _tar(format, ("work/deps", "d", ""), ("work/deps/a", "f", "a"), ("work/deps/h", "h", "work/deps/a"))
        yield _tar(format, ("work/more", "f", "x" * 600))


def _tar(format: int, *entries: tuple[str, str, str]) -> bytes:
    kinds = {"d": tarfile.DIRTYPE, "f": tarfile.REGTYPE, "s": tarfile.SYMTYPE, "h": tarfile.LNKTYPE}
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w|", format=format, bufsize=512) as tar:
        for name, kind, more in entries:
            info = tarfile.TarInfo(name)
            info.type, info.mode = kinds[kind], 0o755
            info.pax_headers = {"mtime": "1700000000.123456789"} if format == tarfile.PAX_FORMAT else {}
            info.linkname, info.size = (more, 0) if kind in "sh" else ("", len(more))
            tar.addfile(info, io.BytesIO(more.encode()))
    return held.getvalue()


def _files(folder: str, pattern: str) -> Iterable[bytes]:
    return (path.read_bytes() for path in sorted((ROOT / folder).glob(pattern)))
