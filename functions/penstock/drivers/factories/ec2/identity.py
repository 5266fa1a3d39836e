"""Checks instance identity documents: whether the machine that says hello is the one that was launched.

AWS signs the document with RSA and SHA-256, and publishes the certificate of each region. The factory's settings
contain the trusted certificates. The check needs no native library and calls no service.

Sources: "Instance identity documents" and "AWS public certificates" in the EC2 User Guide; RFC 8017, section 8.2.2 and
appendix A.2.4, for the signature; RFC 5280, section 4.1, for where a certificate has its key.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from penstock.kernel.frozen import dataclass

METADATA = "http://169.254.169.254"
"""The instance metadata service."""

LEAST_BITS = 1024
"""The size of AWS's own keys for this signature."""

PEM = re.compile(r"-----BEGIN CERTIFICATE-----(.+?)-----END CERTIFICATE-----", re.S)
RSA = bytes.fromhex("2a864886f70d010101")
SHA256 = bytes.fromhex("3031300d060960864801650304020105000420")
SEQUENCE, VERSION = 0x30, 0xA0


@dataclass(frozen=True)
class PublicKey:
    """An RSA public key."""

    modulus: int
    exponent: int


def mismatch(shown: Mapping[str, str], keys: Sequence[PublicKey], region: str, made: Mapping[str, Any]) -> str | None:
    """Why `shown` is not the identity of the machine with the metadata `made`; None if it is."""
    document, signature = shown.get("document", ""), shown.get("signature", "")
    if not document or not signature:
        return "it showed no identity document"
    try:
        text, signed = document.encode(), base64.b64decode("".join(signature.split()), validate=True)
        if not any(is_signed(text, signed, key) for key in keys):
            return "its identity document is not signed with a trusted certificate of AWS"
        claims = json.loads(text)
    except ValueError:
        return "its identity document cannot be read"
    wanted = {"region": region, "accountId": made.get("account"), "instanceId": made.get("instance")}
    for name, value in wanted.items():
        if not value or claims.get(name) != value:
            return f"its identity document has {name} {claims.get(name)}, but the launched machine has {value}"
    return None


def is_signed(text: bytes, signature: bytes, key: PublicKey) -> bool:
    """RSASSA-PKCS1-v1_5 with SHA-256. The expected content of the signature is built here and compared as a whole."""
    size = (key.modulus.bit_length() + 7) // 8
    number = int.from_bytes(signature, "big")
    if len(signature) != size or number >= key.modulus:
        return False
    digest = SHA256 + hashlib.sha256(text).digest()
    wanted = b"\x00\x01" + b"\xff" * (size - 3 - len(digest)) + b"\x00" + digest
    return hmac.compare_digest(pow(number, key.exponent, key.modulus).to_bytes(size, "big"), wanted)


def read_certificates(pem: str) -> tuple[PublicKey, ...]:
    """The public keys of PEM certificates. Raises ValueError if there is none, or one has no RSA key."""
    try:
        found = tuple(_key(base64.b64decode("".join(body.split()), validate=True)) for body in PEM.findall(pem))
    except (IndexError, ValueError) as error:
        raise ValueError(f"a certificate cannot be read: {error}") from error
    if not found:
        raise ValueError("it contains no certificate")
    return found


def _key(certificate: bytes) -> PublicKey:
    """The public key of a trusted certificate. Nothing else in it is read."""
    fields = _parts(_parts(_parts(certificate)[0][1])[0][1])
    of_subject = fields[6 if fields[0][0] == VERSION else 5][1]
    (_, algorithm), (_, bits) = _parts(of_subject)
    if _parts(algorithm)[0][1] != RSA:
        raise ValueError("its key is not an RSA key")
    (_, modulus), (_, exponent) = _parts(_parts(bits[1:])[0][1])
    key = PublicKey(int.from_bytes(modulus, "big"), int.from_bytes(exponent, "big"))
    if key.modulus.bit_length() < LEAST_BITS:
        raise ValueError(f"its key has fewer than {LEAST_BITS} bits")
    return key


def _parts(data: bytes) -> list[tuple[int, bytes]]:
    """The tags and contents of consecutive DER values."""
    found, at = [], 0
    while at < len(data):
        tag, size, at = data[at], data[at + 1], at + 2
        if size >= 0x80:
            more = size - 0x80
            size, at = int.from_bytes(data[at : at + more], "big"), at + more
        if at + size > len(data):
            raise ValueError("it is cut short")
        found.append((tag, data[at : at + size]))
        at += size
    return found
