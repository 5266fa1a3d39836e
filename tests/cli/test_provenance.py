"""Files are checked against the statement about them, without a service. [SEC-2]"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from penstock.cli import transfer
from penstock.domain.artifacts import volumes
from penstock.domain.jobs import statement
from tests.cli.conftest import Run, plain
from tests.cli.service import Service

KEY = ec.generate_private_key(ec.SECP256R1())
APP = b"the app\n"
SHA = "c" * 40
SOURCE = {
    "name": "source",
    "uri": "git+https://github.com/o/r",
    "digest": {"gitCommit": SHA},
    "annotations": {"ref": "refs/heads/main"},
}


def said(digest: Mapping[str, str], source: Mapping[str, Any] | None = SOURCE) -> dict[str, Any]:
    """A statement about one file."""
    about = {
        "penstock_owner": "o:r",
        "penstock_job": "J1",
        "penstock_name": "build",
        "startedOn": "2026-01-02T03:04:05Z",
    }
    return {
        "_type": statement.STATEMENT,
        "predicateType": statement.PREDICATE,
        "subject": [{"name": "/work/app", "digest": dict(digest)}],
        "predicate": {
            "buildDefinition": {"resolvedDependencies": [{"name": "job file"}, *([source] if source else [])]},
            "runDetails": {"builder": {"id": "https://penstock.example"}, "metadata": about},
        },
    }


SAID = said({"sha256": hashlib.sha256(APP).hexdigest()})


def write(stated: object, kind: str = statement.PAYLOAD, by: ec.EllipticCurvePrivateKey = KEY) -> dict[str, Any]:
    """Leave the file, the statement and the key in the working directory. Returns the envelope."""
    body = statement.payload(stated)  # type: ignore[arg-type]  # some are no mappings
    signature = by.sign(statement.signed_bytes(body, kind), ec.ECDSA(hashes.SHA256()))
    envelope = {
        "payloadType": kind,
        "payload": base64.b64encode(body).decode(),
        "signatures": [{"keyid": "k", "sig": base64.b64encode(signature).decode()}],
    }
    Path("app").write_bytes(APP)
    Path("app.json").write_text(json.dumps(envelope))
    Path("key.pem").write_bytes(KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return envelope


def verify(*more: str) -> Result:
    """Without a service, a token or a profile."""
    return plain("job", "verify", "app", "-p", "app.json", "-k", "key.pem", *more)


def test_what_a_job_made_is_shown() -> None:
    write(SAID)
    result = verify("--owner", "o:r", "--job-name", "build", "--ref", "refs/heads/main", "--commit", SHA)
    assert result.exit_code == 0, result.stderr
    facts = dict(line.split(None, 1) for line in result.stdout.splitlines() if not line.startswith("job name"))
    assert (facts["owner"], facts["commit"], facts["ref"]) == ("o:r", SHA, "refs/heads/main")
    assert facts["repository"] == "https://github.com/o/r"
    assert facts["name"] == "/work/app"
    assert json.loads(verify("--json").stdout)["job"] == "J1"


@pytest.mark.parametrize(
    ("option", "value", "why"),
    [
        ("--owner", "eve", "the owner is o:r, not eve"),
        ("--job-name", "deploy", "the job name is build, not deploy"),
        ("--ref", "refs/heads/next", "the ref is refs/heads/main, not refs/heads/next"),
        ("--commit", "d" * 40, f"the commit is {SHA}, not {'d' * 40}"),
    ],
)
def test_what_is_not_as_wanted_fails(option: str, value: str, why: str) -> None:
    write(SAID)
    result = verify(option, value)
    assert (result.exit_code, result.stdout) == (1, "")
    assert why in result.stderr


def test_a_ref_that_nobody_knew_is_none() -> None:
    write(said(SAID["subject"][0]["digest"], source=None))
    assert verify().exit_code == 0
    assert "the ref is not known, not refs/heads/main" in verify("--ref", "refs/heads/main").stderr


def test_what_a_pull_request_made_must_be_wanted() -> None:
    write(said(SAID["subject"][0]["digest"], {**SOURCE, "annotations": {"pullRequest": "7"}}))
    result = verify("--owner", "o:r")
    assert result.exit_code == 1
    assert "pull request 7, whose commit anybody may have written" in result.stderr
    assert verify("--owner", "o:r", "--pull-request").exit_code == 0
    assert verify("--ref", "refs/heads/main", "--pull-request").exit_code == 1


def test_another_file_fails() -> None:
    write(SAID)
    Path("app").write_bytes(APP + b"!")
    result = verify()
    assert result.exit_code == 1
    assert "none of the files that the statement is about" in result.stderr
    assert "it is about /work/app" in result.stderr


def test_some_of_many_files_are_named() -> None:
    many = [{"name": f"/work/{number}", "digest": {"sha256": "0" * 64}} for number in range(7)]
    write({**SAID, "subject": many})
    assert "it is about /work/0, /work/1, /work/2, /work/3, /work/4, and 2 more" in verify().stderr


def test_a_file_that_was_sent_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (transfer, volumes):
        monkeypatch.setattr(module, "PART_BYTES", 5)
    parts = [hashlib.sha256(APP[at : at + 5]).hexdigest() for at in (0, 5)]
    write(said({statement.PARTS: volumes.composite(parts)}))
    assert verify().exit_code == 0
    write(said({statement.PARTS: "0" * 64}))
    assert verify().exit_code == 1


def test_a_statement_that_was_changed_fails() -> None:
    envelope = write(SAID)
    forged = {**SAID, "predicate": {**SAID["predicate"], "penstock_owner": "eve"}}
    envelope["payload"] = base64.b64encode(statement.payload(forged)).decode()
    Path("app.json").write_text(json.dumps(envelope))
    result = verify()
    assert result.exit_code == 1
    assert "was not signed with this key, or was changed since" in result.stderr


def test_a_statement_that_another_key_signed_fails() -> None:
    write(SAID, by=ec.generate_private_key(ec.SECP256R1()))
    assert "was not signed with this key" in verify().stderr


def test_of_several_signatures_one_is_enough_and_none_is_not() -> None:
    envelope = write(SAID)
    other = {"keyid": "x", "sig": base64.b64encode(b"no signature").decode()}
    Path("app.json").write_text(json.dumps({**envelope, "signatures": [other, *envelope["signatures"]]}))
    assert verify().exit_code == 0
    Path("app.json").write_text(json.dumps({**envelope, "signatures": []}))
    assert verify().exit_code == 1


@pytest.mark.parametrize(
    ("stated", "kind"),
    [
        (SAID, "application/vnd.docker+json"),
        ({**SAID, "_type": "https://in-toto.io/Statement/v0.1"}, statement.PAYLOAD),
        ({**SAID, "predicateType": "https://spdx.dev/Document"}, statement.PAYLOAD),
        ([SAID], statement.PAYLOAD),
        ({**SAID, "predicate": {}}, statement.PAYLOAD),
        ({**SAID, "subject": "app"}, statement.PAYLOAD),
    ],
)
def test_what_the_key_signed_and_is_no_such_statement_fails(stated: object, kind: str) -> None:
    """SEC-2: a key may sign other things, and its statements may come to mean something else."""
    write(stated, kind)
    result = verify()
    assert (result.exit_code, result.stdout) == (1, "")
    assert "is signed, and" in result.stderr


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"payload": 1}', '{"payload": "?", "payloadType": "", "signatures": []}']
)
def test_what_is_no_envelope_is_refused(text: str) -> None:
    write(SAID)
    Path("app.json").write_text(text)
    result = verify()
    assert result.exit_code == 2
    assert "app.json is no DSSE envelope" in result.stderr


def test_what_is_no_key_is_refused() -> None:
    write(SAID)
    Path("key.pem").write_text("no key")
    assert "key.pem holds no public key in PEM" in verify().stderr
    other = rsa.generate_private_key(public_exponent=65537, key_size=2048).public_key()
    Path("key.pem").write_bytes(other.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    assert "holds a key of another kind" in verify().stderr


def test_a_file_that_is_too_long_to_be_a_statement_is_refused() -> None:
    write(SAID)
    with Path("app.json").open("wb") as file:
        file.truncate(17 * 1024**2)
    assert "app.json has more than 16777216 bytes" in verify().stderr


def test_the_statement_and_the_key_are_printed_as_they_are(penstock: Run, service: Service) -> None:
    job = service.add()
    printed = penstock("job", "provenance", job)
    assert json.loads(printed.stdout)["payloadType"] == statement.PAYLOAD
    assert penstock("job", "provenance", "--key").stdout == "-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----\n"
    for words in ([], [job, "--key"]):
        wrong = penstock("job", "provenance", *words)
        assert (wrong.exit_code, "give a JOB, or --key" in wrong.stderr) == (2, True)
