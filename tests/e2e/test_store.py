"""A job and its user tell each other something while it runs, end to end. [SEC-1]"""

from __future__ import annotations

import pytest

from tests.e2e.conftest import Local

pytestmark = pytest.mark.xdist_group("jobs")

SECRET = "Tr0ub4dor-and-three"
SCRIPT = """token=$(bmat store get token)
echo "it is $token"
bmat store put answer "${#token}"
bmat store put -s mine "my own secret"
bmat post always last sh -c 'bmat store get mine'
bmat process start beside sh -c 'bmat store get token; touch told; sleep 60'
until [ -e told ]; do sleep 0.1; done
"""


def test_a_secret_goes_in_an_answer_comes_out_and_no_secret_is_left(local: Local) -> None:
    job = local.submit(SCRIPT)
    put = local.cli("job", "store", "put", job, "token", SECRET, "--secret")
    assert put.returncode == 0, put.stderr
    assert local.settled(job)["outcome"] == "succeeded", local.log(job)
    assert local.json("job", "store", "get", job, "answer")["value"] == str(len(SECRET))
    assert [each["name"] for each in local.json("job", "store", "list", job)] == ["answer"]
    lines = local.log(job)
    said = [line["payload"] for line in lines if line["stream"] in ("stdout", "bg.beside.stdout")]
    assert sorted(said) == ["***", "***", "it is ***"]
    assert any(line["payload"].endswith("put token (secret) into the job's store") for line in lines)
    refused = local.cli("job", "store", "put", job, "late", "x")
    assert "is over" in refused.stderr
    local.put_back()
