"""Node for jsii, on which the CDK runs. A machine without Node uses the one pinned in requirements.txt."""

from __future__ import annotations

import os

from penstock.console import node


def use_bundled() -> None:
    """Set JSII_NODE to the pinned Node, unless it is set. Must run before aws_cdk is imported."""
    found = node.bundled()
    if found:
        os.environ.setdefault("JSII_NODE", str(found))
