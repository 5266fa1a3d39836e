"""The readers that strangers reach, each with what must hold whatever it is given. Whatever is raised is a finding.

What a reader needs is imported when it runs: the fuzzer sees into what is imported while it looks, and each look costs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module


@dataclass(frozen=True)
class Reader:
    """One of them: `what` is a function of `module` that takes any bytes, `seeds` one that yields good ones.

    `sees` are the modules whose branches count, `most` is how many bytes are tried.
    """

    name: str
    module: str
    what: str
    seeds: str
    sees: tuple[str, ...]
    most: int = 4096

    def read(self) -> Callable[[bytes], None]:
        """The function."""
        found: Callable[[bytes], None] = getattr(import_module(f"tests.fuzz.{self.module}"), self.what)
        return found

    def begins(self) -> Iterable[bytes]:
        """What it begins with."""
        found: Iterable[bytes] = getattr(import_module("tests.fuzz.seeds"), self.seeds)()
        return found


TOML = ("tomllib", "penstock.domain.jobfile", "penstock.toml.document")
SITE = (
    *(f"penstock.domain.site.site{part}" for part in ("", "parse", "keys", "canary", "github", "health", "identity")),
    "penstock.domain.units.hosts", "penstock.usecases.site.apply", "penstock.drivers",
)  # fmt: skip
JSON = ("penstock.api", "cattrs")
MACHINE = "penstock.agent"
READERS = {
    reader.name: reader
    for reader in (
        Reader("jobfile", "texts", "job_file", "job_files", (*TOML, "penstock.domain.jobfile.sets")),
        Reader("site", "texts", "site", "sites", (*TOML, *SITE)),
        Reader("policy", "texts", "policy", "policies", (*TOML, "penstock.domain.github.policy")),
        Reader(
            "events",
            "bodies",
            "events",
            "events",
            (*JSON, "penstock.domain.logs.logs", "penstock.usecases.workers.agents"),
        ),
        Reader("agent", "bodies", "agent", "agent", (*JSON, "penstock.domain.jobs.failures")),
        Reader("webhook", "bodies", "webhook", "deliveries", ("penstock.domain.github", "penstock.usecases.github")),
        Reader("bmat", "machine", "bmat", "asks", (MACHINE,)),
        Reader("archive", "machine", "archive", "archives", ("tarfile", "penstock.agent.archive"), 16384),
    )
}
"""All of them, by name."""
