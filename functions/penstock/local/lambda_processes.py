"""Processes of Lambda functions: code is unzipped once per content, and processes fork from one that imported it.

$PENSTOCK_CODE is the folder of unzipped code. It outlives the local cloud: the next one starts with compiled modules.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import queue
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from ministack.core import lambda_runtime
from ministack.services import lambda_svc

from penstock.local import forkserver

PIPE_BYTES = 1 << 16
"""What a pipe holds at most. Source: pipe(7), "Pipe capacity"."""


class ForkServer:
    """Runs a script in one new process after the other, each with an environment and a folder of its own.

    It ends with this object, and the processes with the last that holds their input.
    """

    def __init__(self, script: Path, folders: Iterable[Path], environment: Mapping[str, str]) -> None:
        self._asking, asked = socket.socketpair()
        with asked:
            self._process = subprocess.Popen(
                [sys.executable, "-P", forkserver.__file__, str(asked.fileno()), str(script), *map(str, folders)],
                stdin=subprocess.DEVNULL,
                env=environment,
                pass_fds=[asked.fileno()],
            )

    def start(self, environment: Mapping[str, str], folder: Path) -> Forked:
        """A new process. Raises OSError where the server is gone."""
        stdin, stdout, stderr, life = (os.pipe() for _ in range(4))
        forked, theirs = Forked(stdin[1], stdout[0], stderr[0], life[0]), [stdin[0], stdout[1], stderr[1], life[1]]
        try:
            socket.send_fds(self._asking, [b"."], theirs)
        finally:
            for each in theirs:
                os.close(each)
        forked.begin(environment, folder)
        return forked


class Forked:
    """A child of a fork server, with the methods of subprocess.Popen that the emulator uses."""

    pid: int

    def __init__(self, stdin: int, stdout: int, stderr: int, life: int) -> None:
        self.stdin, self.stdout, self.stderr = open(stdin, "w", buffering=1), open(stdout), open(stderr)  # noqa: SIM115
        self._life = open(life, "rb", buffering=0)  # noqa: SIM115  # all are closed with this

    def begin(self, environment: Mapping[str, str], folder: Path) -> None:
        """Send its environment and folder, and read its process id. Raises OSError if the server is gone."""
        self.stdin.write(json.dumps({"env": environment, "cwd": str(folder)}) + "\n")
        said = self.stdout.readline()
        if not said:
            raise ProcessLookupError("the function's process ended at once")
        self.pid = int(said)

    def poll(self) -> int | None:
        """0 when it has ended, however it did."""
        return 0 if self._has_ended(0) else None

    def wait(self, timeout: float) -> int:
        """Wait until it has ended. Raises TimeoutExpired."""
        if self._has_ended(timeout):
            return 0
        raise subprocess.TimeoutExpired(str(self.pid), timeout)

    def terminate(self) -> None:
        """Ask it to end."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def _has_ended(self, seconds: float) -> bool:
        """The kernel closes the other end of this when the process ends; nobody writes to it."""
        poll = select.poll()
        poll.register(self._life)
        return bool(poll.poll(seconds * 1000))


class Log:
    """The lines that a process writes to its stderr. They are read as they come, so the process never waits.

    What a process wrote before it replied is in the pipe or here, so nobody has to wait for it either.
    """

    def __init__(self, stderr: int) -> None:
        self.lines: queue.Queue[str] = queue.Queue()
        self._pipe = open(os.dup(stderr), "rb", buffering=0)  # noqa: SIM115  # closed where it ends
        self._part, self._alone = b"", threading.Lock()
        threading.Thread(target=self._follow, daemon=True).start()

    def read(self) -> bool:
        """Take all that is there, without waiting. False when the process has ended."""
        with self._alone:
            if not self._pipe.closed and _is_readable(self._pipe.fileno(), 0):
                self._take(self._pipe.read(PIPE_BYTES) or b"")
            return not self._pipe.closed

    def _take(self, got: bytes) -> None:
        """Take what was read. Nothing is the end, which ends the last line too."""
        *lines, self._part = (self._part + got).split(b"\n")
        if not got:
            self._pipe.close()
            lines = [self._part] if self._part else []
        for line in lines:
            self.lines.put(line.decode(errors="replace"))

    def _follow(self) -> None:
        pipe = self._pipe.fileno()  # waits for it only: a file that got its number later is not read
        while self.read():
            _is_readable(pipe, None)


def _is_readable(file: int, milliseconds: int | None) -> bool:
    poll = select.poll()
    poll.register(file, select.POLLIN)
    return bool(poll.poll(milliseconds))


_ALONE = threading.Lock()


_SERVERS: dict[tuple[Path, ...], ForkServer] = {}
"""By folders of code: the process that has imported what functions share."""


