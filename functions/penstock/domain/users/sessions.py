"""Sessions: tokens that a browser has in a cookie while somebody is signed in to the console. [SEC-2]

docs/decisions/0086-a-session-is-a-token.md
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from penstock.kernel.frozen import dataclass

LASTS = timedelta(hours=12)
"""How long a session lasts at most."""


@dataclass(frozen=True)
class Session:
    """That a token is a session. `gives` bounds the tokens of machines whose logins it approves; None: nothing does."""

    gives: datetime | None = None


def expiry(now: datetime, most: datetime | None) -> datetime:
    """When a session ends that begins now, made from a token that expires at `most`. [SEC-2]"""
    usual = now + LASTS
    return min(usual, most) if most else usual


BROWSERS: Mapping[str, str] = {"Edg": "Edge", "Firefox": "Firefox", "Chrom": "Chrome", "Safari": "Safari"}
"""Browsers by what they call themselves. The order counts: many also call themselves by another's name."""

SYSTEMS: Mapping[str, str] = {
    "Android": "Android", "iPhone": "an iPhone", "iPad": "an iPad", "Windows": "Windows", "Mac OS": "macOS",
    "Linux": "Linux",
}  # fmt: skip


def name_for(agent: str) -> str:
    """What lists call a session, by what its browser says of itself. Nothing of that text is repeated. [SEC-1]"""
    browser = next((name for mark, name in BROWSERS.items() if mark in agent), "a browser")
    system = next((f" on {name}" for mark, name in SYSTEMS.items() if mark in agent), "")
    return f"console in {browser}{system}"
