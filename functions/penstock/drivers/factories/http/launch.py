"""What the program is sent to make one worker. [JOB-2]"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from penstock import agentfile
from penstock.drivers.factories import userdata
from penstock.drivers.factories.http.settings import Settings
from penstock.ports import Order


def request(order: Order, settings: Settings, owner: str) -> Mapping[str, Any]:
    """The body of the request. Its `token` is a hash of all the rest. Raises Misconfigured for a long boot script.

    The bootstrap key follows from the worker's id, so a repeated order is the same, unless the settings, the address or
    the agent changed meanwhile: docs/decisions/0012-launch-tokens.md.
    """
    body = {
        "unit": order.id,
        "owner": owner,
        "type": order.type,
        "slot": order.slot,
        "settings": dict(settings.settings),
        "boot": userdata.script(order, settings.user_data, settings.python, settings.linger),
        "agent": _agent(order),
    }
    return {**body, "token": hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()}


def _agent(order: Order) -> Mapping[str, Any]:
    """Where the agent is, its SHA-256, and the file that it reads: for who does not run the boot script."""
    return {
        "url": f"{order.url}/v1/agent/agent.pyz",
        "sha256": agentfile.digest(),
        "config": {"url": order.url, "worker": order.id, "key": order.key},
    }
