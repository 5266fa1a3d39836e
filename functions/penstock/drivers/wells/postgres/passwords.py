"""The admin's password, to which the site has a reference, and the password of each lease, which is derived.

References are those of drivers/secrets.py, or `file:/home/ada/.penstock/postgres`: the content of a file, without the
end of its line, because functions of the local cloud have no secrets store.

The server never receives a lease's password, only its SCRAM verifier, because the server may log statements. [SEC-1]
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping
from pathlib import Path

from penstock.drivers import secrets
from penstock.drivers.secrets import Resolve
from penstock.kernel.errors import Misconfigured

FILE = "file:"
REFERENCE = rf"{FILE}/[^\x00]+|{secrets.REFERENCE}"


def resolver(environment: Mapping[str, str]) -> Resolve:
    """A function from reference to value. It raises Misconfigured, or Unknown if the store does not answer."""
    resolve = secrets.resolver(environment)
    return lambda reference: _read(reference) if reference.startswith(FILE) else resolve(reference)


def _read(reference: str) -> str:
    try:
        found = Path(reference.removeprefix(FILE)).read_text().rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise Misconfigured(f"the password file {reference} cannot be read: {type(error).__name__}") from error
    if not found:
        raise Misconfigured(f"the password file {reference} is empty")
    return found


ROUNDS = 4096
"""PostgreSQL's own default. More would not help, because the password has 256 bits."""


def password(key: str) -> str:
    """The password of a lease, derived from its secret. It is hexadecimal, so it never needs quotes."""
    return _mac(key.encode(), b"postgres password").hex()


def verifier(key: str) -> str:
    """The SCRAM verifier of the password, as in RFC 5803. It is always the same, and does not reveal the password."""
    salt = _mac(key.encode(), b"postgres salt")[:16]
    salted = hashlib.pbkdf2_hmac("sha256", password(key).encode(), salt, ROUNDS)
    stored = hashlib.sha256(_mac(salted, b"Client Key")).digest()
    server = _mac(salted, b"Server Key")
    return f"SCRAM-SHA-256${ROUNDS}:{_b64(salt)}${_b64(stored)}:{_b64(server)}"


def _mac(key: bytes, of: bytes) -> bytes:
    return hmac.new(key, of, hashlib.sha256).digest()


def _b64(value: bytes) -> str:
    return base64.b64encode(value).decode()
