"""The password of a lease, and what the server may know of it.

The server is sent no password, but what it would make of one: its log may show every statement. [SEC-1]
"""

from __future__ import annotations

import base64
import hashlib
import hmac

ROUNDS = 4096
"""What PostgreSQL takes itself. More would gain nothing: the password has 256 bits."""


def password(key: str) -> str:
    """The password of a lease, from the secret that is its own: hexadecimal, so that it needs no quotes anywhere."""
    return _mac(key.encode(), b"postgres password").hex()


def verifier(key: str) -> str:
    """What the server keeps to check the password with, as in RFC 5803: the same each time, and no way back."""
    salt = _mac(key.encode(), b"postgres salt")[:16]
    salted = hashlib.pbkdf2_hmac("sha256", password(key).encode(), salt, ROUNDS)
    stored = hashlib.sha256(_mac(salted, b"Client Key")).digest()
    server = _mac(salted, b"Server Key")
    return f"SCRAM-SHA-256${ROUNDS}:{_b64(salt)}${_b64(stored)}:{_b64(server)}"


def _mac(key: bytes, of: bytes) -> bytes:
    return hmac.new(key, of, hashlib.sha256).digest()


def _b64(value: bytes) -> str:
    return base64.b64encode(value).decode()
