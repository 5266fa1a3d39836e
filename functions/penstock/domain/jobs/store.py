"""The job store: values that a job and its users exchange while it runs, each under a name.

A value that was secret once stays secret: its row has only the sealed form, and is deleted when the job settles.
[SEC-1]
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import ClassVar

from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Key, Row

_NAME = r"[A-Za-z0-9_.-]{1,64}"


@dataclass(frozen=True, kw_only=True)
class Value(Row):
    """One value: in clear, or sealed if it is secret. `by`: the user who set it, "" for the job itself."""

    kind: ClassVar[str] = "value"
    is_recreated: ClassVar[bool] = True
    job: str
    name: str
    text: str = ""
    sealed: str = ""
    by: str = ""
    time: datetime

    @property
    def key(self) -> Key:
        return value_key(self.job, self.name)

    @property
    def is_secret(self) -> bool:
        """Whether only the job may read it."""
        return bool(self.sealed)


def value_key(job: str, name: str) -> Key:
    """The key of a value's row."""
    return Key(f"job#{job}", f"value#{name}")


def is_name(text: str) -> bool:
    """Whether a text can name a value."""
    return re.fullmatch(_NAME, text) is not None


def sealed_as(job: str, name: str) -> Mapping[str, str]:
    """The context that a secret value is sealed with: it opens for this job and name only. [SEC-1]"""
    return {"job": job, "value": name}
