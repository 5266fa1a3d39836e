"""What is sealed with a key of AWS KMS, which never leaves it."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from mypy_boto3_kms import KMSClient

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
