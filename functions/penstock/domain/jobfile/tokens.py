"""TOML cut into tokens: only as much as finding positions needs.

Wrong TOML gives tokens too. No pattern can fail late, so the time is linear whatever the text.
"""

import re
from typing import NamedTuple

__all__ = ["Token", "tokenise", "too_deep"]

NESTING = 32
KEY_PARTS = 32

PIECES = re.compile(
    r"""
      (?P<space>[ \t]+|\#[^\n]*)
    | (?P<newline>\n)
    | (?P<string>\"{3}(?:\\.|[^\\])*?(?:\"{3,5}|\\?\Z) | '{3}.*?(?:'{3,5}|\Z)
        | \"(?:\\[^\n]|[^\"\\\n])*\"? | '[^'\n]*'?)
    | (?P<mark>[\[\]{},=.])
    | (?P<bare>[^\s\[\]{},=.\#\"']+|.)
    """,
    re.VERBOSE | re.DOTALL,
)


class Token(NamedTuple):
    kind: str
    text: str
    offset: int


def tokenise(text: str) -> list[Token]:
    """All tokens but white space and comments, and one `end` after the last."""
    found = (Token(piece.lastgroup or "", piece[0], piece.start()) for piece in PIECES.finditer(text))
    return [*(token for token in found if token.kind != "space"), Token("end", "", len(text))]


def too_deep(tokens: list[Token]) -> int | None:
    """The offset where nesting gets absurd, or None.

    The TOML parser recurses per bracket and takes time quadratic in a key's parts: both need a bound.
    """
    depth = parts = 0
    for token in tokens:
        if token.kind == "mark":
            depth = max(0, depth + (token.text in "[{") - (token.text in "]}"))
            parts = parts + 1 if token.text == "." else 0
        elif token.kind == "newline":
            parts = 0
        if depth > NESTING or parts > KEY_PARTS:
            return token.offset
    return None
