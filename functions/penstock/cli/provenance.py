"""Checks a file against the signed statement about it: which job made it, for whom, from what. Needs no service.

Only what was signed is read. Whoever verifies says whose key counts.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from penstock.cli.errors import CliError, Refused
from penstock.cli.transfer import describe
from penstock.domain.artifacts.volumes import composite
from penstock.domain.jobs import statement

STATEMENT_BYTES = 16 * 1024**2
"""The longest file with a statement that is read; the service makes none as long."""


class Unverified(CliError):
    """The file is not what the statement is about, or nobody who counts has signed it."""

    exit_code = 1


@dataclass(frozen=True)
class Verified:
    """What a verified statement says of a file: `name` is the path that it had in the job.

    `commit` is the commit, and `ref` its branch, as the service knew them: "" if it did not. `pull_request` is the
    number of the pull request that it came with, "" for others.
    """

    file: str
    name: str
    owner: str
    job: str
    job_name: str
    service: str
    started: str
    repository: str
    commit: str
    ref: str
    pull_request: str


def read_key(path: Path) -> ec.EllipticCurvePublicKey:
    """A public key of the curve P-256. Raises Refused."""
    hint = "`penstock job provenance --key` prints the service's"
    try:
        key = load_pem_public_key(_read(path))
    except (ValueError, UnsupportedAlgorithm) as error:
        raise Refused(f"{path} holds no public key in PEM", hint) from error
    if not isinstance(key, ec.EllipticCurvePublicKey):
        raise Refused(f"{path} holds a key of another kind: statements are signed with ECDSA", hint)
    return key


def verify(file: Path, stated: Path, key: ec.EllipticCurvePublicKey) -> Verified:
    """What the signed statement says of a file. Raises Unverified, and Refused for a file that cannot be read."""
    said = _signed(stated, key)
    try:
        name = _name_of(file, said)
        return _verified(file, name, said["predicate"])
    except (AttributeError, KeyError, TypeError) as error:
        raise Unverified(f"{stated} is signed, and states nothing that this program knows") from error


def _signed(path: Path, key: ec.EllipticCurvePublicKey) -> Mapping[str, Any]:
    """The statement in an envelope, if it has a signature of the key."""
    try:
        envelope = json.loads(_read(path))
        body = base64.b64decode(envelope["payload"], validate=True)
        signatures = [base64.b64decode(each["sig"], validate=True) for each in envelope["signatures"]]
        kind = str(envelope["payloadType"])
    except (ValueError, KeyError, TypeError, binascii.Error, RecursionError) as error:
        raise Refused(f"{path} is no DSSE envelope", "`penstock job provenance JOB` prints one") from error
    if not any(_is_of(key, signature, statement.signed_bytes(body, kind)) for signature in signatures):
        raise Unverified(
            f"{path} was not signed with this key, or was changed since", "take the key from whom you trust"
        )
    said = json.loads(body)
    types = (kind, said.get("_type"), said.get("predicateType")) if isinstance(said, dict) else ()
    if types != (statement.PAYLOAD, statement.STATEMENT, statement.PREDICATE):
        raise Unverified(f"{path} is signed, and no statement of where a file comes from")
    return said  # type: ignore[no-any-return]  # a dictionary, as was just checked


def _is_of(key: ec.EllipticCurvePublicKey, signature: bytes, message: bytes) -> bool:
    try:
        key.verify(signature, message, ec.ECDSA(hashes.SHA256()))
    except InvalidSignature:
        return False
    return True


def _name_of(file: Path, said: Mapping[str, Any]) -> str:
    """The path that a file had in the job: that of the output with its digest."""
    here = describe(file)
    known = {("sha256", here.sha256), (statement.PARTS, composite(here.parts or (here.sha256,)))}
    for subject in said["subject"]:
        if known.intersection(subject["digest"].items()):
            return str(subject["name"])
    why = f"{file} is none of the files that the statement is about: its SHA-256 is {here.sha256}"
    raise Unverified(why, f"it is about {', '.join(_some(said['subject']))}")


def _some(subjects: list[Mapping[str, Any]]) -> Iterator[str]:
    yield from (str(each["name"]) for each in subjects[:5])
    if len(subjects) > 5:
        yield f"and {len(subjects) - 5} more"


def _verified(file: Path, name: str, predicate: Mapping[str, Any]) -> Verified:
    run, definition = predicate["runDetails"], predicate["buildDefinition"]
    about = run["metadata"]
    source: Mapping[str, Any] = next(
        (each for each in definition["resolvedDependencies"] if each.get("name") == "source"), {}
    )
    marks = source.get("annotations", {})
    return Verified(
        file=str(file),
        name=name,
        owner=about["penstock_owner"],
        job=about["penstock_job"],
        job_name=about["penstock_name"],
        service=run["builder"]["id"],
        started=about["startedOn"],
        repository=str(source.get("uri", "")).removeprefix("git+"),
        commit=source.get("digest", {}).get("gitCommit", ""),
        ref=marks.get("ref", ""),
        pull_request=marks.get("pullRequest", ""),
    )


def _read(path: Path) -> bytes:
    try:
        if path.stat().st_size > STATEMENT_BYTES:
            raise Refused(f"{path} has more than {STATEMENT_BYTES} bytes", "it is no statement, and no key")
        return path.read_bytes()
    except OSError as error:
        raise Refused(f"can't read {path}: {error.strerror}", "give the path of a file") from error
