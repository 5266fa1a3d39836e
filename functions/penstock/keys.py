"""What is done with keys that never leave the service that has them: a port, like those of ports.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from penstock.domain.identity import PublicKey


class Vault(Protocol):
    """Seals what rows may not have in clear. `of` says what it is of: only with the same words is it opened again."""

    def seal(self, secret: bytes, of: Mapping[str, str]) -> str:
        """A text that tells nobody anything who may not open it."""

    def open(self, sealed: str, of: Mapping[str, str]) -> bytes:
        """What was sealed. Raises ValueError for what was not sealed as this."""


class Signer(Protocol):
    """Signs identity tokens, with a key that never leaves where it is."""

    def kid(self) -> str:
        """What tokens call the key that signs now."""

    def sign(self, message: bytes) -> bytes:
        """An RS256 signature by that key."""

    def keys(self) -> Sequence[PublicKey]:
        """The public half of that key, and of those that signed before it or will after it."""
