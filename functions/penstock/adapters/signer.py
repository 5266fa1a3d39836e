"""What identity tokens are signed with: keys of AWS KMS, which never leave it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.domain.identity import PublicKey

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
