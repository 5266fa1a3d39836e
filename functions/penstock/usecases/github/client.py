"""Calls of GitHub's API, in our terms. While GitHub asks for a pause, nobody calls it for that installation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any
from urllib.parse import quote

from penstock.domain.github.deliveries import Pause, pause_key
from penstock.domain.site.site import GitHubApp
from penstock.kernel.errors import Misconfigured, RateLimited
from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Create, Replace
from penstock.ports import GitHubRequest, GitHubResponse, TokenScope
from penstock.system import System, current_site

OUR_PERMISSIONS: Mapping[str, str] = {"checks": "write", "contents": "read", "members": "read", "pull_requests": "read"}
"""What the front end itself may do in a repository. Jobs get none of it."""

METADATA_ONLY: Mapping[str, str] = {"metadata": "read"}
"""What it may do in all other repositories of the installation: read their names and who may access them."""

PAGES = 10


ERROR_CHARS = 300
"""How much of GitHub's reason for a refusal goes into a job's log."""


WRITERS = ("admin", "write")
"""GitHub's permissions that include writing; `maintain` is reported as `write`."""

READERS = (*WRITERS, "read")
"""And reading; `triage` is reported as `read`."""


@dataclass(frozen=True)
class Repository:
    """A repository, and the installation of the App that may access it."""

    installation: int
    id: int
    name: str

    @property
    def path(self) -> str:
        """The repository's path in the API."""
        return f"/repos/{quote(self.name)}"

    @property
    def scope(self) -> TokenScope:
        """What our own calls may do."""
        return TokenScope(self.installation, self.id, OUR_PERMISSIONS)


def app(on: System) -> GitHubApp:
    """The site's App. Raises Misconfigured if there is none."""
    found = current_site(on).github
    if found is None:
        raise Misconfigured("the site has no table [github]")
    return found


def call(on: System, ask: GitHubRequest) -> GitHubResponse:
    """One call, unless GitHub asked for a pause. Raises RateLimited."""
    installation, now = ask.scope.installation if ask.scope else 0, on.world.now()
    paused = on.store.get(pause_key(installation), Pause)
    if paused and paused.until > now:
        raise RateLimited("GitHub wants to be left alone", int((paused.until - now).total_seconds()) + 1)
    try:
        return on.forge.call(app(on), ask)
    except RateLimited as limited:
        until = Pause(installation=installation, until=now + timedelta(seconds=limited.seconds))
        on.store.commit([Replace(paused, replace(until, version=paused.version)) if paused else Create(until)])
        raise


def read_file(on: System, of: Repository, path: str, sha: str = "") -> bytes | None:
    """A file at a commit; without a commit, in the default branch. None if there is none."""
    query = {"ref": sha} if sha else {}
    response = call(on, GitHubRequest("GET", f"{of.path}/contents/{quote(path)}", of.scope, query, raw=True))
    return response.body if response.status == 200 and isinstance(response.body, bytes) else None


def list_folder(on: System, of: Repository, path: str, sha: str) -> list[tuple[str, str]]:
    """The names and kinds (file, dir, symlink, submodule) of a folder's entries at a commit."""
    response = call(on, GitHubRequest("GET", f"{of.path}/contents/{quote(path)}", of.scope, {"ref": sha}))
    found = response.body if response.status == 200 and isinstance(response.body, list) else []
    return sorted((str(each["name"]), str(each["type"])) for each in found)


def may_write(on: System, of: Repository, login: str) -> bool:
    """Whether somebody may write to a repository. [SEC-2]"""
    response = call(on, GitHubRequest("GET", f"{of.path}/collaborators/{quote(login)}/permission", of.scope))
    return response.status == 200 and response.body.get("permission") in WRITERS


def find_sibling(on: System, of: Repository, name: str) -> int | None:
    """The id of another repository that the same installation may access; None if it may not."""
    path = f"/repos/{quote(name)}"
    installed = call(on, GitHubRequest("GET", f"{path}/installation"))
    if installed.status != 200 or installed.body["id"] != of.installation:
        return None
    response = call(on, GitHubRequest("GET", path, TokenScope(of.installation, 0, METADATA_ONLY)))
    return int(response.body["id"]) if response.status == 200 else None


def may_read(on: System, of: Repository, name: str, login: str) -> bool:
    """Whether somebody may read another repository of the same installation. [SEC-2]"""
    scope = TokenScope(of.installation, 0, METADATA_ONLY)
    response = call(on, GitHubRequest("GET", f"/repos/{quote(name)}/collaborators/{quote(login)}/permission", scope))
    return response.status == 200 and response.body.get("permission") in READERS


def is_member(on: System, of: Repository, login: str) -> bool:
    """Whether somebody is a member of the organisation that a repository belongs to. [SEC-2]"""
    owner = of.name.partition("/")[0]
    return call(on, GitHubRequest("GET", f"/orgs/{quote(owner)}/members/{quote(login)}", of.scope)).status == 204


def head_of(on: System, of: Repository, line: str) -> str | None:
    """The commit that a branch or pull request points to now; None if it is gone."""
    kind, _, name = line.partition("/")
    path = f"{of.path}/pulls/{name}" if kind == "pull" else f"{of.path}/git/ref/heads/{quote(name)}"
    response = call(on, GitHubRequest("GET", path, of.scope))
    if response.status != 200:
        return None
    return str(response.body["head" if kind == "pull" else "object"]["sha"])


def mint(on: System, scope: TokenScope) -> tuple[str, str]:
    """A new token for a job; or "", and why GitHub refuses one. It is stored nowhere here. [SEC-1]"""
    response = call(
        on, GitHubRequest("POST", f"/app/installations/{scope.installation}/access_tokens", body=scope.asks)
    )
    if response.status == 201:
        return str(response.body["token"]), ""
    message = response.body.get("message") if isinstance(response.body, dict) else None
    return "", f"GitHub answers {response.status}: {str(message or 'it does not say why')[:ERROR_CHARS]}"


def revoke(on: System, installation: int, token: str) -> bool:
    """Revoke a token by presenting it; whether it is revoked now. [SEC-1]"""
    scope = TokenScope(installation, 0, {})  # only names the installation whose pause counts
    return call(on, GitHubRequest("DELETE", "/installation/token", scope, token=token)).status in (204, 401)


def create_check_run(on: System, of: Repository, body: Mapping[str, Any]) -> int | None:
    """A new check run; None if GitHub accepts none for this commit."""
    response = call(on, GitHubRequest("POST", f"{of.path}/check-runs", of.scope, body=body))
    return int(response.body["id"]) if response.status == 201 else None


def update_check_run(on: System, of: Repository, run: int, body: Mapping[str, Any]) -> None:
    """Change what a check run shows."""
    call(on, GitHubRequest("PATCH", f"{of.path}/check-runs/{run}", of.scope, body=body))


def find_check_run(on: System, of: Repository, sha: str, name: str, external_id: str) -> int | None:
    """The check run with an id of ours, if there is one."""
    path, query = f"{of.path}/commits/{sha}/check-runs", {"check_name": name, "filter": "all", "per_page": "100"}
    for response in pages(on, GitHubRequest("GET", path, of.scope, query)):
        for run in response.body["check_runs"]:
            if run["external_id"] == external_id:
                return int(run["id"])
    return None


def pages(on: System, ask: GitHubRequest) -> Iterator[GitHubResponse]:
    """The pages of a list, at most PAGES."""
    following: Mapping[str, str] | None = ask.query
    for _ in range(PAGES):
        response = call(on, replace(ask, query=following or {}))
        if response.status != 200:
            return
        yield response
        following = response.next
        if following is None:
            return
