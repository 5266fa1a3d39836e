"""Text from outside, made safe for a terminal. Every text of the command line passes through here, JSON does not.

Names, reasons and log lines come from jobs, also from those of strangers. A terminal obeys what they contain: it moves
the cursor, sets titles, writes to the clipboard, or shows letters in another order than they have.
"""

from __future__ import annotations

import os
import re
import sys
import webbrowser

CONTROL = frozenset(map(chr, (*range(32), 127, *range(128, 160), 0x2028, 0x2029)))
BIDIRECTIONAL = frozenset(map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A))))
"""Embeddings, overrides and isolates. Letters written from right to left need none."""

UNSAFE = CONTROL | BIDIRECTIONAL

SEQUENCES = re.compile(
    r"(\x1b\[[0-9;:]*m)"  # a colour or style
    r"|\x1b\[[0-?]*[ -/]*[@-~]"  # another control sequence
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?"  # a title, a link, the clipboard; a device's own commands
    r"|\x1b"
)
RESET = "\x1b[0m"


def clean(text: str, keep: str = "") -> str:
    """Text without characters that could move the cursor, change the terminal or reorder what is read."""
    if text.isprintable():  # as nearly all are; none of the unsafe ones is
        return text
    return "".join(each for each in text if each in keep or each not in UNSAFE)


def colours_only(text: str) -> str:
    """A line of a log: it may have colours, which end with it, and tabs. Everything else that a terminal obeys goes."""
    shown = clean(SEQUENCES.sub(lambda found: found[1] or "", text), keep="\x1b\t")
    return shown if "\x1b" not in shown or shown.endswith((RESET, "\x1b[m")) else shown + RESET


def can_ask() -> bool:
    """Whether a person can be asked a question, which is on standard error, and answer it."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def open_page(address: str) -> bool:
    """Open a page in a browser with windows, and say whether there is one. One in the terminal would take its place."""
    has_windows = sys.platform in ("darwin", "win32") or bool({"DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys())
    return has_windows and webbrowser.open(address)
