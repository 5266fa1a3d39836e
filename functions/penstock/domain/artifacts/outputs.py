"""Outputs: the files that a job produced. The job owns each of them once its bytes have arrived."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import ClassVar

from penstock.domain.artifacts.artifacts import Name
from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Key


@dataclass(frozen=True, kw_only=True)
class Output(Name):
    """A file that a job produced. `size` in bytes, `sha256` in hex, `path` as the job named it.

    `is_committed`: its bytes have arrived, and from then on the job owns the artifact.
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
    """The key of an output's row."""
    return Key(f"job#{job}", f"output#{output}")


def commit(output: Output) -> Output:
    """An output whose bytes have arrived."""
    return replace(output, is_committed=True)
