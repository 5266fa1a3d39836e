"""The browser that looks at the console: for the pictures in the documentation, and for tests/web."""

from __future__ import annotations

import os
import shutil

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
"""The browser's program; None if this machine has none."""

QUIET = [
    "--no-sandbox",  # CI runs as root
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
"""A browser that asks nobody but the page's own origin."""

PHONE, DESK, WALL = (360, 740), (1280, 900), (2560, 1300)
"""Widths and heights, in pixels, of a phone, a laptop and the screen above the benches."""
