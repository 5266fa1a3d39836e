"""What a job left behind so that its machine or its bench is never clean again. [UNIT-2]"""

from __future__ import annotations

import os
import resource
import stat
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from penstock.agent import machine, removal
from penstock.agent.health import remove_leftovers
from penstock.agent.machine import Machine
from penstock.agent.removal import remove_tree
from penstock.drivers.factories.process import ProcessFactory
from penstock.testing.twin import START

NOBODY = 65534


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    """The root of a job. Whatever a test leaves there is removed by `rm`, for pytest cannot."""
    made = tmp_path / "root"
    (made / "work").mkdir(parents=True)
    yield made
    subprocess.run(["chattr", "-R", "-ia", str(made)], capture_output=True, check=False)
    subprocess.run(["rm", "-rf", str(made)], check=True)


def clean(root: Path) -> str:
    nobody = SimpleNamespace(kill_all=list)
    return remove_leftovers(nobody, Machine(str(root)), str(root.parent / "agent"), "job 1")  # type: ignore[arg-type]


def is_empty(root: Path) -> bool:
    return not list(root.iterdir())


def nest(top: Path, depth: int) -> None:
    """Folders in folders, deeper than any path can name."""
    here = os.open(top, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=here)
        inner = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(os.open("file", os.O_CREAT, dir_fd=here))
    os.close(here)


DEEP = pytest.param(100_000, marks=[pytest.mark.long, pytest.mark.timeout(3000)])


@pytest.mark.parametrize("depth", [1200, DEEP])
def test_folders_nested_deeper_than_any_stack(root: Path, depth: int) -> None:
    """With few files open, and with no more memory for more folders."""
    nest(root / "work", depth)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    open_now = len(os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (open_now + 8, hard))
    tracemalloc.start()
    try:
        clean(root)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert is_empty(root)
    assert most < 200_000


def test_folders_as_wide_as_deep(root: Path) -> None:
    for number in range(40):
        (root / "work" / str(number) / "a" / "b").mkdir(parents=True)
        (root / "work" / str(number) / "a" / "file").touch()
    clean(root)
    assert is_empty(root)


def test_names_that_are_no_text(root: Path) -> None:
    for name in (b"\xff\xfe", b"\n", b"a" * 255, b"-rf", b"\xff/\xfe"):
        path = os.fsencode(root / "work") + b"/" + name
        os.makedirs(path)
        with open(path + b"/\x80", "wb"):
            pass
    clean(root)
    assert is_empty(root)


def test_folders_that_may_not_be_written_to(root: Path) -> None:
    """As a user whom modes bind."""
    deep = root / "work" / "closed" / "closed"
    deep.mkdir(parents=True)
    (deep / "file").touch()
    for path in (deep, deep.parent):
        path.chmod(0)
    for path in (root, root / "work", root.parent):
        os.chown(path, NOBODY, NOBODY) if os.geteuid() == 0 else None
    if os.geteuid() == 0:
        for path in (deep.parent, deep, deep / "file"):
            os.chown(path, NOBODY, NOBODY)
    child = os.fork()
    if not child:
        try:
            os.chdir(root)
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            removal.empty_folder(".")
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert is_empty(root)


def protected(path: Path, flag: str) -> bool:
    """Protect a file as root may; whether this machine has that."""
    done = subprocess.run(["chattr", f"+{flag}", str(path)], capture_output=True, check=False)
    return done.returncode == 0


@pytest.mark.parametrize("flag", ["i", "a"])
def test_files_and_folders_that_chattr_protects(root: Path, flag: str) -> None:
    inner = root / "work" / "inner"
    inner.mkdir()
    (inner / "file").touch()
    if not all(protected(path, flag) for path in (inner / "file", inner, root / "work")):
        pytest.skip("needs root, and a file system with attributes")
    clean(root)
    assert is_empty(root)


