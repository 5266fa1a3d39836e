"""The site's [identity]: for whom jobs may have identity tokens, and who needs a privilege for one."""

from __future__ import annotations

from penstock.domain import identity
from penstock.domain.site import Identity
from penstock.domain.sitevalues import privilege
from penstock.toml.checks import Place, clip, listed, record, text

AUDIENCES = 50
"""How many audiences one site may name."""


def check_identity(value: object, place: Place) -> Identity:
    """The audiences that a site allows."""
    return Identity(**_keys(value, place))


def _audience(value: object, place: Place) -> str:
    before = len(place.faults)
    found = text(value, place)
    if len(place.faults) == before and not identity.is_audience(found):
        hint = "1 to 255 printable characters without blanks, like sts.amazonaws.com"
        place.fault(f"{place.label}: `{clip(found)}` cannot be an audience", hint)
    return found


_keys = record(
    {"audiences": listed(_audience, AUDIENCES, "audiences")},
    {"privilege": privilege},
    'audiences = ["sts.amazonaws.com"]',
)
