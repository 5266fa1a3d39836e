"""What a test does to its machine, where it may: small disks, and control groups with little memory."""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

GROUPS = Path("/sys/fs/cgroup")


@contextlib.contextmanager
def small_disk(path: Path, size: str) -> Iterator[None]:
    """A disk of its own at a path, such as `2m`. Skips where nobody may mount one."""
    path.mkdir(parents=True, exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path)]
    if os.geteuid() or not shutil.which("mount") or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("no leave to mount a small disk")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)


@contextlib.contextmanager
def little_memory(limit: int) -> Iterator[Path]:
    """A control group with so many bytes of memory: the file that takes ids of processes. Skips where there is none."""
    group = _home() / f"penstock-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as why:
        pytest.skip(f"no leave to make a control group: {why}")
    try:
        try:
            is_second = (group / "memory.max").exists()
            (group / ("memory.max" if is_second else "memory.limit_in_bytes")).write_text(str(limit))
            if is_second and (group / "memory.swap.max").exists():
                (group / "memory.swap.max").write_text("0")
        except OSError as why:
            pytest.skip(f"control groups have no memory controller here: {why}")
        yield group / "cgroup.procs"
    finally:
        group.rmdir()


def _home() -> Path:
    """The folder of this process's own group, in whichever version has the memory controller."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            return GROUPS / "memory" / path.lstrip("/")
    return GROUPS
