"""What a server sends with the console: CloudFront does (infra/console.py), and the local cloud (local/pages.py).

[SEC-2] The console runs its own scripts and no others, connects to nothing but its service and its bucket, and no
foreign page frames it. What the API replies is no page: a browser that opens it runs nothing of it.
"""

from __future__ import annotations

import mimetypes
from collections.abc import Mapping
from pathlib import PurePosixPath

FOREVER = "public, max-age=31536000, immutable"
"""How long files in assets/ are cached: their names have hashes of their content."""

FRESH = "no-cache"
"""All others are asked for each time, and not sent again if they are the same."""

ASSETS = "assets/"
"""The folder of the files that never change."""

NOT_A_PAGE = "default-src 'none'; frame-ancestors 'none'; sandbox"
"""The policy of what the API and the bucket reply."""

TYPES = {
    ".js": "text/javascript", ".css": "text/css", ".html": "text/html", ".svg": "image/svg+xml", ".woff2": "font/woff2",
    ".webmanifest": "application/manifest+json",
}  # fmt: skip
"""What a machine's own list may have otherwise. With `nosniff`, a browser takes nothing of a wrong type."""

TEXT = ("text/", "image/svg")

SECURITY: Mapping[str, str] = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
}
"""What is sent with every file of the console, besides its policy."""


def policy(*bucket: str) -> str:
    """The console's content security policy. `bucket`: the origins of its files, if they are not the console's."""
    connect = " ".join(["'self'", *bucket])
    return (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
        f"connect-src {connect}; manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )


def caching(name: str) -> str:
    """The Cache-Control of a file of the build."""
    return FOREVER if name.startswith(ASSETS) else FRESH


def kind(name: str) -> str:
    """The Content-Type of a file of the build."""
    found = TYPES.get(PurePosixPath(name).suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream"
    return f"{found}; charset=utf-8" if found.startswith(TEXT) else found


def is_file(path: str) -> bool:
    """Whether a path, such as `/icon.svg`, names a file of the build: one in assets/, or beside index.html.

    All others are pages, which index.html shows. Names in them may have dots: /pools/target/linux-24.04.
    """
    name = path.lstrip("/")
    return name.startswith(ASSETS) or ("/" not in name and bool(PurePosixPath(name).suffix))
