"""What a site may say of a `libcloud` factory: docs/operators/libcloud.md has it as a table, keys.py checks it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Settings:
    """What the machines of a factory are, and where."""

    provider: str
    sizes: tuple[str, ...]
    image: str | None = None
    locations: tuple[str, ...] = ()
    credentials: Mapping[str, str] = field(default_factory=dict)
    arguments: Mapping[str, Any] = field(default_factory=dict)
    create: Mapping[str, Any] = field(default_factory=dict)
    boot_argument: str | None = None
    tags_argument: str | None = None
    ssh_key: str | None = None
    prefix: str = "penstock"
    user_data: str = ""
    python: str = "python3"
    linger: int = 60
    lag: int = 60
