"""Who signs identity documents, in AWS's place."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from tests.ec2.fake import ACCOUNT

NAME = x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Amazon Web Services LLC")])
DAY = datetime(2024, 4, 29, tzinfo=UTC)
INSTANCE = "i-1234567890abcdef0"


@dataclass(frozen=True)
class Authority:
    """Who signs documents, in AWS's place."""

    secret: Any
    pem: str

    def sign(self, text: str) -> str:
        return base64.b64encode(self.secret.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256())).decode()

    def shown(self, **told: Any) -> dict[str, str]:
        """What a machine shows, as AWS lays it out: with line ends in both."""
        document = json.dumps({"accountId": ACCOUNT, "instanceId": INSTANCE, "region": "eu-west-1"} | told, indent=2)
        signature = self.sign(document)
        return {"document": document, "signature": f"{signature[:76]}\n{signature[76:]}"}


@cache
def authority(bits: int = 1024, serial: int = 1) -> Authority:
    """One with a key and a certificate of its own."""
    secret = rsa.generate_private_key(65537, bits)
    return Authority(secret, certificate(secret, serial))


def certificate(secret: Any, serial: int = 1) -> str:
    made = (
        x509.CertificateBuilder().subject_name(NAME).issuer_name(NAME).public_key(secret.public_key())
        .serial_number(serial).not_valid_before(DAY).not_valid_after(DAY + timedelta(days=1826))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True).sign(secret, hashes.SHA256())
    )  # fmt: skip
    return made.public_bytes(Encoding.PEM).decode()
