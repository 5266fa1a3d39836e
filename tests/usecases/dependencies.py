"""Jobs that depend on others."""

from __future__ import annotations


def depends(*priors: str, **more: object) -> dict[str, object]:
    return {"dependencies": {f"n{number}": {"job": prior, **more} for number, prior in enumerate(priors)}}
