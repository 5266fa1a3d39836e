"""A worker of a host's part: a container, in which the usual worker's agent runs. docs/operators/hosts.md

A container has the name of its worker, and so has its network: an agent that is started again finds both, and the
engine makes only one of a name. [JOB-2] What the agent needs is copied into the container before it starts, so nothing
of the host is in it: not the host's files, its session or token, nor what other containers have. [SEC-2]
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import select
import tarfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .engine import Container, Engine
from .hostloop import WORKING, HostState
from .machine import log, now, write_secret
from .relay import SOCKET, loopback_port, serve_socket
from .removal import remove_tree

HOME = "/opt/penstock"
CONFIG, AGENT, SERVICE = f"{HOME}/agent.json", "/opt/penstock-agent.pyz", "/opt/penstock-service"
"""The folder that the agent writes to, for the container's root alone; the agent's file; the folder of the socket."""

CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "SETGID", "SETUID")
"""What the agent needs to make the jobs' user, give it its folders, run tasks as it, and end its processes."""

PIDS = 4096
PULL_SECONDS = 1800.0
UP_SECONDS = 300.0
STOP_SECONDS = "20"  # for the agent to end: its job gets 2 s of them, and it makes no more calls
STOP_CALL_SECONDS = 60.0
NOTICED_SECONDS = 10.0
POLL_SECONDS = 0.2
LABEL_HOST, LABEL_STATE, LABEL_WORKER = "penstock.host", "penstock.state", "penstock.worker"


@dataclass(frozen=True)
class Containers:
    """The containers of one host at its engine: known as ours by their labels. `program` is the agent's own file.

    Agents of several hosts may use one engine, of several deployments even; each has a folder of its own. [UNIT-1]
    """

    engine: Engine
    host: str
    url: str
    folder: Path
    program: bytes

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels of all containers and networks of this host."""
        return {LABEL_HOST: self.host, LABEL_STATE: hashlib.sha256(str(self.folder).encode()).hexdigest()[:16]}

    def remove_unknown(self, known: Callable[[], set[str]]) -> None:
        """Remove all containers and networks of this host but those of these workers. Raises OSError. [UNIT-1]

        Who is known is asked after what is there: a worker that comes meanwhile is known before its container is made.
        """
        wanted = [f"label={name}={value}" for name, value in self.labels.items()]
        found = self.engine.names("container", *wanted) | self.engine.names("network", *wanted)
        for name in sorted(found - known()):
            log(f"removing {name}, which {self.engine.name} still has, and of which this host knows nothing")
            self.engine.remove(name)

    def serve(self) -> None:
        """Let containers reach a service on this machine's loopback, which they have not. Raises OSError."""
        if self.is_near:
            serve_socket(self.service_folder, self.url)

    @property
    def is_near(self) -> bool:
        """Whether the service is on this machine's loopback."""
        return loopback_port(self.url) is not None

    @property
    def service_folder(self) -> Path:
        return self.folder / "service"

    def worker(self, state: HostState, changed: Callable[[], None]) -> WorkerContainer:
        """Return the worker of a part."""
        return WorkerContainer(self, state, changed)

    def create(self, worker: str, said: Mapping[str, Any]) -> None:
        """Make a container as the service says, in a network of its own. It has no secret in it. Raises OSError."""
        labels = [word for name, value in self._labels(worker).items() for word in ("--label", f"{name}={value}")]
        if worker not in self.engine.names("network"):
            self.engine.run("network", "create", *labels, *self.engine.isolation, worker)
        memory = int(said["memory"])
        self.engine.run(
            "create", "--name", worker, "--hostname", worker[-63:], *labels,
            "--pull", "never", "--init", "--restart", "no", "--network", worker,
            "--user", "0:0", "--workdir", "/", "--entrypoint", "python3",
            *_limits(float(said["cpus"]), memory), *_privileges(), *self._mounts(),
            "--log-driver", "json-file", "--log-opt", "max-size=1m",
            str(said["image"]), AGENT, "run", "--config", CONFIG,
        )  # fmt: skip

    def _labels(self, worker: str) -> Mapping[str, str]:
        return {**self.labels, LABEL_WORKER: worker}

    def _mounts(self) -> Sequence[str]:
        return ("--volume", f"{self.service_folder}:{SERVICE}:ro,z") if self.is_near else ()

    def put(self, worker: str, key: str) -> None:
        """Copy the agent and its config into a container: the key is for the container's root alone. [SEC-1]"""
        config = {"url": self.url, "worker": worker, "key": key, "alone": True}
        if self.is_near:
            config["socket"] = f"{SERVICE}/{SOCKET}"
        files = {CONFIG: (0o600, json.dumps(config).encode()), AGENT: (0o644, self.program)}
        self.engine.run("cp", "-", f"{worker}:/", given=_tar(files))


def _limits(cpus: float, memory: int) -> Sequence[str]:
    """The options that bound a container; `memory` is in MiB. What is in /tmp counts as memory."""
    tmp = f"/tmp:rw,exec,nosuid,nodev,mode=1777,size={max(1, memory // 2)}m"
    bounds = "--memory", f"{memory}m", "--memory-swap", f"{memory}m", "--pids-limit", str(PIDS)
    return "--cpus", f"{cpus:g}", *bounds, "--tmpfs", tmp


def _privileges() -> Sequence[str]:
    """A job gets no more rights than the container has, by no program. [SEC-2]"""
    added = [word for each in CAPABILITIES for word in ("--cap-add", each)]
    return "--cap-drop", "ALL", *added, "--security-opt", "no-new-privileges"


