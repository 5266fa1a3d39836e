"""What GitHub delivers, in the shape that it documents: https://docs.github.com/webhooks/webhook-events-and-payloads.

Only the fields that matter to anybody here, among some of those that do not.
"""

from __future__ import annotations

from typing import Any

from tests.github.fake import APP, INSTALLATION

OXIDE = {"login": "oxide", "id": 7, "type": "Organization"}


def repository(name: str = "oxide/Hubris", id: int = 55) -> dict[str, Any]:
    return {
        "id": id, "name": name.partition("/")[2], "full_name": name, "private": False, "owner": OXIDE,
        "default_branch": "main",
    }  # fmt: skip


def _common(sender: str) -> dict[str, Any]:
    return {
        "repository": repository(),
        "organization": OXIDE,
        "sender": {"login": sender, "id": 1, "type": "User"},
        "installation": {"id": INSTALLATION, "node_id": "MDIz"},
    }


def push(sha: str, branch: str = "main", sender: str = "ada", *, deleted: bool = False) -> dict[str, Any]:
    return {
        "ref": f"refs/heads/{branch}",
        "before": "0" * 40,
        "after": sha,
        "created": False,
        "deleted": deleted,
        "forced": False,
        "commits": [{"id": sha, "message": "a change", "added": [], "removed": [], "modified": ["x"]}],
        "pusher": {"name": sender, "email": "x@example.com"},
        **_common(sender),
    }


def pull_request(
    sha: str, number: int = 12, author: str = "eve", sender: str = "", action: str = "opened"
) -> dict[str, Any]:
    head = {"ref": "patch", "sha": sha, "label": f"{author}:patch", "repo": repository(f"{author}/hubris", 77)}
    return {
        "action": action,
        "number": number,
        "pull_request": {
            "number": number, "state": "open", "user": {"login": author}, "head": head,
            "base": {"ref": "main", "sha": "1" * 40, "repo": repository()}, "author_association": "NONE",
        },
        **_common(sender or author),
    }  # fmt: skip


def check_run(run: dict[str, Any], sender: str, button: str = "", *, app: int = APP) -> dict[str, Any]:
    asked = {"requested_action": {"identifier": button}} if button else {}
    return {
        "action": "requested_action" if button else "rerequested",
        "check_run": {
            "id": run["id"], "name": run["name"], "head_sha": run["head_sha"], "external_id": run["external_id"],
            "status": "completed", "conclusion": "failure", "app": {"id": app, "slug": "penstock"},
            "check_suite": {"id": 5, "head_branch": None},
        },
        **asked,
        **_common(sender),
    }  # fmt: skip


def check_suite(sha: str, sender: str, *, app: int = APP) -> dict[str, Any]:
    return {
        "action": "rerequested",
        "check_suite": {"id": 5, "head_sha": sha, "head_branch": "main", "app": {"id": app}},
        **_common(sender),
    }
