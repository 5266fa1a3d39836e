"""What a job made is stated with the stack's own key, and verified by a program that is not ours. [SEC-2]"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from securesystemslib.dsse import Envelope
from securesystemslib.signer import SSlibKey

from tests.e2e.conftest import Local

pytestmark = pytest.mark.xdist_group("jobs")


def test_what_a_job_made_is_verified_without_the_service(local: Local) -> None:
    job = local.submit("echo app > app\n", "-O", "/work/app")
    assert local.settled(job)["outcome"] == "succeeded", local.log(job)
    local.put_back()
    folder: Path = local.folder
    assert local.cli("job", "copy", job, "/work/app", str(folder / "app")).returncode == 0
    for words, name in ((["provenance", job], "app.json"), (["provenance", "--key"], "key.pem")):
        printed = local.cli("job", *words)
        assert printed.returncode == 0, printed.stderr
        (folder / name).write_text(printed.stdout)

    files = [str(folder / name) for name in ("app", "app.json", "key.pem")]
    words = ["job", "verify", files[0], "-p", files[1], "-k", files[2]]
    passed = local.cli(*words, "--url", "http://127.0.0.1:9")
    assert passed.returncode == 0, passed.stderr
    assert job in passed.stdout
    assert local.cli(*words, "--owner", "nobody").returncode == 1

    sent = json.loads((folder / "app.json").read_text())
    kid = sent["signatures"][0]["keyid"]
    key = SSlibKey(kid, "ecdsa", "ecdsa-sha2-nistp256", {"public": (folder / "key.pem").read_text()})
    envelope = Envelope.from_dict(sent)
    assert set(envelope.verify([key], 1)) == {kid}

    said = json.loads(envelope.payload)
    assert said["subject"] == [{"name": "/work/app", "digest": {"sha256": hashlib.sha256(b"app\n").hexdigest()}}]
    run = said["predicate"]["runDetails"]
    assert run["builder"]["id"] == local.running.url
    (agent,) = run["builder"]["builderDependencies"]
    assert agent["digest"]["sha256"], "the agent that ran is the one that the service has"
    (worker,) = run["penstock_leases"]
    assert worker["cleaned"]["checked"]
