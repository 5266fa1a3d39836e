"""Where a job comes from, if it checks a commit: what its worker clones, and which hosts get its token.

Only the GitHub front end sets a job's commit (`check`). What it says of where that comes from is in its request: a job
file may add to the environment what the front end left out. A job that merely has such an environment comes from no
repository. [SEC-2]
"""

from __future__ import annotations

from typing import Annotated

from penstock.domain.jobs.jobs import Job, Spec
from penstock.domain.site.site import GitHubApp
from penstock.kernel.frozen import dataclass

API = "api."


@dataclass(frozen=True)
class Origin:
    """A repository at a commit."""

    name: Annotated[str, "The repository's name with its owner, such as `oxide/hubris`."]
    url: Annotated[str, "The URL to clone it from."]
    sha: Annotated[str, "The commit's SHA."]
    branch: Annotated[str, "The branch; empty if the commit is on none."]
    machines: Annotated[tuple[str, ...], "The names of the hosts that get the job's token."]
    clone: Annotated[bool, "Whether the job starts with a clone."]


def is_cloned(job: Job, spec: Spec) -> bool:
    """Whether the job starts with a clone of its repository."""
    return bool(job.provenance.check) and not spec.skip_clone


def origin(job: Job, spec: Spec, app: GitHubApp) -> Origin:
    """Where a job comes from that checks a commit."""
    said, web = spec.request["env"], app.web
    name = said["GITHUB_REPOSITORY"]
    return Origin(
        name, f"{web}/{name}", said["GITHUB_SHA"], said.get("GITHUB_BRANCH", ""), _machines(app.api),
        is_cloned(job, spec),
    )  # fmt: skip


def _machines(api: str) -> tuple[str, ...]:
    """Host names without ports: curl compares no more."""
    host = api.partition("://")[2].partition("/")[0].partition(":")[0]
    return tuple(dict.fromkeys((host.removeprefix(API), host)))
