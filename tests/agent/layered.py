"""Machines that a test may change as root: this machine's own files, with an overlay over them.

Such a machine has its own processes, System V IPC, /tmp and /dev/shm, so nothing that a test kills or removes there is
anybody else's.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.agent.control_plane import PATIENCE_SECONDS, WORKER

PYTHON = shutil.which("python3", path="/usr/bin:/usr/local/bin")
HOME = "/opt/penstock"
LAYER = """mount -t tmpfs tmpfs "$1"; mkdir "$1/up" "$1/work" "$1/all"
for each in work input tmp; do mknod "$1/up/$each" c 0 0; done  # which is how a layer says that it is not there
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/up,workdir=$1/work" "$1/all"
"""
LAYERED = f"""set -e
{LAYER}
ROOT=$1/all; left=$6
mount -t proc proc "$ROOT/proc"
for each in dev run var/tmp; do mount -t tmpfs -o mode=755 tmpfs "$ROOT/$each"; done
for each in null zero full random urandom tty; do : > "$ROOT/dev/$each"; mount --bind /dev/$each "$ROOT/dev/$each"; done
ln -s /proc/self/fd "$ROOT/dev/fd"; mkdir -m 1777 "$ROOT/dev/shm" "$ROOT/dev/mqueue" "$ROOT/run/lock" "$ROOT/tmp"
mount -t mqueue mqueue "$ROOT/dev/mqueue"; chmod 1777 "$ROOT/dev/mqueue" "$ROOT/var/tmp"; mkdir -p "$ROOT{HOME}"
cp "$2" "$ROOT{HOME}/agent.pyz"; cp "$3" "$ROOT{HOME}/agent.json"
chmod 700 "$ROOT{HOME}"
eval "$4"
ln -s /bin/true "$ROOT/usr/bin/sudo" 2>/dev/null || :
cd "$ROOT{HOME}"
python=$5; shift 6
code=0; chroot "$ROOT" "$python" {HOME}/agent.pyz "$@" || code=$?
chroot "$ROOT" ls -A /home/build /work /input > "$left" 2>/dev/null || :
exit $code
"""
ISOLATED = ("unshare", "-m", "--propagation", "private", "--ipc", "--pid", "--fork", "--kill-child")
RUN = ("run", "--config", f"{HOME}/agent.json")


def layer(folder: Path) -> Path:
    """Make the folder of a machine. Skips where nobody may have one."""
    if os.geteuid() or not PYTHON or not all(map(shutil.which, ("unshare", "useradd", "chroot"))):
        pytest.skip("only root can have a layered machine")
    made = folder / "layer"
    made.mkdir()
    if subprocess.run([*ISOLATED, "sh", "-c", f"set -e\n{LAYER}", "-", str(made)], capture_output=True).returncode:
        pytest.skip("no leave to layer a machine")
    return made


def start(made: Path, agent: Path, folder: Path, before: str = "", words: tuple[str, ...] = RUN) -> subprocess.Popen:
    """Start an agent as root on a machine; `before` is done first, and finds the machine in $ROOT.

    `folder` has the agent's config, and gets its log and what it left.
    """
    given = [str(made), str(agent), str(folder / "agent.json"), before, str(PYTHON), str(folder / "left")]
    env = {"PATH": os.environ["PATH"], "PENSTOCK_WORKER_ID": WORKER}
    with open(folder / "agent.log", "ab") as log:
        return subprocess.Popen([*ISOLATED, "sh", "-c", LAYERED, "-", *given, *words], env=env, stdout=log, stderr=log)


def runner(agent: Path, folder: Path, worker: Callable) -> Callable:
    """Return a function that runs a job on a machine that was made for it."""
    made = layer(folder)

    def run(before="", alone=True, prepare=lambda plane: None, **changes):
        job = worker(**changes)
        prepare(job.plane)
        config = json.loads((job.folder / "agent.json").read_text())
        (job.folder / "agent.json").write_text(json.dumps({**config, "root": "/", "alone": alone}))
        started = start(made, agent, job.folder, before)
        try:
            job.code = started.wait(PATIENCE_SECONDS)
        finally:
            started.kill()
        return job

    return run