def spawn(worker: Any) -> None:
    """Start one process for a function and wait until its module is imported.

    The emulator would wait 50 ms after each call for a first line of log, and 5 ms for a next one. Ours knows its end.
    Takes the place of MiniStack's Worker._spawn. Raises RuntimeError with what Python said if the import fails, OSError
    if no process can be started.
    """
    code = unzipped(worker.code_zip)
    layers = [unzipped(lambda_svc._resolve_layer_zip(layer)) for layer in _layers(worker.config)]
    worker._tmpdir = None  # nothing of its own, so nothing to remove when it ends
    worker._proc = _start(code, layers, _environment(worker.config, code, layers))
    log = Log(worker._proc.stderr.fileno())
    worker._stderr_queue, worker._drain_stderr_bounded = log.lines, partial(_log_of_call, worker, log)
    _import_module(worker, code)


def _log_of_call(worker: Any, log: Log) -> str:
    log.read()
    return str(worker._drain_stderr())


def _start(code: Path, layers: list[Path], environment: dict[str, str]) -> Any:
    """Start a process. Penstock's functions are forked from a process with their shared imports, where fork is safe."""
    if (code / "penstock").is_dir() and sys.platform == "linux":  # macOS' own libraries do not stand it
        return _forked(code, layers, environment)
    return subprocess.Popen(
        [sys.executable, str(_script())],
        cwd=code,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        bufsize=1,
        env=environment,
    )


def _forked(code: Path, layers: list[Path], environment: dict[str, str]) -> Forked:
    """Fork from the server of this code, started on first use. Raises OSError if the server has ended."""
    folders = (*(each / "python" for each in layers), code)
    with _ALONE:
        server = _SERVERS.get(folders) or ForkServer(_script(), folders, environment)
        _SERVERS[folders] = server
    try:
        return server.start(environment, code)
    except OSError:
        _SERVERS.pop(folders, None)  # the next who asks starts another
        raise


def unzipped(archive: bytes) -> Path:
    """A folder with the content of a zip file. The same content gives the same folder, also for another host."""
    folder = _code() / hashlib.sha256(archive).hexdigest()[:16]
    if not folder.is_dir():
        with tempfile.TemporaryDirectory(dir=_code()) as beside:
            zipfile.ZipFile(io.BytesIO(archive)).extractall(Path(beside) / "code")
            with contextlib.suppress(OSError):  # somebody else was first
                (Path(beside) / "code").rename(folder)
    os.utime(folder)
    return folder


def _code() -> Path:
    return Path(os.environ["PENSTOCK_CODE"])


def _script() -> Path:
    """MiniStack's loop around a handler, as a file."""
    path = Path(tempfile.gettempdir()) / "function.py"
    if not path.exists():
        path.write_text(lambda_runtime._PYTHON_WORKER_SCRIPT)
    return path


def _layers(config: dict[str, Any]) -> list[Any]:
    return list(config.get("Layers") or [])


def _environment(config: dict[str, Any], code: Path, layers: list[Path]) -> dict[str, str]:
    """The host's environment, the function's own, and what Lambda adds."""
    _, region = lambda_runtime._account_region_from_function_config(config)
    name = config.get("FunctionName", "")
    return {
        **os.environ,
        **config.get("Environment", {}).get("Variables", {}),
        **lambda_runtime.execution_credentials(config),
        "AWS_REGION": region,
        "AWS_DEFAULT_REGION": region,
        "AWS_LAMBDA_FUNCTION_NAME": name,
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(config.get("MemorySize", 128)),
        "AWS_LAMBDA_FUNCTION_VERSION": config.get("Version", "$LATEST"),
        "AWS_LAMBDA_LOG_GROUP_NAME": f"/aws/lambda/{name}",
        "AWS_LAMBDA_LOG_STREAM_NAME": "local",
        "LAMBDA_TASK_ROOT": str(code),
        "_LAMBDA_FUNCTION_ARN": config.get("FunctionArn", ""),
        "_LAMBDA_LAYERS_DIRS": os.pathsep.join(map(str, layers)),
        "_LAMBDA_TIMEOUT": str(config.get("Timeout", 3)),
    }


def _import_module(worker: Any, code: Path) -> None:
    module, _, handler = worker.config["Handler"].rpartition(".")
    given = {
        "code_dir": str(code),
        "module": module.replace("/", "."),
        "handler": handler,
        "env": worker.config.get("Environment", {}).get("Variables", {}),
        "function_name": worker.config.get("FunctionName", ""),
        "memory": worker.config.get("MemorySize", 128),
        "arn": worker.config.get("FunctionArn", ""),
    }
    worker._proc.stdin.write(json.dumps(given) + "\n")
    worker._proc.stdin.flush()
    said = worker._proc.stdout.readline()
    reply = json.loads(said) if said.startswith("{") else {"error": worker._drain_stderr() or "it ended at once"}
    if reply.get("status") != "ready":
        raise RuntimeError(f"{worker.func_name}: cannot import {module}: {reply.get('error')}")
