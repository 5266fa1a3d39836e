"""Answers `bmat` while tasks run: the socket, the requests, and the commands on the job's PATH."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import socketserver
import sys
import tempfile
import threading
from collections.abc import Iterator
from typing import Any

from .caches import CacheRequest, Caches
from .client import Control, ServiceError
from .job import Declined, Job
from .machine import BASE_PATH, Machine, log, now
from .masking import resource_secrets, text_secrets

FACTS_TRIES = 2
REFRESH_SECONDS = 10.0  # the least time between two requests for fresh metadata
TRIES = 4  # per call: only some seconds, because a script that waits for a value asks again

PFEXEC = """#!/bin/sh
# pfexec COMMAND...: as root
if [ "$(id -u)" = 0 ]; then exec "$@"; fi
exec sudo -n -- "$@"
"""
PTIME = """#!/bin/bash
# ptime [-m] COMMAND...: print how long it took
while [[ "$1" == -[mF] ]]; do shift; done
time "$@"
"""
BANNER = """#!/bin/sh
# banner WORD...: a heading
for word; do
  line=$(printf '%s' "## $word ##" | sed 's/./#/g')
  printf '\\n%s\\n## %s ##\\n%s\\n\\n' "$line" "$word" "$line"
done
"""
SHIMS = {"pfexec": PFEXEC, "ptime": PTIME, "banner": BANNER}
REQUEST_BYTES = 1 << 22
"""The longest line that is read: a command and its environment, escaped as JSON."""


class JobFacts:
    """What a job may know of itself. Stale metadata is fetched again; if that fails, the old metadata remains."""

    def __init__(self, job: Job) -> None:
        reply = job.order.reply
        self._job, self._lock = job, threading.Lock()
        self._facts = {"worker": job.config.worker, "factory": reply["factory"]}
        self._use(reply.get("resources") or {}, job.order.received, 0.0)

    def read(self) -> bytes:
        """Return the facts as JSON."""
        with self._lock:
            if now() >= self._fresh_until:
                self._refresh()
            return json.dumps({**self._facts, "resources": self._resources}).encode()

    def _refresh(self) -> None:
        requested = now()
        try:
            resources = self._job.service.call(self._job.order.job, "resources", {}, FACTS_TRIES)["resources"]
        except (ServiceError, KeyError) as why:
            log(f"the metadata of the job's resources cannot be refreshed: {why}")
            resources = self._resources
        self._use(resources, requested, REFRESH_SECONDS)

    def _use(self, resources: dict[str, Any], requested: float, least: float) -> None:
        self._job.mask.learn(resource_secrets(resources))  # before the job can print them [SEC-1]
        self._resources = resources
        fresh = [float(each["fresh_seconds"]) for each in resources.values() if "fresh_seconds" in each]
        self._fresh_until = requested + max(least, min(fresh)) if fresh else float("inf")


class BmatRequests:
    """Answers requests, each a line of JSON. A secret is masked in the log before a script gets it. [SEC-1]"""

    def __init__(self, job: Job) -> None:
        self._job, self._facts = job, JobFacts(job)

    def answer(self, line: bytes) -> bytes:
        """Return the answer to a request, or {"error": why}."""
        try:
            ask = json.loads(line)
            do = {
                "facts": self._read_facts,
                "get": self._get,
                "put": self._put,
                "identity": self._identity,
                "process": self._process,
                "post": self._post,
                "cache": self._cache,
            }[ask["do"]]
            return do(ask)
        except (ServiceError, Declined) as why:
            return json.dumps({"error": str(why)}).encode()
        except (ValueError, LookupError, TypeError, RecursionError):
            return json.dumps({"error": "the agent does not understand this request of bmat"}).encode()

    def _read_facts(self, _: dict[str, Any]) -> bytes:
        return self._facts.read()

    def _get(self, ask: dict[str, Any]) -> bytes:
        found = self._call("store/get", {"name": ask["name"]})
        if found.get("secret"):
            self._job.mask.learn(text_secrets(str(found["value"])))
        return json.dumps(found).encode()

    def _put(self, ask: dict[str, Any]) -> bytes:
        """Put a value. One that contains a secret of the job, such as a resource's password, is secret too. [SEC-1]"""
        value = ask["value"]
        if not isinstance(value, str):
            raise TypeError("a value is text")
        is_secret = bool(ask["secret"]) or (bool(value) and self._job.mask.text(value) != value)
        if is_secret:
            self._job.mask.learn(text_secrets(value))
        body = {"name": ask["name"], "value": value, "secret": is_secret}
        return json.dumps(self._call("store/put", body)).encode()

    def _identity(self, ask: dict[str, Any]) -> bytes:
        """Get a token, and mask its signature: without it the token proves nothing. [SEC-1]"""
        found = self._call("identity", {"audience": ask["audience"]})
        self._job.mask.learn(text_secrets(str(found["token"]).rpartition(".")[2]))
        return json.dumps(found).encode()

    def _process(self, ask: dict[str, Any]) -> bytes:
        self._job.background.start(ask)
        return b"{}"

    def _post(self, ask: dict[str, Any]) -> bytes:
        self._job.posts.add(ask)
        return b"{}"

    def _cache(self, ask: dict[str, Any]) -> bytes:
        keys = [str(each) for each in ask["restore_keys"]]
        paths = [str(each) for each in ask["paths"]]
        wanted = CacheRequest(str(ask["name"]), paths, str(ask["key"]), keys, str(ask["cwd"]))
        caches = Caches(self._job)
        found = caches.save(wanted) if ask["what"] == "save" else caches.restore(wanted)
        return json.dumps({"word": found.word, "text": found.text}).encode()

    def _call(self, what: str, body: dict[str, Any]) -> dict[str, Any]:
        return self._job.service.call(self._job.order.job, what, body, TRIES)


