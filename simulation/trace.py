"""What happened in a run: a hash to compare runs, and lines to read."""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta


class Story:
    """Every line goes into the hash; the lines themselves are kept."""

    def __init__(self, start: datetime) -> None:
        self.lines: list[str] = []
        self._start = start
        self._hash = hashlib.blake2b(digest_size=12)
        self._names: dict[str, str] = {}

    def tell(self, now: datetime, actor: str, what: str) -> None:
        """Add a line: when, who, what."""
        line = f"{_clock(now - self._start)}  {actor:<28} {what}"
        self._hash.update(line.encode())
        self.lines.append(line)

    def call(self, name: str, short: str) -> None:
        """Write a long id by a short name from here on, in `told`."""
        self._names[name] = short

    def digest(self) -> str:
        """The hash of the lines so far."""
        return self._hash.hexdigest()

    def told(self, last: int = 0) -> list[str]:
        """The lines, or the last ones, with short names for ids."""
        text = "\n".join(self.lines[-last:])
        for name, short in self._names.items():
            text = text.replace(name, short)
        return text.splitlines()


def _clock(since: timedelta) -> str:
    seconds = since.total_seconds()
    days, hours = divmod(int(seconds) // 3600, 24)
    return f"{f'{days}d ' if days else ''}{hours:02d}:{int(seconds) // 60 % 60:02d}:{seconds % 60:06.3f}"
