"""`bmat identity`: tokens that prove which job this is. [SEC-1]"""

import json

from tests.agent.control_plane import IDENTITY

SIGNATURE = IDENTITY.rpartition(".")[2]


def test_a_job_gets_a_token_and_its_log_does_not(worker):
    job = worker(
        script="set -e; cd $PENSTOCK_WORK; bmat identity token --audience sts.amazonaws.com > token\n"
        "bmat identity token --audience sts.amazonaws.com --format json > both\n"
        "cat token; base64 -w0 token; echo; echo; cat both",
        output_rules=["/work/token", "/work/both"],
    )
    assert job.finish()["result"] == "succeeded"
    outputs = job.plane.outputs()
    assert outputs["/work/token"] == f"{IDENTITY}\n".encode()
    assert json.loads(outputs["/work/both"])["expires"] == "2026-01-01T01:00:00+00:00"
    lines = job.plane.lines("stdout", "stderr")
    assert lines[0] == IDENTITY.removesuffix(SIGNATURE) + "***"
    assert not [line for line in lines if SIGNATURE in line]
    assert "***" in lines[1]


def test_a_refused_token_does_not_end_the_job(worker):
    job = worker(script="bmat identity token --audience other; echo $?; bmat identity token; echo $?")
    assert job.finish()["result"] == "succeeded"
    lines = job.plane.lines("stdout", "stderr")
    assert "bmat: HTTP 422: this site allows no such audience" in lines
    assert [line for line in lines if line.isdigit()] == ["1", "2"]