def test_a_mount_is_taken_away_and_what_is_behind_it_stays(root: Path, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").touch()
    for place in (root / "work" / "a b", root / "work" / "deep" / "er"):
        place.mkdir(parents=True)
        done = subprocess.run(["mount", "--bind", str(precious), str(place)], capture_output=True, check=False)
        if done.returncode:
            pytest.skip("needs the right to mount")
    clean(root)
    assert is_empty(root)
    assert (precious / "file").exists()


def test_a_mount_that_cannot_be_taken_away(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine is not clean, and says where; nothing behind the mount is touched."""
    mounts = tmp_path / "mountinfo"
    place = os.path.realpath(root / "work" / "disk")
    mounts.write_text(f"36 35 98:0 / {place} rw,noatime master:1 - ext4 /dev/root rw\n")
    (root / "work" / "disk").mkdir()
    (root / "work" / "disk" / "file").touch()
    monkeypatch.setattr(removal, "MOUNTS", str(mounts))
    monkeypatch.setattr(removal, "UNMOUNTERS", (("false",),))
    with pytest.raises(OSError, match=r"may not unmount it.*work/disk"):
        clean(root)
    assert (root / "work" / "disk" / "file").exists()


def test_a_link_to_the_machine(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o755)
    (outside / "file").touch(mode=0o644)
    (root / "work" / "link").symlink_to(outside)
    os.link(outside / "file", root / "work" / "hard")
    clean(root)
    assert is_empty(root)
    assert stat.S_IMODE((outside / "file").stat().st_mode) == 0o644
    assert stat.S_IMODE(outside.stat().st_mode) == 0o755


REFORK = """
import os, sys, time
os.setsid()
print(os.getpid(), flush=True)
sys.stdout.close()
end = time.monotonic() + 60
while time.monotonic() < end:
    if os.fork():
        os._exit(0)
"""


CLEANER = f"""
import os, subprocess, sys
from penstock.agent.health import remove_leftovers
from penstock.agent.machine import JobProcesses, Machine, adopt_orphans

adopt_orphans()
environment = {{**os.environ, "PENSTOCK_WORKER_ID": "refork"}}
started = subprocess.Popen([sys.executable, "-c", {REFORK!r}], env=environment, stdout=subprocess.PIPE, text=True)
group = int(started.stdout.readline())
started.wait()
os.killpg(group, 0)
print("it runs", flush=True)
remove_leftovers(JobProcesses("refork"), Machine(sys.argv[1]), sys.argv[2], "job 1")
while True:
    try:
        os.waitpid(-group, 0)
    except ChildProcessError:
        break
try:
    os.killpg(group, 9)
    print("it ran on")
except ProcessLookupError:
    print("it is gone")
"""


def test_a_process_that_forks_and_ends_over_and_over(root: Path) -> None:
    """Its id is another one whenever it is looked for. Those that have ended tell the agent their group."""
    command = [sys.executable, "-c", CLEANER, str(root), str(root.parent / "agent")]
    environment = {**os.environ, "PYTHONPATH": str(Path(machine.__file__).parents[2])}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=50)
    assert (done.stdout.split("\n")[:2], done.stderr) == (["it runs", "it is gone"], "")


def test_the_folder_of_a_local_worker(tmp_path: Path) -> None:
    """Whoever destroys it must not believe that it is empty when it is not."""
    factory = ProcessFactory({}, {"PENSTOCK_HOME": str(tmp_path)})
    folder = tmp_path / "workers" / "w-1" / "root"
    folder.mkdir(parents=True)
    nest(folder, 1200)
    try:
        proof = factory.destroy("w-1", START)
        left = folder.exists()
    finally:
        subprocess.run(["rm", "-rf", str(folder)], check=True)
    assert "its folder is empty" in str(proof)
    assert not left


def test_what_is_gone_needs_no_removal(root: Path) -> None:
    remove_tree(str(root / "work"))
    remove_tree(str(root / "work"))
    (root / "file").touch()
    remove_tree(str(root / "file"))
    assert is_empty(root)
