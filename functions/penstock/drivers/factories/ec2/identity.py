"""Whether a machine is the one that was launched, by its signed instance identity document.

AWS signs the document with RSA and SHA-256, and publishes the certificate of each region. A site gives the factory
those that it trusts; nothing native is needed to check a signature with a public key, and nobody is asked.

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
from dataclasses import dataclass
from typing import Any

METADATA = "http://169.254.169.254"
"""Where a machine asks who it is."""

LEAST_BITS = 1024
"""AWS's own keys for this signature have no more."""

PEM = re.compile(r"-----BEGIN CERTIFICATE-----(.+?)-----END CERTIFICATE-----", re.S)
RSA = bytes.fromhex("2a864886f70d010101")
SHA256 = bytes.fromhex("3031300d060960864801650304020105000420")
SEQUENCE, VERSION = 0x30, 0xA0


@dataclass(frozen=True)
class PublicKey:
    """An RSA key."""

    modulus: int
    exponent: int


def stranger(shown: Mapping[str, str], keys: Sequence[PublicKey], region: str, made: Mapping[str, Any]) -> str | None:
    """Why the machine that shows this is not the one that was made; None when it is."""
    document, signature = shown.get("document", ""), shown.get("signature", "")
    if not document or not signature:
        return "it showed no identity document"
    try:
        text, signed = document.encode(), base64.b64decode("".join(signature.split()), validate=True)
        if not any(is_signed(text, signed, key) for key in keys):
            return "its identity document is not signed by AWS"
        told = json.loads(text)
    except ValueError:
        return "its identity document cannot be read"
    wanted = {"region": region, "accountId": made.get("account"), "instanceId": made.get("instance")}
    for name, value in wanted.items():
        if not value or told.get(name) != value:
            return f"its identity document says {name} {told.get(name)}, and what was made has {value}"
    return None


def is_signed(text: bytes, signature: bytes, key: PublicKey) -> bool:
    """RSASSA-PKCS1-v1_5 with SHA-256: what must stand in the signature is made here, and compared whole."""
    size = (key.modulus.bit_length() + 7) // 8
    number = int.from_bytes(signature, "big")
    if len(signature) != size or number >= key.modulus:
        return False
    digest = SHA256 + hashlib.sha256(text).digest()
    wanted = b"\x00\x01" + b"\xff" * (size - 3 - len(digest)) + b"\x00" + digest
    return hmac.compare_digest(pow(number, key.exponent, key.modulus).to_bytes(size, "big"), wanted)


def certified(pem: str) -> tuple[PublicKey, ...]:
    """The keys of certificates. Raises ValueError for a text that has none, or one that is no RSA key's."""
    try:
        found = tuple(_key(base64.b64decode("".join(body.split()), validate=True)) for body in PEM.findall(pem))
    except (IndexError, ValueError) as error:
        raise ValueError(f"a certificate cannot be read: {error}") from error
    if not found:
        raise ValueError("there is no certificate in it")
    return found


def _key(certificate: bytes) -> PublicKey:
    """The public key of a certificate, which is trusted: nothing else in it is looked at."""
    fields = _parts(_parts(_parts(certificate)[0][1])[0][1])
    of_subject = fields[6 if fields[0][0] == VERSION else 5][1]
    (_, algorithm), (_, bits) = _parts(of_subject)
    if _parts(algorithm)[0][1] != RSA:
        raise ValueError("its key is no RSA key")
    (_, modulus), (_, exponent) = _parts(_parts(bits[1:])[0][1])
    key = PublicKey(int.from_bytes(modulus, "big"), int.from_bytes(exponent, "big"))
    if key.modulus.bit_length() < LEAST_BITS:
        raise ValueError(f"its key has fewer than {LEAST_BITS} bits")
    return key


def _parts(data: bytes) -> list[tuple[int, bytes]]:
    """The tags and contents of DER values that follow one another."""
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
