"""The settings of a deployment, from the CDK's context."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Any

from aws_cdk import RemovalPolicy

from infra.sizes import WAITED_FOR
from penstock.domain.metrics import Level

KEYS = 5
"""The most keys for identity tokens."""

MIN_AT_ONCE, MAX_AT_ONCE = 2, 1000
"""What an event source's maximum concurrency may be. Source: CloudFormation, AWS::Lambda::EventSourceMapping
ScalingConfig.
"""

DOMAIN = re.compile(r"(?=.{4,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,63}")
CLUSTER = re.compile(r"arn:aws[a-z-]*:ecs:[a-z0-9-]+:\d{12}:cluster/[A-Za-z0-9_-]{1,255}")
CERTIFICATE = re.compile(r"arn:aws[a-z-]*:acm:us-east-1:\d{12}:certificate/[a-z0-9-]+")


@dataclass(frozen=True)
class Settings:
    """Set with `cdk deploy -c name=… -c ephemeral=true -c ec2=true -c ec2_role=arn:… -c libcloud=true` and so on.

    Lists are separated by commas.

    - `ephemeral` deletes all data with the stack.
    - `ec2` permits factories to make machines in EC2; `ec2_role` is the role that these may have, if any.
    - `fargate` are the ARNs of the ECS clusters in which factories may run tasks; `fargate_role` is the role with which
      ECS may pull their images and write their logs, `fargate_logs` the group of these logs, if any.
    - `libcloud` adds the library for other clouds, and permits factories to read their credentials.
    - `drivers` is a pip requirements file with packages of third-party drivers.
    - `factory_secrets` and `well_secrets` are the names of secrets that factories and that wells may read;
      `accounts_lambdas` the ARNs of functions that the accounts well may call; `well_subnets` and
      `well_security_groups` the ids of the network of wells' servers.
    - `sts_roles` are the ARNs of roles that wells may lend; `sts_boundary` is the permissions boundary that all of them
      have; `s3_well` is the bucket, or bucket/prefix, of which wells may lend prefixes.
    - `identity_keys` names the keys for identity tokens. The first signs, all are published, and one that is not
      named any more is deleted (docs/users/identity.md).
    - `at_once` is how many calls of the schedule, the factory and the well function each run at a time at most. What
      is left of the account's concurrency is for users, agents and their heartbeats, whatever comes at once.
    - `agents_at_once` reserves so many executions of the account for the function that agents call: whatever else the
      account runs, a heartbeat finds one. AWS keeps 100 that nobody reserves.
    - `snapstart` names functions that start from a snapshot: docs/decisions/0060.
    - `github` adds the front end for GitHub: infra/github.py.
    - `metrics` is the level of metrics: off, site or pools; `alarm_email` receives the alarms.
    - `console` is whether CloudFront serves the console; `console_domain` its name, if it is not CloudFront's own, and
      `console_certificate` the ARN of that name's certificate, in us-east-1.
    """

    name: str = "Penstock"
    ephemeral: bool = False
    ec2: bool = False
    ec2_role: str = ""
    fargate: tuple[str, ...] = ()
    fargate_role: str = ""
    fargate_logs: str = ""
    libcloud: bool = False
    factory_secrets: tuple[str, ...] = ()
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
    at_once: int = 200
    agents_at_once: int = 0
    snapstart: tuple[str, ...] = ()
    console: bool = True
    console_domain: str = ""
    console_certificate: str = ""

    def __post_init__(self) -> None:
        """Raises ValueError for invalid networks, keys, concurrency and functions, and incomplete lent roles."""
        if self.well_subnets or self.well_security_groups:
            _check("well_subnets", "subnet-", self.well_subnets)
            _check("well_security_groups", "sg-", self.well_security_groups)
        _check_keys(self.identity_keys)
        if not MIN_AT_ONCE <= self.at_once <= MAX_AT_ONCE:
            raise ValueError(f"at_once must be {MIN_AT_ONCE} to {MAX_AT_ONCE} calls, not {self.at_once}")
        if not 0 <= self.agents_at_once <= MAX_AT_ONCE:
            raise ValueError(f"agents_at_once must be 0 to {MAX_AT_ONCE} calls, not {self.agents_at_once}")
        if unknown := set(self.snapstart) - set(WAITED_FOR):
            raise ValueError(f"snapstart must be some of {', '.join(WAITED_FOR)}, not {', '.join(sorted(unknown))}")
        if self.sts_roles and not self.sts_boundary:
            raise ValueError("sts_roles needs sts_boundary, which limits what policies can give to the roles")
        if self.s3_well and not self.sts_roles:
            raise ValueError("s3_well needs sts_roles, because jobs reach the bucket with sessions of a role")
        _check_fargate(self)
        _check_console(self)

    @staticmethod
    def of(context: Mapping[str, Any]) -> Settings:
        """Settings from the CDK's context, where a value given on the command line is text.

        Raises ValueError for what is wrong with it, and for a name that no option has.
        """
        _check_names(context)

        def is_set(key: str, default: bool = False) -> bool:
            return str(context.get(key, default)).lower() in ("true", "1", "yes")

        def listed(key: str) -> tuple[str, ...]:
            return tuple(each.strip() for each in str(context.get(key, "")).split(",") if each.strip())

        return Settings(
            name=str(context.get("name", Settings.name)),
            ephemeral=is_set("ephemeral"),
            ec2=is_set("ec2"),
            ec2_role=str(context.get("ec2_role", "")),
            fargate=listed("fargate"),
            fargate_role=str(context.get("fargate_role", "")),
            fargate_logs=str(context.get("fargate_logs", "")),
            libcloud=is_set("libcloud"),
            factory_secrets=listed("factory_secrets"),
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
            at_once=int(context.get("at_once", Settings.at_once)),
            agents_at_once=int(context.get("agents_at_once", Settings.agents_at_once)),
            snapstart=tuple(dict.fromkeys(listed("snapstart"))),
            console=is_set("console", Settings.console),
            console_domain=str(context.get("console_domain", "")),
            console_certificate=str(context.get("console_certificate", "")),
        )

    @property
    def options(self) -> dict[str, str]:
        """What is not as by default, but for the name, as text that the CDK's context may have."""
        values = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "name"}
        return {name: _text(value) for name, value in values.items() if value != getattr(Settings, name)}

    @property
    def keep(self) -> RemovalPolicy:
        """What happens to data when the stack is deleted."""
        return RemovalPolicy.DESTROY if self.ephemeral else RemovalPolicy.RETAIN


