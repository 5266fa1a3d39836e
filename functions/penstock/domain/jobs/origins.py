"""Where a job comes from, if that is a commit: what its worker clones, and whom it shows its token.

Only the front end says that a job is a check of a commit (`check`), and it sets what the environment says of it over
whatever a job file says. A job that merely has such an environment comes from nowhere. [SEC-2]
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.domain.jobfile import JobFile
from penstock.domain.jobs.jobs import Job, Spec
from penstock.domain.site.site import GitHubApp

FILE = "rust-toolchain.toml"
"""The file of a repository that names its toolchain of Rust."""

API = "api."


@dataclass(frozen=True)
class Origin:
    """A repository at a commit. `machines` are those that its job's token is for; `clone`: the job begins with it."""

    name: str
    url: str
    sha: str
    branch: str
    machines: tuple[str, ...]
    clone: bool


def toolchain(file: JobFile) -> str:
    """What a spec says of a file's toolchain."""
    asked = file.rust_toolchain
    return asked if isinstance(asked, str) else FILE if asked else ""


def is_cloned(job: Job, spec: Spec) -> bool:
    """Whether a job begins with a repository."""
    return bool(job.check) and not spec.skip_clone


def origin(job: Job, spec: Spec, app: GitHubApp) -> Origin | None:
    """Where a job comes from."""
    if not job.check:
        return None
    name, web = spec.env["GITHUB_REPOSITORY"], _web(app.api)
    return Origin(
        name, f"{web}/{name}", spec.env["GITHUB_SHA"], spec.env.get("GITHUB_BRANCH", ""), _machines(app.api),
        is_cloned(job, spec),
    )  # fmt: skip


def folder(found: Origin | None) -> str:
    """Where a job's script begins."""
    return f"/work/{found.name}" if found and found.clone else "/work"


def _web(api: str) -> str:
    """Where repositories are, by where the API is: api.github.com is a machine of its own, others are not."""
    scheme, _, rest = api.partition("://")
    return f"{scheme}://{rest.partition('/')[0].removeprefix(API)}"


def _machines(api: str) -> tuple[str, ...]:
    """Names without ports: curl compares no more of them."""
    host = api.partition("://")[2].partition("/")[0].partition(":")[0]
    return tuple(dict.fromkeys((host.removeprefix(API), host)))
