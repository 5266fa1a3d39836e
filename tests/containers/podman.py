"""A real engine: Podman with storage of its own, and an image of this machine's Python. It pulls nothing."""

from __future__ import annotations

import io
import os
import re
import shlex
import shutil
import subprocess
import tarfile
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

NAME, SERVER = "localhost/penstock-python", "localhost/penstock-server"
PORT = 5432
SERVE = f'CMD ["bash", "-c", "echo $GREETING > /tmp/greeting; exec python3 -m http.server --directory /tmp {PORT}"]'
"""What the second image runs: a server of one file, which says what a variable says."""

PYTHON = "/usr/bin/python3"
LIBRARY = Path(f"/usr/lib/{Path(os.path.realpath(PYTHON)).name}")
PROGRAMS = ("bash", "sh", "cat", "grep", "id", "setsid", "touch", "ls", "env", "sleep", "useradd", "groupadd", PYTHON)
LEFT_OUT = ("test", "__pycache__", "idlelib", "tkinter", "ensurepip", "lib2to3")
FILES = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/bash\n",
    "etc/group": "root:x:0:\n",
    "etc/shadow": "root:*:19000:0:99999:7:::\n",
    "etc/login.defs": "",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}
NETWORKS = 4
"""How many networks there is room for."""

CONF = """[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
[engine]
runtime = "{runtime}"
[network]
network_config_dir = "{folder}/networks"
default_subnet_pools = [{{ "base" = "10.231.{third}.0/22", "size" = 24 }}]
"""
"""Few limits: a machine may not let more be set. The runtime is one that works here. Networks are its own, and few.

Engines of tests that run at the same time have other addresses, as a rule: none gives out what the machine has.
"""


PROGRAM = '#!/bin/sh\nCONTAINERS_CONF={conf} exec {command} "$@"\n'


class NoEngine(Exception):
    """Why no engine runs on this machine."""


