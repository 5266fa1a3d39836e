"""What users ask of a job: what it is to do and to publish, what it proves, and what of it is held at its end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from penstock.domain.jobfile.caches import CacheAsk
from penstock.domain.jobfile.posts import Post
from penstock.kernel.rows import Key, Row


@dataclass(frozen=True)
class Proves:
    """That a job is there to show that a factory works: its worker is new, looked for in the factory's list, not kept.

    With `keep`, its worker is held for that many seconds from when it is ordered.
    """

    factory: str
    keep: int | None = None


@dataclass(frozen=True)
class Keep:
    """Who wants to look at a job's worker and resources when its script has failed, and for how many seconds they are
    held for that; `whatever` it came to, if so."""

    by: str
    reason: str
    seconds: int
    whatever: bool = False


@dataclass(frozen=True)
class Publication:
    """What a job is to publish when it has succeeded: the output with this very path, and as what."""

    path: str
    series: str
    version: str
    name: str


@dataclass(frozen=True, kw_only=True)
class Spec(Row):
    """What a job is to do: written once, read by whoever starts or repeats it.

    `toolchain` is a channel of Rust's, or the name of the repository's file that says which; "" for none.
    """

    kind: ClassVar[str] = "spec"
    job: str
    path: str
    script: str
    output_rules: tuple[str, ...] = ()
    publish: tuple[Publication, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    posts: tuple[Post, ...] = ()
    toolchain: str = ""
    skip_clone: bool = False
    request: Mapping[str, Any] = field(default_factory=dict)
    caches: tuple[CacheAsk, ...] = ()

    @property
    def key(self) -> Key:
        return spec_key(self.job)


def spec_key(job: str) -> Key:
    """Where a job's spec is."""
    return Key(f"job#{job}", "spec")
