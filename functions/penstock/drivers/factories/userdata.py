"""What a machine does when it boots: fetch the agent, check it, run it, and end with it.

The script prints no secret: what it prints is the machine's console, which goes into the job's log when boot failed.
"""

from __future__ import annotations

import json
import shlex

from penstock import agentfile
from penstock.kernel.errors import Misconfigured
from penstock.ports import Order

MOST = 16 * 1024
"""What EC2 takes, before it is encoded: the least of all clouds."""

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
    """The user data of one worker. Raises Misconfigured when it is too long.

    `shell` runs first, as root; `python` runs the agent; `linger` are the minutes for which the machine stays up after.
    `identity` is where the agent asks for what the machine can show of itself, if it is to show that.
    """
    told = {"url": order.url, "worker": order.id, "key": order.key, "alone": True}
    config = json.dumps({**told, "identity": identity} if identity else told)
    made = SCRIPT.format(
        home=HOME,
        config=config,
        shell=shell,
        python=python,
        fetch=shlex.quote(FETCH),
        url=shlex.quote(f"{order.url}/v1/agent/agent.pyz"),
        digest=agentfile.digest(),
        linger=linger,
    )
    if len(made.encode()) > MOST:
        raise Misconfigured(
            f"the user data would have {len(made.encode())} bytes, more than the {MOST} that it may have"
        )
    return made