@dataclass
class Podman:
    """Podman with a folder of its own."""

    folder: Path
    runtime: str = ""
    digest: str = ""
    server_digest: str = ""

    @property
    def socket(self) -> str:
        return str(self.folder / "podman.sock")

    @property
    def image(self) -> str:
        return f"{NAME}@{self.digest}"

    @property
    def server(self) -> str:
        """An image with a server at PORT."""
        return f"{SERVER}@{self.server_digest}"

    def run(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a command of Podman's. Raises NoEngine if it fails."""
        command = [*self._command(), *words]
        done = subprocess.run(command, cwd=self.folder, env=self._environment(), capture_output=True, text=True)
        if check and done.returncode:
            raise NoEngine(f"`podman {words[0]}` fails here: {done.stderr.strip()[-300:]}")
        return done

    def program(self) -> Path:
        """A program that is this Podman's command."""
        path = self.folder / "podman"
        path.write_text(PROGRAM.format(conf=shlex.quote(str(self._conf())), command=shlex.join(self._command())))
        path.chmod(0o755)
        return path

    def start(self) -> None:
        """Make the image, and find a runtime with which a container runs. Raises NoEngine."""
        tried = [each for each in ("crun", "runc") if shutil.which(each)]
        self.runtime = next(iter(tried), "")
        self._make_image()
        why = []
        for self.runtime in tried:
            done = self.run("run", "--rm", "--network", "none", self.image, "python3", "-c", "pass", check=False)
            if not done.returncode:
                self._see_bounds()
                return
            why.append(done.stderr.strip()[-200:])
        raise NoEngine(f"no container runs here: {'; '.join(why) or 'there is no crun and no runc'}")

    def _see_bounds(self) -> None:
        """Raises NoEngine where the engine ignores how much memory a container may have: then nothing is started."""
        made = self.run("create", "--memory", "64m", self.image, "true").stdout.strip()
        bound = self.run("container", "inspect", "--format", "{{.HostConfig.Memory}}", made).stdout.strip()
        self.run("rm", made)
        if bound == "0":
            raise NoEngine("it bounds no memory: without root it needs cgroups v2")

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Have its API on the socket meanwhile; in the end all its containers are gone."""
        service = subprocess.Popen(
            [*self._command(), "system", "service", "--time", "0", f"unix://{self.socket}"], env=self._environment()
        )
        try:
            end = time.monotonic() + 20
            while not Path(self.socket).exists() and time.monotonic() < end:
                time.sleep(0.05)
            yield
        finally:
            service.terminate()
            service.wait(20)
            self.run("rm", "--all", "--force", check=False)
            self.run("network", "prune", "--force", "--filter", "label=penstock.site", check=False)
            self.run("image", "rm", "--all", "--force", check=False)

    def _command(self) -> list[str]:
        return ["podman", "--root", str(self.folder / "root"), "--runroot", str(self.folder / "run")]

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "CONTAINERS_CONF": str(self._conf())}

    def _conf(self) -> Path:
        conf = self.folder / "containers.conf"
        third = NETWORKS * (zlib.crc32(bytes(self.folder)) % (256 // NETWORKS))
        conf.write_text(CONF.format(runtime=self.runtime or "crun", folder=self.folder, third=third))
        return conf

    def _make_image(self) -> None:
        archive = self.folder / "image.tar"
        with tarfile.open(archive, "w") as tar:
            fill(tar)
        self.run("import", str(archive), f"{NAME}:test")
        self.run("import", "--change", SERVE, str(archive), f"{SERVER}:test")
        archive.unlink()
        self.digest, self.server_digest = (self._digest(f"{name}:test") for name in (NAME, SERVER))

    def _digest(self, image: str) -> str:
        return self.run("image", "inspect", "--format", "{{.Digest}}", image).stdout.strip()


def found(folder: Path) -> Podman:
    """Podman, ready to serve. Raises NoEngine, with the reason."""
    if not shutil.which("podman"):
        raise NoEngine("there is no podman on this machine: apt-get install podman runc")
    if not LIBRARY.is_dir():
        raise NoEngine(f"{PYTHON}, of which the image is made, has no library at {LIBRARY}")
    made = Podman(folder)
    made.start()
    return made


def fill(tar: tarfile.TarFile) -> None:
    """Put into an archive: some programs, Python's library, and all shared libraries that they need."""
    for folder in ("usr/bin", "usr/sbin", "usr/lib", "usr/lib64", "etc", "tmp", "root", "proc", "dev", "sys", "run"):
        _add_folder(tar, folder)
    for name in ("bin", "sbin", "lib", "lib64"):
        _add_link(tar, name, f"usr/{name}")
    programs = [path for path in map(shutil.which, PROGRAMS) if path]
    for path in programs:
        tar.add(os.path.realpath(path), path.replace("/bin/", "/usr/bin/", 1) if path.startswith("/bin/") else path)
    tar.add(LIBRARY, str(LIBRARY), filter=lambda each: None if Path(each.name).name in LEFT_OUT else each)
    for path in sorted(_needed([*programs, *map(str, (LIBRARY / "lib-dynload").glob("*.so"))]) | _loaded_late()):
        tar.add(os.path.realpath(path), f"/usr{path}" if not path.startswith("/usr") else path)
    for name, text in FILES.items():
        _add_file(tar, name, text)


def _needed(programs: list[str]) -> set[str]:
    """The shared libraries that some programs need, and their loader."""
    listed = subprocess.run(["ldd", *programs], capture_output=True, text=True, check=False).stdout
    return set(re.findall(r"(/(?:usr/)?lib\S*) \(0x", listed))


def _loaded_late() -> set[str]:
    """What a thread needs to end before its time: no program names it."""
    listed = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=False).stdout
    return set(re.findall(r"libgcc_s\.so\.1 \(libc6,(?:x86-64|AArch64)\) => (\S+)", listed))


def _add_folder(tar: tarfile.TarFile, name: str) -> None:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755
    tar.addfile(entry)


def _add_link(tar: tarfile.TarFile, name: str, target: str) -> None:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = tarfile.SYMTYPE, target
    tar.addfile(entry)


def _add_file(tar: tarfile.TarFile, name: str, text: str) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(text.encode()), 0o644
    tar.addfile(entry, io.BytesIO(text.encode()))