def _check_names(context: Mapping[str, Any]) -> None:
    """Names of the CDK itself are none that an option could have: they have other characters."""
    known = [each.name for each in fields(Settings)]
    for name in context:
        if re.fullmatch("[a-z0-9_]+", name) and name not in known:
            meant = get_close_matches(name, known, 1)
            raise ValueError(
                f"there is no option {name!r}; "
                + (f"did you mean {meant[0]!r}?" if meant else f"there are: {', '.join(sorted(known))}")
            )


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _check(setting: str, start: str, ids: tuple[str, ...]) -> None:
    if not ids or not all(each.startswith(start) for each in ids):
        raise ValueError(f"{setting} must be ids like {start}0a1b2c3d with commas between them, not {','.join(ids)!r}")


def _check_fargate(settings: Settings) -> None:
    """Raises ValueError for what is no cluster, and for a role or logs without one."""
    for arn in settings.fargate:
        if not CLUSTER.fullmatch(arn):
            raise ValueError(f"fargate must be ARNs of clusters of ECS, with commas between them, not {arn!r}")
    if (settings.fargate_role or settings.fargate_logs) and not settings.fargate:
        raise ValueError("fargate_role and fargate_logs need fargate, the clusters whose tasks they are for")


def _check_console(settings: Settings) -> None:
    """Raises ValueError for a domain or a certificate that CloudFront would refuse, minutes later."""
    domain, certificate = settings.console_domain, settings.console_certificate
    if (domain or certificate) and not settings.console:
        raise ValueError("console=false has no console that could have a console_domain or a console_certificate")
    if bool(domain) != bool(certificate):
        raise ValueError("console_domain and console_certificate need each other: the certificate is for the domain")
    if domain and not DOMAIN.fullmatch(domain):
        raise ValueError(f"console_domain must be a name like penstock.example.com, not {domain!r}")
    if certificate and not CERTIFICATE.fullmatch(certificate):
        raise ValueError(
            "console_certificate must be the ARN of a certificate of ACM in us-east-1, where CloudFront looks for it, "
            f"not {certificate!r}"
        )


def _check_keys(names: tuple[str, ...]) -> None:
    right = all(re.fullmatch("[0-9A-Za-z]{1,16}", each) for each in names)
    if not right or len(set(names)) < len(names) or not 1 <= len(names) <= KEYS:
        raise ValueError(f"identity_keys must be 1 to {KEYS} names of letters and digits, each once, not {names!r}")
