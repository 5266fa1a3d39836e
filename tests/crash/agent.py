"""A worker's agent, as far as it is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Agent:
    """One worker's agent: how far it is, and what it was told."""

    worker: str
    key: str
    job: str = ""
    did: int = 0
    cancelled: bool = False
    ended: bool = False
    output: str = ""
    reuse: bool = False
    inputs: bool = False
    turn: int = 0
    heard: int = -1  # the version of its worker's row when it was told to ask again

    @property
    def token(self) -> str:
        """The token that it chose for its present job, or for its next."""
        return self._token_of(self.turn)

    def _token_of(self, turn: int) -> str:
        return f"{self.worker:w<43}{turn:02d}"

    def hello(self) -> dict[str, str]:
        """Its first words: with its key, or with the token of its last job when it has cleaned up after that."""
        ask = {"worker": self.worker, "key": self.key, "token": self.token, "host": "here"}
        return ask | ({"previous": self._token_of(self.turn - 1), "cleaned": "nothing is left"} if self.turn else {})

    def rest(self) -> None:
        """Its job is over, and it is kept."""
        self.turn, self.did, self.job, self.cancelled, self.heard = self.turn + 1, 0, "", False, -1
