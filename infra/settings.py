"""What may differ between two deployments of the same stack."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aws_cdk import RemovalPolicy

from penstock.domain.metrics import Level

KEYS = 5
"""How many keys of identity tokens there may be at once."""


@dataclass(frozen=True)
class Settings:
    """Set with `cdk deploy -c name=… -c ephemeral=true -c ec2=true -c ec2_role=arn:… -c libcloud=true` and so on.

    `ec2` lets factories make machines in EC2; `ec2_role` is the role that they may give them, if any.
    `libcloud` brings the library for other clouds, and lets factories read the credentials for them.
    `well_secrets` are the names of those that wells may read, `accounts_lambdas` the ARNs of the functions that the
    accounts well may have clean; `well_subnets` and `well_security_groups` the network that wells work in, if their
    servers are in one: ids. All are separated by commas. `drivers` is a list of other people's packages, in pip's
    format, that drivers of theirs are in.
    `sts_roles` are the roles that wells may lend, by ARN, with commas between them; `sts_boundary` is the permissions
    boundary that all of them have, and `s3_well` the bucket, or bucket/prefix, of which they may lend prefixes.
    `identity_keys` names the keys of identity tokens: the first signs, all are published, and one that is not named any
    more is given up (docs/users/identity.md).
    `github` brings the front end for GitHub: infra/github.py.
    `metrics` says how much is told of the site: off, site or pools; `alarm_email` who is told of alarms, if anybody.
    """

    name: str = "Penstock"
    ephemeral: bool = False
    ec2: bool = False
    ec2_role: str = ""
    libcloud: bool = False
    well_secrets: tuple[str, ...] = ()
    well_subnets: tuple[str, ...] = ()
    well_security_groups: tuple[str, ...] = ()
    accounts_lambdas: tuple[str, ...] = ()
    drivers: str = ""
    sts_roles: tuple[str, ...] = ()
    sts_boundary: str = ""
    s3_well: str = ""
    identity_keys: tuple[str, ...] = ("1",)
    metrics: Level = Level.SITE
    alarm_email: str = ""
    github: bool = False

    def __post_init__(self) -> None:
        """Raises ValueError for a network or keys that are none, and for what may not be lent like this."""
        if self.well_subnets or self.well_security_groups:
            _check("well_subnets", "subnet-", self.well_subnets)
            _check("well_security_groups", "sg-", self.well_security_groups)
        _check_keys(self.identity_keys)
        if self.sts_roles and not self.sts_boundary:
            raise ValueError("sts_roles needs sts_boundary: who may put a policy on a role can do all that it bounds")
        if self.s3_well and not self.sts_roles:
            raise ValueError("s3_well needs sts_roles: what is lent of a bucket is lent with sessions of a role")

    @staticmethod
    def of(context: Mapping[str, Any]) -> Settings:
        """Settings from the CDK's context, where a value given on the command line is text."""

        def is_set(key: str) -> bool:
            return str(context.get(key, False)).lower() in ("true", "1", "yes")

        def listed(key: str) -> tuple[str, ...]:
            return tuple(each.strip() for each in str(context.get(key, "")).split(",") if each.strip())

        return Settings(
            name=str(context.get("name", Settings.name)),
            ephemeral=is_set("ephemeral"),
            ec2=is_set("ec2"),
            ec2_role=str(context.get("ec2_role", "")),
            libcloud=is_set("libcloud"),
            well_secrets=listed("well_secrets"),
            well_subnets=listed("well_subnets"),
            well_security_groups=listed("well_security_groups"),
            accounts_lambdas=listed("accounts_lambdas"),
            drivers=str(context.get("drivers", "")),
            sts_roles=listed("sts_roles"),
            sts_boundary=str(context.get("sts_boundary", "")),
            s3_well=str(context.get("s3_well", "")),
            identity_keys=listed("identity_keys") or Settings.identity_keys,
            metrics=Level(str(context.get("metrics", Settings.metrics))),
            alarm_email=str(context.get("alarm_email", "")),
            github=is_set("github"),
        )

    @property
    def keep(self) -> RemovalPolicy:
        """What becomes of data when the stack is deleted."""
        return RemovalPolicy.DESTROY if self.ephemeral else RemovalPolicy.RETAIN


def _check(setting: str, start: str, ids: tuple[str, ...]) -> None:
    if not ids or not all(each.startswith(start) for each in ids):
        raise ValueError(f"{setting} must be ids like {start}0a1b2c3d with commas between them, not {','.join(ids)!r}")


def _check_keys(names: tuple[str, ...]) -> None:
    right = all(re.fullmatch("[0-9A-Za-z]{1,16}", each) for each in names)
    if not right or len(set(names)) < len(names) or not 1 <= len(names) <= KEYS:
        raise ValueError(f"identity_keys must be 1 to {KEYS} names of letters and digits, each once, not {names!r}")
