#!/usr/bin/env python3
"""A cleaner for an `accounts` well on the local cloud: a sandbox is a folder. See docs/operators/wells/accounts.md.

    command = ["python3", "examples/clean_sandbox.py", "/srv/sandboxes"]

As a Lambda function the same is `def handler(request, context): return answer(request)`, with calls of yours in it.
"""

import hashlib
import json
import shutil
import sys
from pathlib import Path


def answer(request, sandboxes):
    sandbox = sandboxes / Path(request["name"]).name
    sandbox.mkdir(parents=True, exist_ok=True)
    if request["do"] == "clean":
        for entry in sandbox.iterdir():
            shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
        return {"state": "clean", "checked": f"the folder {sandbox.name} is empty"}
    parts = {entry.name[:64]: "there" for entry in sorted(sandbox.iterdir())[:40]}
    names = "\n".join(sorted(entry.name for entry in sandbox.iterdir()))
    return {"state": "checked", "digest": hashlib.sha256(names.encode()).hexdigest(), "parts": parts}


if __name__ == "__main__":
    try:
        print(json.dumps(answer(json.load(sys.stdin), Path(sys.argv[1]))))
    except OSError as error:
        print(json.dumps({"state": "failed", "reason": f"{error.strerror}: {error.filename}"}))
