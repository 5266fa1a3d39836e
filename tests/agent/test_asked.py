"""What scripts write to the agent's socket themselves: whatever it is, it is answered, and the agent goes on."""

from __future__ import annotations

import json
import shlex
import sys

import pytest

ASK = """
import re, socket, sys
path = re.search("PENSTOCK_SOCKET=(\\\\S+)", open(sys.argv[1]).read())[1]
with socket.socket(socket.AF_UNIX) as agent:
    agent.connect(path)
    agent.sendall(sys.stdin.buffer.read() + b"\\n")
    print(agent.makefile().read(), flush=True)
"""
ODD = {"do": "post", "when": "always", "name": "odd", "command": ["env"], "cwd": "/", "env": {"NUMBER": 7}}
PUT = {"do": "put", "name": "x", "secret": True}


def asking(*lines: str) -> str:
    """A script that asks all of this."""
    here = f"{shlex.quote(sys.executable)} -c {shlex.quote(ASK)} $(command -v bmat)"
    return "\n".join(f"printf %s {shlex.quote(line)} | {here}" for line in lines)


@pytest.mark.parametrize(
    "line", ["[" * 50_000, *(json.dumps({**PUT, "value": value}) for value in (7, None, ["a"], {"a": "b"}))]
)
def test_what_no_bmat_asks_is_answered(worker, line):
    job = worker(script=asking(line))
    assert job.finish()["result"] == "succeeded"
    assert json.loads(job.plane.lines("stdout")[0]) == {"error": "the agent does not understand this request of bmat"}


def test_an_environment_that_is_no_text_is_made_one(worker):
    job = worker(script=asking(json.dumps(ODD)))
    assert job.finish()["result"] == "succeeded"
    assert "NUMBER=7" in job.plane.lines("stdout")
