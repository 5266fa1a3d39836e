"""A resource's metadata as AWS's command line and libraries want it."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections.abc import Iterator
from typing import Any

from .facts import Absent

KEYS = {
    "AccessKeyId": "access_key_id",
    "SecretAccessKey": "secret_access_key",
    "SessionToken": "session_token",
    "Expiration": "expiration",
}


def credentials(name: str, metadata: dict[str, Any]) -> Iterator[str]:
    """Give what `credential_process` must print; who calls it does so again when they are about to expire."""
    missing = sorted(key for key in KEYS.values() if not metadata.get(key))
    if missing:
        raise Absent(f"resource {name!r} has no AWS credentials: there is no {', '.join(missing)}")
    yield json.dumps({"Version": 1, **{theirs: metadata[ours] for theirs, ours in KEYS.items()}})


def config(name: str, metadata: dict[str, Any]) -> Iterator[str]:
    """Give an AWS config file with which credentials are fetched, and fetched again, by themselves."""
    list(credentials(name, metadata))
    command = [shutil.which("bmat") or sys.argv[0], "resource", "get", name, "--format", "aws"]
    yield "[default]"
    if metadata.get("region"):
        yield f"region = {metadata['region']}"
    yield f"credential_process = {' '.join(map(shlex.quote, command))}"
