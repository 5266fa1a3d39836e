"""How a secret may stand where it should not."""

from __future__ import annotations

import base64


def forms(secret: str) -> list[str]:
    """How a secret may stand somewhere, if nobody sealed it."""
    return [secret, secret.encode().hex(), base64.b64encode(secret.encode()).decode().rstrip("=")[:-1]]
