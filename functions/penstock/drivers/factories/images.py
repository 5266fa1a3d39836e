"""The images that a site lets jobs name instead of its factory's own: the setting `images`. [SEC-2]"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from penstock.domain.jobfile.containers import IMAGE, check_image
from penstock.toml.checks import Place, clip, listed, matching

EVERYTHING_BELOW = "/*"
"""What ends an entry of `images` that stands for all images whose names begin so."""

MAX_IMAGES = 100


def denied(options: Mapping[str, Any], allowed: Sequence[str]) -> list[str]:
    """Why jobs may not name the images that one names, a sentence for each that they may not."""
    return [_denied(image, allowed) for image in _named(options) if not is_allowed(image, allowed)]


def _named(options: Mapping[str, Any]) -> list[str]:
    """The images that a job names."""
    own = [options["image"]] if "image" in options else []
    return [*own, *(each["image"] for each in options.get("services", {}).values())]


def _denied(image: str, allowed: Sequence[str]) -> str:
    if not allowed:
        return "jobs may not name images there: leave them out, or choose another target"
    return f"the site does not let jobs name the image {clip(image, 200)}; it allows: {', '.join(allowed)}"


def is_allowed(image: str, allowed: Sequence[str]) -> bool:
    """Whether jobs may name an image. [SEC-2]"""
    name = image.partition("@")[0]
    named = any(
        each in (image, name) or (each.endswith(EVERYTHING_BELOW) and name.startswith(each[:-1])) for each in allowed
    )
    return named and re.fullmatch(IMAGE, image) is not None


def _entry(value: object, place: Place) -> str:
    """Checks an entry of `images`."""
    if isinstance(value, str) and "@" in value:
        return check_image(value, place)
    found: str = _image_names(value, place)
    return found


_image_names = matching(
    r"[a-z0-9][A-Za-z0-9.-]{0,99}(:[0-9]{1,5})?(/[a-z0-9][a-z0-9._-]{0,99}){0,9}(/\*)?",
    "a name of images",
    'like "docker.io/library/python", "ghcr.io/acme/*", or one image by its digest',
)

check_allowed = listed(_entry, MAX_IMAGES, "images")
"""Checks the setting."""
