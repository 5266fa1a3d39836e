"""A local cloud with the front end for GitHub, set up as docs/users/github.md says, and a GitHub on a local port.

The App is set up as an operator does it: its private key is brought into the KMS of the local cloud wrapped, and
nothing has it after that; the webhook is signed with the secret that the stack made.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.keywrap import aes_key_wrap_with_padding
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_der_public_key

from penstock.local import cloud
from penstock.local.state import StateFolder
from tests.e2e.conftest import SITE, Local
from tests.github.fake import APP, CLIENT_ID, CLIENT_SECRET, FakeGitHub, Repo, serving, signature
from tests.github.rig import CONFIG, JOBS

TABLE = """
[github]
app = {app}
api = "{url}"
client_id = "{client}"
repositories = ["oxide/*"]
"""


@dataclass
class Front:
    """The cloud, the GitHub, and one repository in it: ada may write to it."""

    local: Local
    fake: FakeGitHub
    repo: Repo
    secret: str
    sent: int = 0

    def commit(self, sha: str, **scripts: str) -> None:
        """A commit with job files."""
        self.repo.files[sha] = {f"{JOBS}/{name}.sh": text.encode() for name, text in scripts.items()}

    def say(self, name: str, payload: Any) -> None:
        """A webhook, signed, over the API."""
        self.sent += 1
        body = json.dumps(payload).encode()
        headers = {
            "x-hub-signature-256": signature(self.secret, body),
            "x-github-delivery": f"delivery-{self.sent}",
            "x-github-event": name,
        }
        answer = self.local.call("POST", "/v1/github/webhook", content=body, headers=headers)
        assert (answer.status_code, answer.json()) == (202, {"delivery": "stored"}), answer.text

    def check(self, name: str, sha: str, *, not_run: int = 0) -> dict[str, Any]:
        """Wait until the check run of a name on a commit is complete, maybe another than one that is known."""

        def complete() -> Any:
            named = [run for run in list(self.fake.runs.values()) if (run["name"], run["head_sha"]) == (name, sha)]
            return [run for run in named if run["id"] != not_run and run["status"] == "completed"]

        (found,) = self.local.until(complete)
        return dict(found)

    def running(self, name: str) -> dict[str, Any]:
        """Wait until a check run is in progress."""

        def is_in_progress() -> Any:
            runs = list(self.fake.runs.values())
            return [run for run in runs if run["name"] == name and run["status"] == "in_progress"]

        (found,) = self.local.until(is_in_progress)
        return dict(found)


@contextmanager
def front(folder: Path) -> Iterator[Front]:
    """Bring it up, and take it down."""
    private = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    fake = FakeGitHub(private.public_key(), lambda: datetime.now(UTC))
    place, site = StateFolder(folder / "state"), folder / "site.toml"
    with serving(fake) as url:
        site.write_text(SITE.read_text() + TABLE.format(app=APP, url=url, client=CLIENT_ID))
        try:
            running = cloud.up(report=print, config=site, tied=True, place=place, context={"github": "true"})
            local = Local(running, folder, place.key(), place)
            bring_in(local, private)
            yield _with_a_repository(local, fake)
        finally:
            cloud.down(print, place)


def _with_a_repository(local: Local, fake: FakeGitHub) -> Front:
    made = local.cli("user", "create", "oxide:hubris")
    assert made.returncode == 0, made.stderr
    repo = Repo("oxide/hubris", 55, rights={"ada": "write"})
    repo.files["main"] = {CONFIG: b"enable = true"}
    fake.repos[repo.id] = repo
    secrets = local.aws("secretsmanager")
    secrets.put_secret_value(SecretId=local.output("ClientSecret"), SecretString=CLIENT_SECRET)
    name = local.output("WebhookSecret")
    return Front(local, fake, repo, secrets.get_secret_value(SecretId=name)["SecretString"])


def bring_in(local: Local, private: rsa.RSAPrivateKey) -> None:
    """Bring the App's key into KMS, in the steps of docs/users/github.md."""
    kms, key = local.aws("kms"), local.output("AppKey")
    given = kms.get_parameters_for_import(
        KeyId=key, WrappingAlgorithm="RSA_AES_KEY_WRAP_SHA_256", WrappingKeySpec="RSA_4096"
    )
    wrapping = load_der_public_key(given["PublicKey"])
    assert isinstance(wrapping, rsa.RSAPublicKey)
    once = os.urandom(32)
    oaep = padding.OAEP(mgf=padding.MGF1(hashes.SHA256()), algorithm=hashes.SHA256(), label=None)
    material = private.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    kms.import_key_material(
        KeyId=key,
        ImportToken=given["ImportToken"],
        EncryptedKeyMaterial=wrapping.encrypt(once, oaep) + aes_key_wrap_with_padding(once, material),
        ExpirationModel="KEY_MATERIAL_DOES_NOT_EXPIRE",
    )


def unsigned(local: Local) -> httpx.Response:
    """A webhook of somebody who does not know the secret."""
    headers = {"x-hub-signature-256": "sha256=" + "0" * 64, "x-github-delivery": "x", "x-github-event": "push"}
    return local.call("POST", "/v1/github/webhook", content=b"{}", headers=headers)
