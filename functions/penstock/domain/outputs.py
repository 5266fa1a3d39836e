"""Outputs: files that a job produced. The row names them, the object store has the bytes.

creating ──commit──▶ created ──(nobody owns it)──▶ destroyed
    └──deadline──▶ destroyed
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import ClassVar

from penstock.domain.rows import Key, Row

UPLOAD_WITHIN = timedelta(hours=12)
"""How long an upload may be under way; after that its row and its bytes are deleted. [ART-2]"""


@dataclass(frozen=True, kw_only=True)
class Output(Row):
    """One file. `size` in bytes, `sha256` in hex, `path` as the job knew it.

    `expired` says that its bytes came too late and are being deleted: from here on nobody commits it.
    """

    kind: ClassVar[str] = "output"
    id: str
    job: str
    attempt: int
    path: str
    size: int
    sha256: str
    time: datetime
    due: datetime | None
    expired: bool = False

    @property
    def key(self) -> Key:
        return output_key(self.job, self.id)

    @property
    def deadline(self) -> datetime | None:
        return self.due

    @property
    def object_name(self) -> str:
        """The name of the object that holds the bytes."""
        return f"outputs/{self.job}/{self.id}"

    @property
    def is_committed(self) -> bool:
        """Whether the bytes are known to be there."""
        return self.due is None


def output_key(job: str, output: str) -> Key:
    """Where an output's row is."""
    return Key(f"job#{job}", f"output#{output}")


def commit(output: Output) -> Output:
    """An output whose bytes have arrived."""
    return replace(output, due=None)


def expire(output: Output) -> Output:
    """An output whose bytes are about to be deleted. [ART-1]"""
    return replace(output, expired=True)
