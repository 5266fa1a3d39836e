"""What a GitHub App proves itself with: a signature of its private key, which is in AWS KMS and never leaves it."""

from __future__ import annotations

import base64
import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mypy_boto3_kms import KMSClient

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
