"""A job says who it is, and what it shows is checked as others do: with nothing but its URL. [SEC-1]"""

from __future__ import annotations

import base64
import json
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from tests.e2e.conftest import Local

pytestmark = pytest.mark.xdist_group("e2e")

SCRIPT = """set -e
bmat identity token --audience sts.amazonaws.com > token
cat token
bmat identity token --audience other || echo "refused: $?"
"""


def read(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def fetched(url: str) -> Any:
    answer = httpx.get(url, trust_env=False)
    assert answer.status_code == 200, answer.text
    assert answer.headers["cache-control"] == "public, max-age=300"
    return answer.json()


def test_what_the_key_of_the_stack_signed_is_checked_from_outside(local: Local) -> None:
    job = local.submit(SCRIPT, "-O", "/work/token")
    assert local.settled(job)["outcome"] == "succeeded", local.log(job)
    copied = local.cli("job", "copy", job, "/work/token", str(local.folder / "token"))
    assert copied.returncode == 0, copied.stderr
    head, body, signature = (local.folder / "token").read_text().strip().split(".")
    said = json.loads(read(body))
    assert said["iss"] == f"{local.running.url}/v1/oidc"
    found = fetched(f"{said['iss']}/.well-known/openid-configuration")
    (key,) = [each for each in fetched(found["jwks_uri"])["keys"] if each["kid"] == json.loads(read(head))["kid"]]
    n, e = (int.from_bytes(read(key[each]), "big") for each in "ne")
    public = rsa.RSAPublicNumbers(e, n).public_key()
    public.verify(read(signature), f"{head}.{body}".encode(), padding.PKCS1v15(), hashes.SHA256())
    assert said["job_id"] == job
    lines = [line["payload"] for line in local.log(job)]
    assert f"{head}.{body}.***" in lines
    assert "refused: 1" in lines
    assert not [line for line in lines if signature in line]
    local.put_back()
