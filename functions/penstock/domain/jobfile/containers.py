"""The image of a job's worker, where its target lets jobs name one: always by its digest."""

from __future__ import annotations

import re

from penstock.domain.jobfile.sections import REFERENCE
from penstock.toml.checks import Place, clip, wanted

IMAGE = re.compile(r"[a-z0-9][A-Za-z0-9.-]{0,99}(:[0-9]{1,5})?(/[a-z0-9][a-z0-9._-]{0,99}){0,9}@sha256:[0-9a-f]{64}")
"""The registry, the name and the digest of an image."""


def check_image(value: object, place: Place) -> str:
    """An image. Only a digest always names the same one."""
    if not isinstance(value, str):
        wanted("an image by its digest", value, place)
        return ""
    if not IMAGE.fullmatch(value):
        hint = "give name@sha256:… with 64 hex digits, which `docker image inspect` and `podman image inspect` show"
        place.fault(f"{place.label}: `{clip(value)}` does not name an image by its digest", hint)
    return value


def check_own_image(value: object, place: Place) -> str:
    """The image that a job names, in which a value of its matrix may stand: that is checked when it is filled in."""
    is_open = isinstance(value, str) and REFERENCE.search(value)
    return str(value) if is_open else check_image(value, place)
