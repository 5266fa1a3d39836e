"""The settings of an `ec2` factory, and their checks. docs/operators/ec2.md describes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from penstock.drivers.checks import not_empty, sentences, shell
from penstock.drivers.factories.aws.settings import (
    MARKETS,
    MOST_ALTERNATIVES,
    Subnet,
    check_group,
    check_price,
    check_region,
    check_subnet,
    check_tags,
    either,
    one_of,
    texts,
)
from penstock.drivers.factories.ec2.identity import PublicKey, read_certificates
from penstock.kernel.errors import Misconfigured
from penstock.kernel.frozen import dataclass
from penstock.toml.checks import Check, Place, flag, listed, matching, number, record, text, wanted


@dataclass(frozen=True)
class InstanceType:
    """An instance type, and its on-demand price per hour."""

    name: str
    price: float | None = None


@dataclass(frozen=True)
class Disk:
    """The root volume. `device` must be the image's name for it; otherwise EC2 adds a second volume."""

    device: str
    size: int
    type: str = "gp3"
    iops: int | None = None
    throughput: int | None = None
    encrypted: bool | None = None


@dataclass(frozen=True)
class Template:
    """A launch template, for parameters that have no setting here."""

    id: str
    version: str = "$Default"


@dataclass(frozen=True)
class Settings:
    """The settings of a factory: what its machines are."""

    region: str
    types: tuple[InstanceType, ...]
    image: str | None = None
    subnets: tuple[Subnet, ...] = ()
    price_band: float | None = None
    max_price: float | None = None
    market: str = "on-demand"
    security_groups: tuple[str, ...] = ()
    public_ip: bool | None = None
    key_name: str | None = None
    profile: str | None = None
    disk: Disk | None = None
    template: Template | None = None
    quota_groups: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    user_data: str = ""
    python: str = "python3"
    linger: int = 60
    identity: tuple[PublicKey, ...] = ()


EXAMPLE = 'region = "eu-west-1", image = "ami-0123456789abcdef0", types = ["m7g.large"]'


def read(given: Mapping[str, Any]) -> Settings:
    """The settings in a site's table. Raises Misconfigured."""
    top = Place(("ec2",))
    found = _checked(given, top)
    if found is None:
        raise Misconfigured("; ".join(sentences(top)))
    return found


def complaints(given: Mapping[str, Any]) -> Sequence[str]:
    """What is wrong with settings, one sentence each."""
    top = Place(("ec2",))
    _checked(given, top)
    return sentences(top)


def _checked(given: Mapping[str, Any], top: Place) -> Settings | None:
    values = _keys(given, top)
    if top.faults:
        return None
    found = Settings(**values)
    _check_together(found, top)
    return None if top.faults else found


def _check_together(found: Settings, top: Place) -> None:
    """Settings that are valid alone and contradict each other."""
    if found.image is None and found.template is None:
        top.fault("`ec2` has neither `image` nor `template`", 'give it an image, like image = "ami-0123456789abcdef0"')
    prices = [each.price for each in found.types if each.price is not None]
    if prices and len(prices) < len(found.types):
        (top / "types").fault("some of `ec2.types` have a price and some have none", "give every type a price, or none")
    if not prices and (found.price_band or (found.max_price and found.market != "spot")):
        (top / "types").fault(
            "`ec2.types` have no prices, which the price limits need",
            "give every type a price, or leave out the price limits",
        )
    if found.max_price and prices and min(prices) > found.max_price and found.market != "spot":
        (top / "max_price").fault(f"`ec2.max_price` is below every type's price ({min(prices)})", "raise it")
    if found.public_ip is not None and not found.subnets:
        (top / "public_ip").fault("`ec2.public_ip` needs `subnets`", "name at least one subnet")
    count = len(found.types) * max(1, len(found.subnets)) * len(MARKETS[found.market])
    if count > MOST_ALTERNATIVES:
        most = f"at most {MOST_ALTERNATIVES} are allowed"
        (top / "types").fault(
            f"`ec2.types`, `subnets` and markets make {count} alternatives", f"{most}; leave some out"
        )


def _band(value: object, place: Place) -> float:
    found = check_price(value, place)
    if found < 1:
        place.fault(
            f"{place.label} must be 1 or more", "1.5 allows types that cost up to 1.5 times as much as the cheapest"
        )
    return found


def _made(table: Check, made: Any) -> Check:
    def checked(value: object, place: Place) -> Any:
        before = len(place.faults)
        found = table(value, place)
        return made(**found) if len(place.faults) == before else None

    return checked


def _certificates(value: object, place: Place) -> tuple[PublicKey, ...]:
    """One or more PEM certificates of AWS. All of them are trusted, so that one can replace another."""
    if not isinstance(value, str):
        wanted("certificates as text", value, place, "the RSA certificate that AWS publishes for the region")
        return ()
    try:
        return read_certificates(value)
    except ValueError as error:
        place.fault(f"{place.label}: {error}", "give the RSA certificate that AWS publishes for the region, in PEM")
        return ()


_type_name = matching(r"[a-z][a-z0-9-]*\.[a-z0-9-]+", "an instance type", 'like "m7g.large"')


_image = matching(
    r"ami-[0-9a-f]+|/(penstock|aws/service)/[A-Za-z0-9_.:/-]+",
    "an image",
    'an id like "ami-0123456789abcdef0", or an SSM parameter below /penstock/ or /aws/service/',
)


_disk = record(
    {
        "device": matching(r"/dev/[a-z0-9]+", "a device", "the image's root: /dev/xvda (Amazon), /dev/sda1 (Ubuntu)"),
        "size": number(1, 65_536),
    },
    {
        "type": one_of(("gp3", "gp2", "io1", "io2", "st1", "sc1", "standard")),
        "iops": number(100, 256_000),
        "throughput": number(125, 2_000),
        "encrypted": flag,
    },
    '{ device = "/dev/xvda", size = 40 }',
)


_template = record(
    {"id": matching(r"lt-[0-9a-f]+", "a launch template's id", 'like "lt-0123456789abcdef0"')},
    {"version": matching(r"\d+|\$Latest|\$Default", "a version", 'a number in quotes, "$Latest" or "$Default"')},
    '{ id = "lt-0123456789abcdef0", version = "3" }',
)


_keys = record(
    {
        "region": check_region,
        "types": not_empty(
            listed(
                either(
                    "name",
                    _type_name,
                    record({"name": _type_name}, {"price": check_price}, '{ name = "m7g.large", price = 0.0816 }'),
                    InstanceType,
                ),
                MOST_ALTERNATIVES,
                "instance types",
            )
        ),
    },
    {
        "image": _image,
        "subnets": listed(check_subnet, MOST_ALTERNATIVES, "subnets"),
        "price_band": _band,
        "max_price": check_price,
        "market": one_of(tuple(MARKETS)),
        "security_groups": listed(check_group, 16, "security groups"),
        "public_ip": flag,
        "key_name": text,
        "profile": matching(r"[\w+=,.@-]+|arn:[\w-]+:iam::\d+:instance-profile/.+", "a profile", "its name or its ARN"),
        "disk": _made(_disk, Disk),
        "template": _made(_template, Template),
        "quota_groups": texts('a table like { p5 = "p5" }'),
        "tags": check_tags,
        "user_data": shell,
        "python": matching(r"[A-Za-z0-9_./-]+", "a program", 'like "/usr/bin/python3.11"'),
        "linger": number(0, 1440),
        "identity": _certificates,
    },
    f"{{ {EXAMPLE} }}",
)
