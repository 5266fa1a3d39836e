"""The user data of one worker in EC2, where powering off terminates the machine."""

from __future__ import annotations

from penstock.drivers.factories import userdata
from penstock.drivers.factories.ec2.identity import METADATA
from penstock.drivers.factories.ec2.settings import Settings
from penstock.ports import Order


def script(order: Order, settings: Settings) -> str:
    """The user data of one worker. Raises Misconfigured when it is too long for EC2."""
    return userdata.script(
        order, settings.user_data, settings.python, settings.linger, METADATA if settings.identity else ""
    )
