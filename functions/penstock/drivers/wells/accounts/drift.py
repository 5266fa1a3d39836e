"""What differs between two looks at a thing. A look is a digest, and if the cleaner says so, one for each part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.toml.checks import clip

PARTS = 40
PART_CHARS = 64
TOLD = 10


@dataclass(frozen=True)
class Look:
    """How a thing is: `digest` is all of it, `parts` are for people to see what differs."""

    digest: str
    parts: Mapping[str, str] = field(default_factory=dict)

    def noted(self) -> dict[str, Any]:
        """As it is kept in the unit's row."""
        return {"digest": self.digest, "parts": dict(self.parts)}


def differs(before: Look, now: Look) -> str | None:
    """What differs, in words; None when nothing does. The digest decides."""
    if before.digest == now.digest:
        return None
    changed = [name for name in before.parts if name in now.parts and before.parts[name] != now.parts[name]]
    told = [f"{name} has changed" for name in changed]
    told += [f"{name} is gone" for name in before.parts if name not in now.parts]
    told += [f"{name} is new" for name in now.parts if name not in before.parts] if before.parts else []
    more = f" and {len(told) - TOLD} more" if len(told) > TOLD else ""
    words = clip(", ".join(told[:TOLD]), 600) + more
    return words or f"its digest is {clip(now.digest, 20)}, and was {clip(before.digest, 20)}"
