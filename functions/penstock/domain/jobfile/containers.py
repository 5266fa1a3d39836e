"""What a job says of containers: the image of its worker's, and services, which are containers beside it.

image = "docker.io/library/rust@sha256:…"          always by its digest

[services.db]                                      the job reaches it as the host `db`
image = "docker.io/library/postgres@sha256:…"
env = { POSTGRES_HOST_AUTH_METHOD = "trust" }
ready = "pg_isready -U postgres"                   the job begins when this succeeds in the service's container
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import field, replace
from functools import partial
from typing import Any

from penstock.domain.jobfile.sections import REFERENCE, check_env, fill
from penstock.kernel import limits
from penstock.kernel.frozen import dataclass
from penstock.toml.checks import Place, clip, entries, matching, record, text, wanted

IMAGE = r"[a-z0-9][A-Za-z0-9.-]{0,99}(:[0-9]{1,5})?(/[a-z0-9][a-z0-9._-]{0,99}){0,9}@sha256:[0-9a-f]{64}"
"""The registry, the name and the digest of an image."""

SERVICE_EXAMPLE = '[services.db] with image = "docker.io/library/postgres@sha256:…"'
RESERVED = ("localhost",)
"""What no service can be called, as its name becomes that of a host."""


@dataclass(frozen=True)
class Service:
    """A container beside the worker's. `ready` is a command that succeeds in it once it is ready; "" for none."""

    name: str
    image: str
    env: Mapping[str, str] = field(default_factory=dict)
    ready: str = ""

    @property
    def told(self) -> dict[str, Any]:
        """What its table in a job file says."""
        more = {"env": dict(self.env), "ready": self.ready}
        return {"image": self.image, **{key: value for key, value in more.items() if value}}


def check_image(value: object, place: Place) -> str:
    """An image. Only a digest always names the same one."""
    if not isinstance(value, str):
        wanted("an image by its digest", value, place)
        return ""
    if not re.fullmatch(IMAGE, value):
        hint = "give name@sha256:… with 64 hex digits, which `docker image inspect` and `podman image inspect` show"
        place.fault(f"{place.label}: `{clip(value)}` does not name an image by its digest", hint)
    return value


def check_own_image(value: object, place: Place) -> str:
    """The image that a job names, in which a value of its matrix may stand: that is checked when it is filled in."""
    is_open = isinstance(value, str) and re.search(REFERENCE, value)
    return str(value) if is_open else check_image(value, place)


def check_services(value: object, place: Place) -> tuple[Service, ...]:
    """The services of a job, in the order of the file."""
    found = []
    for name, table in entries(value, place, limits.SERVICES, f"tables like {SERVICE_EXAMPLE}"):
        _service_name(name, place / name)
        if name in RESERVED:
            (place / name).fault(f"no service can be called `{name}`", "its name becomes that of a host", on_key=True)
        found.append(Service(name, **{"image": "", **_service_table(table, place / name)}))
    size = len(json.dumps([each.told for each in found]))
    if size > limits.RESOURCE_OPTIONS_BYTES:
        most = limits.RESOURCE_OPTIONS_BYTES
        place.fault(f"{place.label} takes {size} bytes as JSON; it may take at most {most}")
    return tuple(found)


def fill_service(service: Service, values: Mapping[str, str]) -> Service:
    """A service with the values of one combination of a matrix."""
    env = {name: fill(content, values) for name, content in service.env.items()}
    return replace(service, image=fill(service.image, values), env=env, ready=fill(service.ready, values))


_service_name = matching(
    "[a-z][a-z0-9-]{0,29}", "the name of a service", "lower-case letters, digits and -: it is a host's"
)

_service_table = record(
    {"image": check_own_image},
    {"env": check_env, "ready": partial(text, most=limits.SERVICE_READY_CHARS)},
    SERVICE_EXAMPLE,
)