def install_shims(folder: str) -> None:
    """Put the commands of illumos that scripts expect into a folder, unless the machine has them. Raises OSError."""
    elsewhere = os.pathsep.join(each for each in BASE_PATH.split(os.pathsep) if each != folder)
    for name, text in SHIMS.items():
        if not shutil.which(name, path=elsewhere):
            write_command(os.path.join(folder, name), text)


def write_command(path: str, text: str) -> None:
    """Write a command, whole or not at all. Raises OSError."""
    draft = os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.new")
    with open(draft, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(draft, 0o755)
    os.replace(draft, path)


@contextlib.contextmanager
def serve_bmat(job: Job) -> Iterator[None]:
    """Answer connections on a socket until the work is abandoned.

    This is the only way to credentials of resources and secrets of the store. Only the job's user can connect. [SEC-1]
    """
    answer = type("Answer", (BmatHandler,), {"requests": BmatRequests(job), "control": job.control})
    with tempfile.TemporaryDirectory(prefix="bmat-", dir=_socket_folder(job.machine)) as folder:
        path = os.path.join(folder, "socket")
        with socketserver.ThreadingUnixStreamServer(path, answer) as server:
            os.chmod(path, 0o600)
            for each in (folder, path):
                job.machine.give_to_user(each)
            _install_commands(job.machine, path)
            threading.Thread(target=server.serve_forever, args=(0.1,), name="bmat", daemon=True).start()
            yield
            server.shutdown()


class BmatHandler(socketserver.StreamRequestHandler):
    """One connection."""

    requests: BmatRequests
    control: Control
    timeout = 5.0

    def handle(self) -> None:
        line = self.rfile.readline(REQUEST_BYTES)
        if not self.control.abandoned:
            self.wfile.write(self.requests.answer(line))


def _socket_folder(machine: Machine) -> str:
    """Return a folder for the socket, whose path may have about 100 bytes. A job may empty its own /tmp."""
    return machine.bin if machine.private and len(os.fsencode(machine.bin)) < 70 else "/tmp"


def _install_commands(machine: Machine, path: str) -> None:
    """Put `bmat` on the job's PATH. It runs the agent's own file, and works in any environment.

    Beside it are commands that scripts expect and this machine lacks.
    """
    command = shlex.join([sys.executable, "-I", "-S", machine.program, "bmat"])
    text = f'#!/bin/sh\nPENSTOCK_SOCKET={shlex.quote(path)} exec {command} "$@"\n'
    write_command(os.path.join(machine.bin, "bmat"), text)
    install_shims(machine.bin)
