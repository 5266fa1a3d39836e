"""The boot script (user data) of a worker: it downloads the agent, verifies and runs it, then powers the machine off.

The script prints no secret, because the console of a machine that failed to boot goes into the job's log.
"""

from __future__ import annotations

import json
import shlex

from penstock import agentfile
from penstock.kernel.errors import Misconfigured
from penstock.ports import Order

MAX_BYTES = 16 * 1024
"""The limit of EC2, before encoding: the lowest of all clouds."""

HOME = "/opt/penstock"

FETCH = "import sys, urllib.request as u; sys.stdout.buffer.write(u.urlopen(sys.argv[1], timeout=30).read())"

SCRIPT = """\
#!/bin/bash
# A worker of Penstock. Whatever ends this script powers the machine off.
linger=0
trap 'shutdown -h +$linger' EXIT
exec </dev/null
mkdir -p -m 700 {home} && cd {home} || exit 1
(umask 077; cat > agent.json) <<'CONFIG'
{config}
CONFIG
(
:
{shell}
) || {{ echo "penstock: the site's user_data failed: $?"; exit 1; }}
for try in 1 2 3 4 5 6 7 8; do
  {python} -c {fetch} {url} > agent.pyz && break
  echo "penstock: the agent cannot be fetched, try $try"; sleep $((try * 4))
done
echo "{digest}  agent.pyz" | sha256sum --check --quiet - || {{ echo "penstock: this is not the agent"; exit 1; }}
{python} agent.pyz run --config agent.json
ended=$?
echo "penstock: the agent ended with $ended"
if grep -qs '^finished ' progress; then linger={linger}; fi
"""


def script(order: Order, shell: str, python: str, linger: int, identity: str = "") -> str:
    """The boot script of one worker. Raises Misconfigured if it is too long.

    `shell` runs first, as root; `python` runs the agent; `linger` is how many minutes the machine stays up afterwards.
    `identity` is the URL at which the agent finds the machine's identity document, if the factory checks it.
    """
    settings = {"url": order.url, "worker": order.id, "key": order.key, "alone": True}
    config = json.dumps({**settings, "identity": identity} if identity else settings)
    text = SCRIPT.format(
        home=HOME,
        config=config,
        shell=shell,
        python=python,
        fetch=shlex.quote(FETCH),
        url=shlex.quote(f"{order.url}/v1/agent/agent.pyz"),
        digest=agentfile.digest(),
        linger=linger,
    )
    if len(text.encode()) > MAX_BYTES:
        raise Misconfigured(
            f"the user data has {len(text.encode())} bytes; {MAX_BYTES} are allowed: shorten the setting `user_data`"
        )
    return text
