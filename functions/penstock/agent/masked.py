"""What one stream says, without the secrets in it, however it comes in pieces. [SEC-1]"""

from __future__ import annotations

from collections.abc import Callable

from .clock import now
from .mask import FOLDED, Mask, hide

QUIET_SECONDS = 0.2
"""How long lines wait that may go on in the next: as often, at most, lines are sent."""

Give = Callable[[bytes, bool], None]
"""Takes bytes, and whether they are the last."""


class Masked:
    """Passes bytes on, whole lines at once. It keeps what may be the beginning of a secret until that is known.

    That is the end of a line that has no end yet, and lines that look like Base64 or hex broken into lines.
    """

    def __init__(self, mask: Mask, give: Give) -> None:
        self._mask, self._give = mask, give
        self._kept = bytearray()
        self._covered = 0  # how much of what is kept is known to be secret
        self._fed = now()

    def feed(self, data: bytes, final: bool = False) -> None:
        """Take in bytes, and pass on what is known to be no secret's beginning."""
        self._fed = now()
        self._kept += data
        if final:
            self._pass(len(self._kept), final)
        elif data:
            self._pass(max(self._whole(), self._surely()))

    def look(self) -> None:
        """Pass on whole lines when no more have come for a while."""
        if self._kept and now() - self._fed >= QUIET_SECONDS:
            self._pass(self._kept.rfind(b"\n") + 1)

    def _whole(self) -> int:
        """Return where the last line ends that does not look as if it went on in the next."""
        end = at = self._kept.rfind(b"\n") + 1
        length = 0
        while at and length < self._mask.longest_folded:
            start = self._kept.rfind(b"\n", 0, at - 1) + 1
            line = bytes(self._kept[start : at - 1])
            if not FOLDED.fullmatch(line):
                break
            length += len(line.strip())
            at = start
        return at if length else end

    def _surely(self) -> int:
        """Return the end of what is no secret's beginning, of a line without end. It is looked for now and then."""
        rest = len(self._kept) - self._kept.rfind(b"\n") - 1
        longest = self._mask.longest
        return len(self._kept) - longest if rest > 2 * longest + 4096 else 0

    def _pass(self, end: int, final: bool = False) -> None:
        if not (end or final):
            return
        data = bytes(self._kept)
        spans = self._mask.spans(data)
        if self._covered:
            spans = [(0, max([self._covered, *(to for start, to in spans if start <= self._covered)]))] + [
                span for span in spans if span[0] > self._covered
            ]
        out = [(start, min(to, end)) for start, to in spans if start < end]
        self._covered = max([0, *(to - end for start, to in spans if start < end < to)])
        del self._kept[:end]
        self._give(hide(data[:end], out), final)
