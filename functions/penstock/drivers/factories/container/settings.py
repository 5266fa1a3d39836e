"""The settings of a `container` factory, and their checks. docs/operators/containers.md describes them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from penstock.domain.jobfile.containers import check_image
from penstock.drivers.checks import sentences
from penstock.drivers.factories import images
from penstock.kernel import limits
from penstock.kernel.errors import Misconfigured, Unsatisfiable
from penstock.kernel.frozen import dataclass
from penstock.toml.checks import Place, clip, matching, number, record, wanted

DOCKER = "/var/run/docker.sock"
"""Where Docker listens."""

SHARED_NETWORKS = ("host", "container", "ns", "private", "default", "bridge", "slirp4netns", "pasta")
"""Networks of the engine's own: of the machine, of other containers, or used by everybody."""

EXAMPLE = '{ image = "registry.example.com/ci/python@sha256:…", memory = 4096 }'


@dataclass(frozen=True)
class Settings:
    """What the containers of a factory are. `memory` and `tmp` are in MiB; `network` is empty for one of each worker.

    `images` are those that jobs may name instead of `image`: an image by its digest, or the name of one without it, or
    the beginning of names, up to a slash, and `*`. `services` is how many each job may have.
    """

    image: str
    images: tuple[str, ...] = ()
    services: int = 0
    socket: str = ""
    cpus: float = 1.0
    memory: int = 2048
    tmp: int = 512
    pids: int = 512
    network: str = ""


def read(given: Mapping[str, Any]) -> Settings:
    """The settings in a site's table. Raises Misconfigured."""
    top = Place(("container",))
    values = _keys(given, top)
    if top.faults:
        raise Misconfigured("; ".join(sentences(top)))
    return Settings(**values)


def complaints(given: Mapping[str, Any]) -> Sequence[str]:
    """What is wrong with settings, one sentence each."""
    top = Place(("container",))
    _keys(given, top)
    return sentences(top)


def objections(options: Mapping[str, Any], given: Mapping[str, Any]) -> Sequence[str]:
    """What is wrong with what a job says of its containers, by a factory's settings."""
    return _wrong(options, read(given))


def image_of(settings: Settings, options: Mapping[str, Any]) -> str:
    """The image of a worker: the job's, or the site's. Raises Unsatisfiable if the site takes what the job says no
    more. [SEC-2]
    """
    wrong = _wrong(options, settings)
    if wrong:
        raise Unsatisfiable("; ".join(wrong))
    return str(options.get("image") or settings.image)


def _wrong(options: Mapping[str, Any], settings: Settings) -> Sequence[str]:
    count, most = len(options.get("services", {})), settings.services
    if count > most:
        return [f"a job may have {f'at most {most} services' if most else 'no services'} there, not {count}"]
    return images.denied(options, settings.images)


def socket_of(settings: Settings) -> str:
    """The engine's socket: that of the settings, else that of this user's Podman if there is one, else Docker's."""
    rootless = f"/run/user/{os.getuid()}/podman/podman.sock"
    return settings.socket or (rootless if Path(rootless).exists() else DOCKER)


def _cpus(value: object, place: Place) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        wanted("a number of CPUs", value, place, "like 2 or 0.5")
        return 1.0
    if not 0.01 <= value <= 1024:
        place.fault(f"{place.label} must be from 0.01 to 1024")
    return float(value)


_network_name = matching(r"[A-Za-z0-9][A-Za-z0-9_.-]*", "the name of a network", 'like "ci", or "none" for no network')


def _network(value: object, place: Place) -> str:
    """Checks a network. One that others use, too, is refused: a job could reach them. [SEC-2]"""
    if isinstance(value, str) and value.partition(":")[0] in SHARED_NETWORKS:
        hint = 'leave it out for a network of each worker\'s own, or name one that you made, or "none"'
        place.fault(f"{place.label}: jobs may not have the network `{clip(value)}`", hint)
        return value
    found: str = _network_name(value, place)
    return found


_keys = record(
    {"image": check_image},
    {
        "images": images.check_allowed,
        "services": number(0, limits.SERVICES),
        "socket": matching(r"/\S{1,106}", "the path of a unix socket", 'like "/run/user/1000/podman/podman.sock"'),
        "cpus": _cpus,
        "memory": number(64, 1 << 24),
        "tmp": number(1, 1 << 24),
        "pids": number(16, 1 << 20),
        "network": _network,
    },
    EXAMPLE,
)
