"""Files that are sent with a job, and that it keeps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from penstock.wire.shapes import Bound

JobState = Literal["waiting", "queued", "acquiring", "running", "settled"]
JobOutcome = Literal["succeeded", "failed", "cancelled", "errored"]


@dataclass(frozen=True)
class NewInput:
    """A file to be sent with a job: its name, its size in bytes, its SHA-256 in hex.

    With `composite` it is sent in parts: the SHA-256, in hex, of the SHA-256 of each, one after the other, as bytes.
    """

    name: Annotated[str, Bound(most=128)]
    size: Annotated[int, Bound(most=10**15)]
    sha256: Annotated[str, Bound(most=64)]
    composite: Annotated[str, Bound(most=64)] = ""


@dataclass(frozen=True)
class InputUpload:
    """Leave to send a file: how, where, and with which headers. `there` says that it is there already.

    Where `part_bytes` is not 0, it is sent in parts of so many bytes, of which the last one may be shorter.
    """

    there: bool
    method: str
    url: str
    headers: dict[str, str]
    part_bytes: int


@dataclass(frozen=True)
class InputParts:
    """Parts of an input that are to be sent: the number of the first, from 1 on, and the SHA-256 of each, in hex."""

    name: Annotated[str, Bound(most=128)]
    first: Annotated[int, Bound(most=10_000, least=1)]
    sha256: list[str]


@dataclass(frozen=True)
class PartUpload:
    """Leave to send a part of a file. `there` says that it is there already."""

    number: int
    there: bool
    method: str
    url: str
    headers: dict[str, str]


@dataclass(frozen=True)
class PartUploads:
    """Leave to send parts of a file, side by side."""

    parts: list[PartUpload]


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
