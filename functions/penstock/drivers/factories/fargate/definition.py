"""Task definitions: what of a task RunTask cannot say, such as its image and size.

A definition's family is named by a digest of what is in it, so each content has a family of its own, and who needs one
looks for it by name. docs/decisions/0105-task-definitions-are-named-by-what-is-in-them.md

A definition has no secret, and gives a task no role: whoever runs in it has no credentials of AWS. [SEC-2]
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from penstock.drivers.factories.aws.tags import Tags
from penstock.drivers.factories.fargate.settings import ARCHITECTURES, Settings
from penstock.kernel.frozen import dataclass

CONTAINER = "worker"
"""The name of the one container of a task."""

DROPPED = ("AUDIT_WRITE", "FSETID", "MKNOD", "NET_BIND_SERVICE", "NET_RAW", "SETFCAP", "SETPCAP", "SYS_CHROOT")
"""The kernel's capabilities that containers on Fargate have, except for those with which the agent makes the jobs' user
and acts as it: CHOWN, DAC_OVERRIDE, FOWNER, KILL, SETGID, SETUID.
"""

STREAMS = "penstock"
"""The beginning of the names of log streams."""

PREFIX = "penstock"


@dataclass(frozen=True)
class Families:
    """The names of a factory's families. A task's family tells whose it is, also when its tags are gone. [UNIT-1]"""

    site: str
    factory: str

    @staticmethod
    def by(tags: Tags) -> Families:
        """Those of the factory that has these tags."""
        return Families(f"{PREFIX}_{re.sub('[^A-Za-z0-9-]', '-', tags.site)}_", digest_of(tags.factory))

    @property
    def prefix(self) -> str:
        """What the names of this factory's begin with; those of the whole site begin with `site`."""
        return f"{self.site}{self.factory}_"

    def maker(self, family: str) -> str:
        """The digest of the name of the factory that has a family, if it is of this site."""
        return family.removeprefix(self.site).partition("_")[0]


def digest_of(factory: str) -> str:
    """What stands for a factory's name. penstock/domain/account.py knows factories by it too."""
    return hashlib.sha256(factory.encode()).hexdigest()[:8]


def definition(image: str, settings: Settings, families: Families, tags: Tags) -> dict[str, Any]:
    """The parameters of RegisterTaskDefinition."""
    content = {
        "requiresCompatibilities": ["FARGATE"],
        "networkMode": "awsvpc",
        "cpu": str(int(settings.cpu * 1024)),
        "memory": str(settings.memory),
        "runtimePlatform": {"cpuArchitecture": ARCHITECTURES[settings.arch], "operatingSystemFamily": "LINUX"},
        "containerDefinitions": [_container(image, settings)],
        **({"executionRoleArn": settings.execution_role} if settings.execution_role else {}),
        **({"ephemeralStorage": {"sizeInGiB": settings.storage}} if settings.storage else {}),
    }
    name = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]
    return {"family": f"{families.prefix}{name}", **content, "tags": pairs({**settings.tags, **tags.all})}


def _container(image: str, settings: Settings) -> dict[str, Any]:
    """The one container. Its root makes the jobs' user; it gets no rights that a container need not have."""
    return {
        "name": CONTAINER,
        "image": image,
        "essential": True,
        "memory": settings.memory,
        "user": "0",
        "entryPoint": [settings.python, "-c", program()],
        "linuxParameters": {"initProcessEnabled": True, "capabilities": {"drop": list(DROPPED)}},
        **(_logs(settings) if settings.log_group else {}),
    }


def _logs(settings: Settings) -> dict[str, Any]:
    options = {
        "awslogs-group": settings.log_group,
        "awslogs-region": settings.region,
        "awslogs-stream-prefix": STREAMS,
    }
    return {"logConfiguration": {"logDriver": "awslogs", "options": options}}


def program() -> str:
    """The source of what a container begins with."""
    return Path(__file__).with_name("boot.py").read_text(encoding="utf-8")


def pairs(tags: Mapping[str, str]) -> list[dict[str, str]]:
    """Tags as ECS wants them."""
    return [{"key": key, "value": value} for key, value in tags.items()]
