"""Files that are sent with a job, and that it keeps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from penstock.wire.shapes import Bound

JobState = Literal["waiting", "queued", "acquiring", "running", "settled"]
JobOutcome = Literal["succeeded", "failed", "cancelled", "errored"]


@dataclass(frozen=True)
class NewInput:
    """A file to be sent with a job: its name, its size in bytes, its SHA-256 in hex."""

    name: Annotated[str, Bound(most=128)]
    size: Annotated[int, Bound(most=10**15)]
    sha256: Annotated[str, Bound(most=64)]


@dataclass(frozen=True)
class InputUpload:
    """Leave to send a file: how, where, and with which headers. `there` says that it is there already."""

    there: bool
    method: str
    url: str
    headers: dict[str, str]


@dataclass(frozen=True)
class InputName:
    """A file that was sent."""

    name: Annotated[str, Bound(most=128)]


@dataclass(frozen=True)
class InputView:
    """A file that is sent with a job. `until` is when it must be there; size and digest are null until it is."""

    name: str
    there: bool
    size: int | None
    sha256: str | None
    until: str


@dataclass(frozen=True)
class InputList:
    """The files that are sent with a job."""

    items: list[InputView]


@dataclass(frozen=True)
class OutputView:
    """A file that a job produced. `size` in bytes, `sha256` in hex."""

    id: str
    path: str
    size: int
    sha256: str
    time: str


@dataclass(frozen=True)
class OutputPage:
    """Some outputs."""

    items: list[OutputView]
    next: str | None


@dataclass(frozen=True)
class SignOutput:
    """Leave to fetch an output for some seconds, at most 3600."""

    expires_in: Annotated[int, Bound(least=1, most=3600)] = 3600


@dataclass(frozen=True)
class SignedOutput:
    """A URL that is good for `expires_in` seconds."""

    url: str
    size: int
    sha256: str
    expires_in: int
