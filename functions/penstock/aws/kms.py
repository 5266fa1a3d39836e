"""Four uses of AWS KMS, whose keys never leave it: signing identity tokens and statements, sealing secrets, proving a
GitHub App.
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
    """Signs identity tokens with the first of some keys, given by ARN or id. CloudTrail records each signature."""

    def __init__(self, client: KMSClient, keys: Sequence[str]) -> None:
        self._client = client
        self._keys = keys
        self._public: tuple[PublicKey, ...] = ()

    def kid(self) -> str:
        """The id of the signing key in KMS."""
        return _kid(self._keys[0])

    def sign(self, message: bytes) -> bytes:
        """One call. KMS gets the digest, because it takes messages of at most 4 KiB."""
        answer = self._client.sign(
            KeyId=self._keys[0],
            Message=hashlib.sha256(message).digest(),
            MessageType="DIGEST",
            SigningAlgorithm="RSASSA_PKCS1_V1_5_SHA_256",
        )
        return answer["Signature"]

    def keys(self) -> Sequence[PublicKey]:
        """One call for each key, cached, because the public half of a key does not change."""
        self._public = self._public or tuple(map(self._read, self._keys))
        return self._public

    def _read(self, key: str) -> PublicKey:
        from asn1crypto.keys import PublicKeyInfo  # imported only where keys are published, because it is slow

        found = PublicKeyInfo.load(self._client.get_public_key(KeyId=key)["PublicKey"])["public_key"].parsed.native
        return PublicKey(_kid(key), found["modulus"], found["public_exponent"])


def _kid(key: str) -> str:
    return key.rpartition("/")[2]


class KmsAttestor:
    """Signs statements about outputs, with a key of the curve P-256, given by ARN or id."""

    def __init__(self, client: KMSClient, key: str) -> None:
        self._client = client
        self._key = key
        self._public = b""

    def kid(self) -> str:
        """The id of the key in KMS."""
        return _kid(self._key)

    def sign(self, message: bytes) -> bytes:
        """One call. KMS gets the digest, because it takes messages of at most 4 KiB."""
        digest = hashlib.sha256(message).digest()
        answer = self._client.sign(
            KeyId=self._key, Message=digest, MessageType="DIGEST", SigningAlgorithm="ECDSA_SHA_256"
        )
        return answer["Signature"]

    def public_key(self) -> bytes:
        """One call, cached, because the public half of a key does not change."""
        self._public = self._public or self._client.get_public_key(KeyId=self._key)["PublicKey"]
        return self._public


PIECE_BYTES = 4096
"""The most bytes that one call encrypts. Source: AWS KMS, Encrypt."""

INVALID_CODES = ("InvalidCiphertextException", "IncorrectKeyException")


class KmsVault:
    """Encrypts secrets in pieces, with `of` as encryption context, which CloudTrail records for each decryption."""

    def __init__(self, client: KMSClient, key: str) -> None:
        self._client = client
        self._key = key

    def seal(self, secret: bytes, of: Mapping[str, str]) -> str:
        """One call for each 4 KiB."""
        pieces = [secret[at : at + PIECE_BYTES] for at in range(0, len(secret), PIECE_BYTES)] or [b"\0"]
        return ".".join(self._seal(piece, {**of, "piece": f"{at}/{len(pieces)}"}) for at, piece in enumerate(pieces))

    def open(self, sealed: str, of: Mapping[str, str]) -> bytes:
        """Decrypt all pieces in order. Raises ValueError if they were sealed with another `of`."""
        pieces = sealed.split(".")
        try:
            return b"".join(
                self._open(piece, {**of, "piece": f"{at}/{len(pieces)}"}) for at, piece in enumerate(pieces)
            )
        except ClientError as error:
            if error.response.get("Error", {}).get("Code") in INVALID_CODES:
                raise ValueError("the secret was not sealed for this use") from error
            raise

    def _seal(self, piece: bytes, of: Mapping[str, str]) -> str:
        blob = self._client.encrypt(KeyId=self._key, Plaintext=piece, EncryptionContext=of)["CiphertextBlob"]
        return base64.b64encode(blob).decode()

    def _open(self, piece: str, of: Mapping[str, str]) -> bytes:
        blob = base64.b64decode(piece)
        return self._client.decrypt(KeyId=self._key, CiphertextBlob=blob, EncryptionContext=of)["Plaintext"]


CLOCK_SKEW = 60
"""Seconds that GitHub's clock may be behind ours. Source: GitHub, "Generating a JSON Web Token for a GitHub App"."""

LIFETIME = 540
"""Seconds that a proof is valid; GitHub accepts at most ten minutes."""

REUSE_SECONDS = 240
"""Seconds for which a proof is reused, to avoid a call of KMS for each call of GitHub."""


class KmsAppKey:
    """Makes the GitHub App's JSON Web Tokens (RS256), with an RSA key of KMS that can only sign."""

    def __init__(self, client: KMSClient, key: str) -> None:
        self._client = client
        self._key = key
        self._proofs: dict[int, tuple[float, str]] = {}

    def proof(self, app: int, now: datetime) -> str:
        """A token that authenticates the App for some minutes."""
        time = now.timestamp()
        made = self._proofs.get(app)
        if made is None or time - made[0] >= REUSE_SECONDS:
            made = time, self._sign(app, int(time))
            self._proofs[app] = made
        return made[1]

    def _sign(self, app: int, time: int) -> str:
        claims = {"iat": time - CLOCK_SKEW, "exp": time + LIFETIME, "iss": str(app)}
        head = f"{_part({'alg': 'RS256', 'typ': 'JWT'})}.{_part(claims)}"
        signed = self._client.sign(
            KeyId=self._key, Message=head.encode(), MessageType="RAW", SigningAlgorithm="RSASSA_PKCS1_V1_5_SHA_256"
        )
        return f"{head}.{_text(signed['Signature'])}"


def _part(value: dict[str, Any]) -> str:
    return _text(json.dumps(value, separators=(",", ":")).encode())


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
