"""What identity tokens are signed with: keys of AWS KMS, which never leave it.

What is sealed with a key of AWS KMS, which never leaves it.

What a GitHub App proves itself with: a signature of its private key, which is in AWS KMS and never leaves it.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from penstock.domain.users.oidc import PublicKey

if TYPE_CHECKING:
    from mypy_boto3_kms import KMSClient


class KmsSigner:
    """Signs with the first of some keys, given by ARN or id. KMS's own log (CloudTrail) has each signature."""

    def __init__(self, client: KMSClient, keys: Sequence[str]) -> None:
        self._client = client
        self._keys = keys
        self._public: tuple[PublicKey, ...] = ()

    def kid(self) -> str:
        """The id of the key, as the stack's owner finds it in KMS."""
        return _kid(self._keys[0])

    def sign(self, message: bytes) -> bytes:
        """One call. KMS is shown the digest: a message may be longer than the 4 KiB that it takes."""
        answer = self._client.sign(
            KeyId=self._keys[0],
            Message=hashlib.sha256(message).digest(),
            MessageType="DIGEST",
            SigningAlgorithm="RSASSA_PKCS1_V1_5_SHA_256",
        )
        return answer["Signature"]

    def keys(self) -> Sequence[PublicKey]:
        """One call for each key, once: the public half of a key does not change."""
        self._public = self._public or tuple(map(self._read, self._keys))
        return self._public

    def _read(self, key: str) -> PublicKey:
        from asn1crypto.keys import PublicKeyInfo  # only whoever publishes keys pays for it

        found = PublicKeyInfo.load(self._client.get_public_key(KeyId=key)["PublicKey"])["public_key"].parsed.native
        return PublicKey(_kid(key), found["modulus"], found["public_exponent"])


def _kid(key: str) -> str:
    return key.rpartition("/")[2]


PIECE = 4096
"""The most bytes that one call encrypts. Source: AWS KMS, Encrypt."""

WRONG = ("InvalidCiphertextException", "IncorrectKeyException")


class KmsVault:
    """Seals piece by piece. The key's own log (CloudTrail) names `of` for each opening."""

    def __init__(self, client: KMSClient, key: str) -> None:
        self._client = client
        self._key = key

    def seal(self, secret: bytes, of: Mapping[str, str]) -> str:
        """One call for each 4 KiB."""
        pieces = [secret[at : at + PIECE] for at in range(0, len(secret), PIECE)] or [b"\0"]
        return ".".join(self._seal(piece, {**of, "piece": f"{at}/{len(pieces)}"}) for at, piece in enumerate(pieces))

    def open(self, sealed: str, of: Mapping[str, str]) -> bytes:
        """All pieces, in their order. Raises ValueError for what was not sealed as this."""
        pieces = sealed.split(".")
        try:
            return b"".join(
                self._open(piece, {**of, "piece": f"{at}/{len(pieces)}"}) for at, piece in enumerate(pieces)
            )
        except ClientError as error:
            if error.response.get("Error", {}).get("Code") in WRONG:
                raise ValueError("this was not sealed as that") from error
            raise

    def _seal(self, piece: bytes, of: Mapping[str, str]) -> str:
        blob = self._client.encrypt(KeyId=self._key, Plaintext=piece, EncryptionContext=of)["CiphertextBlob"]
        return base64.b64encode(blob).decode()

    def _open(self, piece: str, of: Mapping[str, str]) -> bytes:
        blob = base64.b64decode(piece)
        return self._client.decrypt(KeyId=self._key, CiphertextBlob=blob, EncryptionContext=of)["Plaintext"]


BEFORE = 60
"""Seconds that GitHub's clock may be behind ours. Source: GitHub, "Generating a JSON Web Token for a GitHub App"."""

LIFE = 540
"""Seconds that a proof is good for; GitHub takes ten minutes at most."""

KEPT = 240
"""Seconds that one proof is shown again: a call of KMS for each call of GitHub would be twice as slow."""


class KmsAppKey:
    """Makes the App's JSON Web Tokens (RS256) with an RSA key of KMS that signs and does nothing else."""

    def __init__(self, client: KMSClient, key: str) -> None:
        self._client = client
        self._key = key
        self._made: dict[int, tuple[float, str]] = {}

    def proof(self, app: int, now: datetime) -> str:
        """A token that proves for some minutes that it is the App that asks."""
        time = now.timestamp()
        made = self._made.get(app)
        if made is None or time - made[0] >= KEPT:
            made = time, self._sign(app, int(time))
            self._made[app] = made
        return made[1]

    def _sign(self, app: int, time: int) -> str:
        claims = {"iat": time - BEFORE, "exp": time + LIFE, "iss": str(app)}
        head = f"{_part({'alg': 'RS256', 'typ': 'JWT'})}.{_part(claims)}"
        signed = self._client.sign(
            KeyId=self._key, Message=head.encode(), MessageType="RAW", SigningAlgorithm="RSASSA_PKCS1_V1_5_SHA_256"
        )
        return f"{head}.{_text(signed['Signature'])}"


def _part(value: dict[str, Any]) -> str:
    return _text(json.dumps(value, separators=(",", ":")).encode())


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
