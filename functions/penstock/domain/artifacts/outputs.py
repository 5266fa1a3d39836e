"""Outputs: what a job calls the files that it produced. It owns each of them once the bytes have arrived."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import ClassVar

from penstock.domain.artifacts.artifacts import Name
from penstock.kernel.rows import Key


@dataclass(frozen=True, kw_only=True)
class Output(Name):
    """One file. `size` in bytes, `sha256` in hex, `path` as the job knew it.

    `is_committed` says that its bytes have arrived, and that the job owns the artifact: not before.
    """

    kind: ClassVar[str] = "output"
    id: str
    attempt: int
    path: str
    size: int
    sha256: str
    time: datetime
    is_committed: bool = False

    @property
    def key(self) -> Key:
        return output_key(self.job, self.id)


def output_key(job: str, output: str) -> Key:
    """Where an output's row is."""
    return Key(f"job#{job}", f"output#{output}")


def commit(output: Output) -> Output:
    """An output whose bytes have arrived."""
    return replace(output, is_committed=True)