def _tar(files: Mapping[str, tuple[int, bytes]]) -> bytes:
    """A tar with the agent's folder, closed to others than root, and files."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        folder = tarfile.TarInfo(HOME.lstrip("/"))
        folder.type, folder.mode = tarfile.DIRTYPE, 0o700
        tar.addfile(folder)
        for path, (mode, content) in files.items():
            entry = tarfile.TarInfo(path.lstrip("/"))
            entry.mode, entry.size = mode, len(content)
            tar.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


class WorkerContainer:
    """The worker of one part. A thread brings it up, as a pull may take minutes: it can be given up meanwhile.

    <folder>/worker/order.json   what the service said of the worker: its key, image and limits
                    started      its container was started, or was about to be
    """

    def __init__(self, of: Containers, state: HostState, changed: Callable[[], None]) -> None:
        self._of, self._engine, self._state, self._changed = of, of.engine, state, changed
        self._is_up, self._unwanted, self._fault = threading.Event(), threading.Event(), ""
        self._is_up.set()

    def configure(self, order: dict[str, Any]) -> None:
        """Write down what the service said of the worker. From now on it may be started, also again after a crash."""
        folder = self._state.worker_folder
        remove_tree(str(folder))
        folder.mkdir(mode=0o700)
        said = {"key": order["key"], "container": order.get("container") or {}}
        write_secret(folder / "order.json", json.dumps(said))
        self._state.note(order["worker"], WORKING)

    def start(self) -> None:
        """Bring the container up, or go on with the one that is there. [JOB-2]"""
        self._is_up.clear()
        self._unwanted.clear()
        self._fault = ""
        threading.Thread(target=self._bring_up, args=(self._state.worker,), daemon=True).start()

    def _bring_up(self, worker: str) -> None:
        try:
            found = self._engine.find(worker)
            if found is None or not found.was_started:
                self._begin(worker, found)
        except (OSError, ValueError, KeyError) as why:
            self._fault, self._engine.is_in_doubt = f"its container cannot be started: {why}", True
        finally:
            self._is_up.set()
        self._watch(worker)
        self._changed()

    def _begin(self, worker: str, found: Container | None) -> None:
        """Make and start the container. One that was started before and is gone is not made again. Raises OSError."""
        started = self._state.worker_folder / "started"
        if found is None and started.exists():
            raise OSError(f"it was started before, and {self._engine.name} does not have it any more")
        order = json.loads((self._state.worker_folder / "order.json").read_text(encoding="ascii"))
        if found is None:
            self._pull(order["container"]["image"])
            self._of.create(worker, order["container"])
        if not self._engine.bounds_memory(worker):  # as without root on cgroups v1
            raise OSError(f"{self._engine.name} bounds no memory here: run it as root, or on a machine with cgroups v2")
        self._of.put(worker, order["key"])
        if self._unwanted.is_set():
            raise OSError("it is not wanted any more")
        write_secret(started, worker)
        self._engine.run("start", worker)

    def _pull(self, image: str) -> None:
        if not self._engine.has_image(image):
            log(f"pulling {image}")
            self._engine.run("pull", image, seconds=PULL_SECONDS, is_unwanted=self._unwanted.is_set)

    def _watch(self, worker: str) -> None:
        """Wait for the container's end, where this machine sees its first process. A poll would notice it later."""
        with contextlib.suppress(OSError, AttributeError):
            found = self._engine.find(worker)
            if found and found.lives:
                process = os.pidfd_open(found.pid)
                try:
                    end = select.poll()
                    end.register(process, select.POLLIN)
                    end.poll()
                finally:
                    os.close(process)
                self._wait_until_noticed(worker)

    def _wait_until_noticed(self, worker: str) -> None:
        """The engine notices the end of the process a little later."""
        until = now() + NOTICED_SECONDS
        while self._runs(worker) and now() < until:
            time.sleep(POLL_SECONDS)

    def lives(self) -> bool:
        """Return whether the container is being brought up, or runs. Raises OSError if nobody knows."""
        return not self._is_up.is_set() or self._runs(self._state.worker)

    def _runs(self, worker: str) -> bool:
        found = self._engine.find(worker)
        return found is not None and found.lives

    def fault(self) -> str:
        """Return why the container could not be started; "" if it was."""
        return self._fault

    def end(self) -> None:
        """Stop the container: its agent first, then by force. Raises OSError if it does not end."""
        worker = self._state.worker
        self._unwanted.set()
        if not self._is_up.wait(UP_SECONDS):
            raise OSError(f"{self._engine.name} does not come to an end with the start of {worker}")
        for words in ("stop", "--time", STOP_SECONDS), ("kill",):
            if not worker or not self._runs(worker):
                return
            with contextlib.suppress(OSError):
                self._engine.run(*words, worker, seconds=STOP_CALL_SECONDS)
        if self._runs(worker):
            raise OSError(f"the container {worker} does not end")

    def clean(self, worker: str) -> str:
        """Remove the container, its network and its files. Return the proof. Raises OSError. [UNIT-2]"""
        try:
            self._log_end(worker)
            self._engine.remove(worker)
        except OSError:
            self._engine.is_in_doubt = True
            raise
        remove_tree(str(self._state.worker_folder))
        return f"{self._engine.name} has no container and no network {worker} any more; its files are removed"

    def _log_end(self, worker: str) -> None:
        """Log what the agent in a container said last, if it failed: that goes with the container."""
        found = self._engine.find(worker)
        if found and found.was_started and found.code:
            log(f"worker {worker} ended with {found.code}, and said last:\n{self._engine.output(worker)}")
