"""Sessions: when they end, and what lists call them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from penstock.domain.users import sessions

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HALF_A_DAY = NOW + timedelta(hours=12)


@pytest.mark.parametrize(
    ("most", "ends"),
    [
        (None, HALF_A_DAY),
        (NOW + timedelta(days=90), HALF_A_DAY),
        (HALF_A_DAY, HALF_A_DAY),
        (NOW + timedelta(hours=1), NOW + timedelta(hours=1)),
    ],
)
def test_a_session_ends_after_half_a_day_or_with_what_it_is_made_from(most: datetime | None, ends: datetime) -> None:
    """SEC-2."""
    assert sessions.expiry(NOW, most) == ends


LINUX = "Mozilla/5.0 (X11; Linux x86_64"
APPLE = "AppleWebKit/537.36 (KHTML, like Gecko)"


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        (f"{LINUX}; rv:140.0) Gecko/20100101 Firefox/140.0", "console in Firefox on Linux"),
        (f"{LINUX}) {APPLE} HeadlessChrome/156.0 Safari/537.36", "console in Chrome on Linux"),
        (f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) {APPLE} Chrome/1 Safari/5 Edg/1", "console in Edge on Windows"),
        (f"Mozilla/5.0 (Linux; Android 15; K) {APPLE} Chrome/156.0 Safari/1", "console in Chrome on Android"),
        ("Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15) Version/18 Safari/605", "console in Safari on macOS"),
        ("Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Safari/604", "console in Safari on an iPhone"),
        ("Mozilla/5.0 (iPad; CPU OS 18_0 like Mac OS X) Safari/604", "console in Safari on an iPad"),
        ("\x1b[2J<script>alert(1)</script>", "console in a browser"),
        ("", "console in a browser"),
    ],
)
def test_a_session_is_called_by_browser_and_system_and_repeats_nothing(agent: str, name: str) -> None:
    assert sessions.name_for(agent) == name
