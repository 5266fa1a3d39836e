"""What a container is: its image, limits, mounts and labels, and the files that are put into it before it starts."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from penstock import agentfile
from penstock.drivers.factories.container.settings import Settings
from penstock.kernel.errors import Misconfigured
from penstock.kernel.frozen import dataclass
from penstock.ports import Order

HOME = "/opt/penstock"
CONFIG, RELAY, WAIT = f"{HOME}/agent.json", f"{HOME}/relay.py", f"{HOME}/wait.py"
WAITING, GO = f"{HOME}/waiting", f"{HOME}/go"
"""The files by which a container says that it waits for its services, and the driver that they are ready."""

AGENT, CLOUD = "/opt/penstock-agent.pyz", "/opt/penstock-cloud.sock"
"""Where the agent's file and the local cloud's socket are mounted, apart from the folder that the agent writes to."""

CLOUD_SOCKET = "api.sock"
"""The local cloud's socket, in its home."""

PENSTOCK = "penstock."
SITE, MAKER, HOMES, UNIT, SERVICE = (f"{PENSTOCK}{each}" for each in ("site", "maker", "home", "unit", "service"))
"""The labels of a container, and of a network: the deployment's name, the factory's, a digest of the home, the worker's
id, and which of the worker's services it is.
"""

CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "SETGID", "SETUID")
"""What the agent needs to make the jobs' user, give it its folders, run tasks as it, and end its processes."""

LOG = {"Type": "json-file", "Config": {"max-size": "1m"}}
MIB = 1 << 20


@dataclass(frozen=True)
class Deployment:
    """The deployment and the factory that containers are of. `home` is the local cloud's folder."""

    site: str
    maker: str
    home: Path

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels of all containers and networks of this factory. Two local clouds may share one engine. [UNIT-1]"""
        home = hashlib.sha256(str(self.home).encode()).hexdigest()[:16]
        return {SITE: self.site, MAKER: self.maker, HOMES: home}


def body(order: Order, image: str, network: str, settings: Settings, of: Deployment) -> dict[str, Any]:
    """The engine's description of a container in a network. It has no secret: its users can read it. [SEC-1]"""
    return {
        "Image": image,
        "Hostname": order.id[-63:],
        "User": "0:0",
        "WorkingDir": "/",
        "Entrypoint": _entry(order),
        "Cmd": [],
        "Labels": {**of.labels, UNIT: order.id},
        "HostConfig": {
            **_limits(settings),
            **_privileges(),
            "NetworkMode": network,
            "Mounts": _mounts(order.url, of),
            "Tmpfs": {"/tmp": f"rw,exec,nosuid,nodev,mode=1777,size={settings.tmp}m"},
            "ExtraHosts": [f"{name}:127.0.0.1" for name in order.options.get("services", {})],
            "Init": True,
            "RestartPolicy": {"Name": "no"},
            "LogConfig": LOG,
        },
    }


def service_body(
    unit: str, name: str, said: Mapping[str, Any], worker: str, settings: Settings, of: Deployment
) -> dict[str, Any]:
    """The engine's description of a service's container, in the network of its worker's, whose engine's id is given."""
    return {
        "Image": said["image"],
        "Env": [f"{key}={value}" for key, value in said.get("env", {}).items()],
        "Labels": {**of.labels, UNIT: unit, SERVICE: name},
        "HostConfig": {
            **_limits(settings),
            **_privileges(),
            "NetworkMode": f"container:{worker}",
            "RestartPolicy": {"Name": "no"},
            "LogConfig": LOG,
        },
    }


def _entry(order: Order) -> list[str]:
    """The agent, which waits for services if there are any. What it needs to reach the local cloud does not wait."""
    agent = ["python3", AGENT, "run", "--config", CONFIG]
    command = ["python3", WAIT, WAITING, GO, *agent] if order.options.get("services") else agent
    port = loopback_port(order.url)
    return ["python3", RELAY, str(port), CLOUD, *command] if port else command


def _limits(settings: Settings) -> dict[str, Any]:
    memory = settings.memory * MIB
    return {
        "NanoCpus": round(settings.cpus * 1e9),
        "Memory": memory,
        "MemorySwap": memory,
        "PidsLimit": settings.pids,
    }


def _privileges() -> dict[str, Any]:
    """A job gets no more rights than the container has, by no program. [SEC-2]"""
    return {
        "Privileged": False,
        "CapDrop": ["ALL"],
        "CapAdd": list(CAPABILITIES),
        "SecurityOpt": ["no-new-privileges"],
    }


def _mounts(url: str, of: Deployment) -> list[dict[str, Any]]:
    """The agent's file and the local cloud's socket, both read-only. Raises Misconfigured if there is no socket."""
    mounts = [(write_agent(of.home), AGENT)]
    if loopback_port(url):
        path = of.home / CLOUD_SOCKET
        if not path.is_socket():
            raise Misconfigured(
                f"the local cloud has no socket {path}: start it again; if the path is longer than 100 characters, "
                "choose a shorter folder for its state"
            )
        mounts.append((path, CLOUD))
    return [{"Type": "bind", "Source": str(source), "Target": target, "ReadOnly": True} for source, target in mounts]


def loopback_port(url: str) -> int | None:
    """The port of a URL on this machine's loopback; None for any other URL."""
    parts = urlsplit(url)
    return (parts.port or 80) if parts.hostname in ("127.0.0.1", "localhost") else None


def write_agent(home: Path) -> Path:
    """Write the agent's file, unless it is there. It is not compiled: the image may have another Python."""
    path = home / f"agent-{agentfile.digest()[:16]}.pyz"
    if not path.exists():
        draft = path.with_suffix(f".{os.getpid()}-{os.urandom(4).hex()}")
        draft.write_bytes(agentfile.build())
        draft.chmod(0o644)
        draft.replace(path)
    return path


def files(order: Order) -> bytes:
    """A tar with the agent's configuration: it has the bootstrap key, so only the container's root reads it. [SEC-1]"""
    config = {"url": order.url, "worker": order.id, "key": order.key, "alone": True}
    programs = {path: Path(__file__).with_name(Path(path).name).read_bytes() for path in (RELAY, WAIT)}
    return _tar({CONFIG: json.dumps(config).encode(), **programs})


def go() -> bytes:
    """A tar with the file that lets the agent go on."""
    return _tar({GO: b""})


def _tar(contents: Mapping[str, bytes]) -> bytes:
    """A tar with files below the agent's folder, for root alone."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        folder = tarfile.TarInfo(HOME.lstrip("/"))
        folder.type, folder.mode = tarfile.DIRTYPE, 0o700
        tar.addfile(folder)
        for path, content in contents.items():
            _add(tar, path, content)
    return buffer.getvalue()


def _add(tar: tarfile.TarFile, path: str, content: bytes) -> None:
    entry = tarfile.TarInfo(path.lstrip("/"))
    entry.mode, entry.size = 0o600, len(content)
    tar.addfile(entry, io.BytesIO(content))
