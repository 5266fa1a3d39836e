"""The settings of the wells in AWS (`sts`, `s3`), and their checks. All faults are reported together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.domain.site.sections import duration
from penstock.drivers.checks import sentences
from penstock.drivers.wells.aws import policies
from penstock.kernel.errors import Misconfigured
from penstock.kernel.frozen import dataclass
from penstock.toml.checks import Check, Place, listed, matching, number, record

LEAST, MOST = 15 * 60, 60 * 60
"""Limits of a session's seconds. STS's maximum is an hour for callers that use a role themselves, as functions do."""

MANAGED = 10
"""The most managed policies of a session. Source: AWS STS, AssumeRole."""

SETTLE = 30
"""Default seconds until a denial is assumed to be effective everywhere in AWS."""


@dataclass(frozen=True)
class RoleSettings:
    """The role of which sessions are lent, how long they last, and their policies."""

    role: str
    region: str
    duration: int = MOST
    external_id: str = ""
    policy: str = ""
    policies: tuple[str, ...] = ()

    @property
    def role_name(self) -> str:
        """The role's name, as IAM's calls take it."""
        return self.role.rpartition("/")[2]

    @property
    def partition(self) -> str:
        """The partition in the role's ARN, such as `aws`."""
        return self.role.split(":")[1]


@dataclass(frozen=True)
class BucketSettings:
    """The bucket, and the prefix in it, below which an `s3` well lends prefixes."""

    bucket: str
    prefix: str = ""
    settle: int = SETTLE


def _session_duration(value: object, place: Place) -> int:
    found: int = duration(MOST, "1 hour")(value, place)
    if found < LEAST:
        place.fault(f"{place.label} must be from 15 minutes to 1 hour", "sessions are renewed while the lease lasts")
    return found


_arn = r"arn:[a-z-]+:iam::\d{12}:role/[\w+=,.@/-]+"


ROLE: Mapping[str, Check] = {
    "role": matching(_arn, "the ARN of a role", 'like "arn:aws:iam::123456789012:role/jobs"'),
    "region": matching(r"[a-z]{2,}(-[a-z]+)+-\d+", "a region", 'like "eu-west-1"'),
}


OF_ROLE: Mapping[str, Check] = {
    "duration": _session_duration,
    "external_id": matching(r"[\w+=,.@:/-]{2,}", "an external id", "two or more letters, digits and +=,.@:/-_"),
}


_managed = matching(
    r"arn:[a-z-]+:iam::(\d{12}|aws):policy/[\w+=,.@/-]+", "the ARN of a policy", 'like "arn:aws:iam::aws:policy/…"'
)


_sts = record(
    ROLE,
    {**OF_ROLE, "policy": policies.document, "policies": listed(_managed, MANAGED, "ARNs of managed policies")},
    '{ role = "arn:aws:iam::123456789012:role/jobs", region = "eu-west-1", policy = [{ … }] }',
)


_s3 = record(
    {**ROLE, "bucket": matching(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]", "a bucket", "its name, without s3://")},
    {
        **OF_ROLE,
        "prefix": matching(r"[\w.-]+(/[\w.-]+)*", "a prefix", 'without slashes at its ends, like "jobs/scratch"'),
        "settle": number(0, 600),
    },
    '{ role = "arn:aws:iam::123456789012:role/scratch", region = "eu-west-1", bucket = "scratch" }',
)


def sts(given: Mapping[str, Any]) -> RoleSettings:
    """The settings of an `sts` well. Raises Misconfigured."""
    return RoleSettings(**_read(_checked_sts, given, "sts"))


def s3(given: Mapping[str, Any]) -> tuple[RoleSettings, BucketSettings]:
    """The settings of an `s3` well. Raises Misconfigured."""
    found = _read(_s3, given, "s3")
    space = {key: found.pop(key) for key in ("bucket", "prefix", "settle") if key in found}
    return RoleSettings(**found), BucketSettings(**space)


def sts_complaints(given: Mapping[str, Any]) -> Sequence[str]:
    """What is wrong with the settings of an `sts` well, one sentence each."""
    return _complaints(_checked_sts, given, "sts")


def s3_complaints(given: Mapping[str, Any]) -> Sequence[str]:
    """What is wrong with the settings of an `s3` well, one sentence each."""
    return _complaints(_s3, given, "s3")


def _checked_sts(value: object, place: Place) -> dict[str, Any]:
    before = len(place.faults)
    found: dict[str, Any] = _sts(value, place)
    if len(place.faults) > before:
        return found
    policy, arns = found.get("policy", ""), found.get("policies", ())
    if not policy and not arns:
        text = f"{place.label} has neither `policy` nor `policies`: its sessions could do whatever the role may"
        place.fault(text, "add a policy with what jobs may do")
    elif (size := policies.size(policy, arns)) > policies.MOST:
        text = f"`policy` and `policies` of {place.label} can have {size} characters after filling in"
        (place / "policy").fault(
            f"{text}; AWS allows {policies.MOST}", "move what is the same for all jobs into the role's own policy"
        )
    return found


def _complaints(check: Check, given: Mapping[str, Any], name: str) -> Sequence[str]:
    top = Place((name,))
    check(given, top)
    return sentences(top)


def _read(check: Check, given: Mapping[str, Any], name: str) -> dict[str, Any]:
    top = Place((name,))
    found: dict[str, Any] = check(given, top)
    if top.faults:
        raise Misconfigured("; ".join(sentences(top)))
    return found
