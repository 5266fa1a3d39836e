"""What GitHub is asked, in our words. While it wants to be left alone nobody asks it anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from urllib.parse import quote

from penstock.domain.github.deliveries import Pause, pause_key
from penstock.domain.site.site import GitHubApp
from penstock.kernel.errors import Misconfigured, RateLimited
from penstock.kernel.rows import Create, Replace
from penstock.ports import GitHubRequest, GitHubResponse, TokenScope
from penstock.system import System
from penstock.usecases.site import configuration

OUR_PERMISSIONS: Mapping[str, str] = {"checks": "write", "contents": "read", "members": "read", "pull_requests": "read"}
"""What the front end itself may do in a repository. None of it is ever a job's."""

METADATA_ONLY: Mapping[str, str] = {"metadata": "read"}
"""What it may do in all others of the installation: see what they are called, and who may what there."""

PAGES = 10


ERROR_CHARS = 300
"""How much of what GitHub says of a refusal a job's log is told."""


WRITERS = ("admin", "write")
"""What GitHub calls the right to write; `maintain` is told as `write`."""

READERS = (*WRITERS, "read")
"""And to read; `triage` is told as `read`."""


@dataclass(frozen=True)
class Repository:
    """A repository, and the installation of the App that may look at it."""

    installation: int
    id: int
    name: str

    @property
    def path(self) -> str:
        """Where the API has it."""
        return f"/repos/{quote(self.name)}"

    @property
    def scope(self) -> TokenScope:
        """What our own calls are allowed."""
        return TokenScope(self.installation, self.id, OUR_PERMISSIONS)


def app(on: System) -> GitHubApp:
    """The App of the site. Raises Misconfigured where there is none."""
    found = configuration.current(on).github
    if found is None:
        raise Misconfigured("the site has no table [github]")
    return found


def call(on: System, ask: GitHubRequest) -> GitHubResponse:
    """One call, unless GitHub wants to be left alone: then nobody calls for that installation. Raises RateLimited."""
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
    """A file at a commit; without one, in the default branch. None where there is none."""
    query = {"ref": sha} if sha else {}
    told = call(on, GitHubRequest("GET", f"{of.path}/contents/{quote(path)}", of.scope, query, raw=True))
    return told.body if told.status == 200 and isinstance(told.body, bytes) else None


def list_folder(on: System, of: Repository, path: str, sha: str) -> list[tuple[str, str]]:
    """The names and kinds (file, dir, symlink, submodule) of what is in a folder at a commit."""
    told = call(on, GitHubRequest("GET", f"{of.path}/contents/{quote(path)}", of.scope, {"ref": sha}))
    found = told.body if told.status == 200 and isinstance(told.body, list) else []
    return sorted((str(each["name"]), str(each["type"])) for each in found)


def may_write(on: System, of: Repository, login: str) -> bool:
    """Whether somebody may write to a repository. [SEC-2]"""
    told = call(on, GitHubRequest("GET", f"{of.path}/collaborators/{quote(login)}/permission", of.scope))
    return told.status == 200 and told.body.get("permission") in WRITERS


def find_sibling(on: System, of: Repository, name: str) -> int | None:
    """The id of another repository that the same installation of the App may look at; None where it may not."""
    path = f"/repos/{quote(name)}"
    installed = call(on, GitHubRequest("GET", f"{path}/installation"))
    if installed.status != 200 or installed.body["id"] != of.installation:
        return None
    told = call(on, GitHubRequest("GET", path, TokenScope(of.installation, 0, METADATA_ONLY)))
    return int(told.body["id"]) if told.status == 200 else None


def may_read(on: System, of: Repository, name: str, login: str) -> bool:
    """Whether somebody may read another repository of the same installation. [SEC-2]"""
    scope = TokenScope(of.installation, 0, METADATA_ONLY)
    told = call(on, GitHubRequest("GET", f"/repos/{quote(name)}/collaborators/{quote(login)}/permission", scope))
    return told.status == 200 and told.body.get("permission") in READERS


def is_member(on: System, of: Repository, login: str) -> bool:
    """Whether somebody is a member of the organisation that a repository belongs to. [SEC-2]"""
    owner = of.name.partition("/")[0]
    return call(on, GitHubRequest("GET", f"/orgs/{quote(owner)}/members/{quote(login)}", of.scope)).status == 204


def head_of(on: System, of: Repository, line: str) -> str | None:
    """The commit that a line ends with now; None for a line that is gone."""
    kind, _, name = line.partition("/")
    path = f"{of.path}/pulls/{name}" if kind == "pull" else f"{of.path}/git/ref/heads/{quote(name)}"
    told = call(on, GitHubRequest("GET", path, of.scope))
    if told.status != 200:
        return None
    return str(told.body["head" if kind == "pull" else "object"]["sha"])


def mint(on: System, scope: TokenScope) -> tuple[str, str]:
    """A new token for a job; or "", and why GitHub makes none. It is kept nowhere here. [SEC-1]"""
    told = call(on, GitHubRequest("POST", f"/app/installations/{scope.installation}/access_tokens", body=scope.asks))
    if told.status == 201:
        return str(told.body["token"]), ""
    said = told.body.get("message") if isinstance(told.body, dict) else None
    return "", f"GitHub answers {told.status}: {str(said or 'it does not say why')[:ERROR_CHARS]}"


def revoke(on: System, installation: int, token: str) -> bool:
    """Have GitHub take a token no more, by showing it; whether that is so now. [SEC-1]"""
    scope = TokenScope(installation, 0, {})  # no token is made for it: it only says who is to be left alone
    return call(on, GitHubRequest("DELETE", "/installation/token", scope, token=token)).status in (204, 401)


def create_check_run(on: System, of: Repository, body: Mapping[str, Any]) -> int | None:
    """A new check run; None when GitHub takes none for such a commit."""
    told = call(on, GitHubRequest("POST", f"{of.path}/check-runs", of.scope, body=body))
    return int(told.body["id"]) if told.status == 201 else None


def update_check_run(on: System, of: Repository, run: int, body: Mapping[str, Any]) -> None:
    """Have a check run say something else."""
    call(on, GitHubRequest("PATCH", f"{of.path}/check-runs/{run}", of.scope, body=body))


def find_check_run(on: System, of: Repository, sha: str, name: str, external_id: str) -> int | None:
    """The check run that was made with an id of ours, if it was."""
    path, query = f"{of.path}/commits/{sha}/check-runs", {"check_name": name, "filter": "all", "per_page": "100"}
    for told in pages(on, GitHubRequest("GET", path, of.scope, query)):
        for run in told.body["check_runs"]:
            if run["external_id"] == external_id:
                return int(run["id"])
    return None


def pages(on: System, ask: GitHubRequest) -> Iterator[GitHubResponse]:
    """The pages of a list, PAGES of them at the most."""
    following: Mapping[str, str] | None = ask.query
    for _ in range(PAGES):
        told = call(on, replace(ask, query=following or {}))
        if told.status != 200:
            return
        yield told
        following = told.next
        if following is None:
            return
