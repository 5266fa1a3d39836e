"""What is done before an operation is asked, where the site of the stage alone would always refuse it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.functions.stage import BODIES, DIGEST
from tests.fuzz.stage import TOKEN, Stage

LINES = 1000
"""So many lines fill a segment of a log."""


def _hold(stage: Stage, path: str) -> None:
    stage.user("POST", f"{path}/hold", {"reason": "looking"})


def _pin(stage: Stage) -> None:
    for artifact in stage.real["artifact"]:
        stage.user("PUT", f"/v1/artifacts/{artifact}/pin", BODIES["pin_artifact"])


def _ask_for_the_bench(stage: Stage) -> None:
    stage.user("PUT", "/v1/privileges/resource.bench/request", {"reason": "the new boards"}, stage.eve)


def _disable_eve(stage: Stage) -> None:
    stage.user("POST", "/v1/users/eve/disable", {})


def _approve_login(stage: Stage) -> None:
    stage.user("POST", f"/v1/logins/{stage.login['code']}/approve", BODIES["approve_login"])


def _send_input(stage: Stage) -> None:
    stage.put(stage.user("POST", f"/v1/jobs/{stage.given}/inputs", BODIES["send_input"], stage.ada).body["url"])


def _send_big_input(stage: Stage) -> None:
    stage.user("POST", f"/v1/jobs/{stage.given}/inputs", BODIES["send_input"] | {"composite": DIGEST}, stage.ada)


def _send_big_output(stage: Stage) -> None:
    (file,) = BODIES["agent_outputs"]["files"]
    asked = {"files": [{**file, "path": "/work/big", "composite": DIGEST}]}
    path = f"/v1/agent/jobs/{stage.running}/outputs"
    stage.big = stage.user("POST", path, asked, TOKEN).body["uploads"][0]["id"]


def _send_big_archive(stage: Stage) -> None:
    asked = {**BODIES["agent_save_cache"], "key": "big", "composite": DIGEST}
    stage.big = stage.user("POST", f"/v1/agent/jobs/{stage.running}/caches/save", asked, TOKEN).body["id"]


def _print_lines(stage: Stage) -> None:
    """Fill a segment of the log of the job that runs, and learn the key with which it may be read."""
    (line,) = BODIES["agent_events"]["events"]
    for first in range(2, 2 + LINES, 500):
        said = {"first": first, "events": [{**line, "payload": f"line {first + at}"} for at in range(500)]}
        stage.user("POST", f"/v1/agent/jobs/{stage.running}/events", said, TOKEN)
    stage.key_of_log = str(stage.user("GET", f"/v1/jobs/{stage.running}/events").body["key"])


PREPARATIONS: Mapping[str, Callable[[Stage], Any]] = {
    "release_job": lambda stage: _hold(stage, f"/v1/jobs/{stage.running}"),
    "release_worker": lambda stage: _hold(stage, f"/v1/workers/{stage.worker}"),
    "release_resource": lambda stage: [_hold(stage, f"/v1/resources/{each}") for each in stage.real["resource"]],
    "unpin_artifact": _pin,
    "refuse_privilege": _ask_for_the_bench,
    "remove_user": _disable_eve,
    "take_login": _approve_login,
    "commit_input": _send_input,
    "send_parts": _send_big_input,
    "agent_parts": _send_big_output,
    "agent_cache_parts": _send_big_archive,
    "read_segment": _print_lines,
    "read_shared_events": _print_lines,
    "read_shared_segment": _print_lines,
    "get_account_diff": lambda stage: stage.user("POST", "/v1/account/diff"),
}
