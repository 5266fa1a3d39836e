"""A controller of hosts that are EC2 instances: launched when jobs wait for them, terminated when nobody does.

    export HOSTS_SECRET=$(openssl rand -hex 32)
    python3 examples/ec2_hosts.py 8702 /var/lib/hosts https://penstock.example.com lt-0123 m7i.8xlarge

Each folder below /var/lib/hosts is a host, and has its token in the file `token`. The launch template lt-0123 says all
else of the instances: their image, which has Python and Podman, network, disk and market. Jobs share these hosts, each
in a container, which cannot reach the instance's metadata. See docs/operators/hosts.md
"""

import json
import os
import re
import shlex
import sys
import time
from pathlib import Path
from threading import Lock

import boto3
from botocore.exceptions import ClientError

from penstock.drivers.http.protocol import HOSTS
from penstock.drivers.http.serving import Endpoint, Later, Refused, server

FRESH = {"state": "ready", "fence": 0, "digest": None, "power": "off", "serial": 0}
NOTHING = {"launch": 1, "since": 0.0, "instance": ""}  # how often it was launched, when, and the instance if known
LISTED_AFTER = 300  # seconds in which EC2 may not list an instance yet
BOOT = """#!/bin/sh
set -e
umask 077
mkdir -p "${{AGENT_HOME:=/var/lib/penstock-agent}}"
cd "$AGENT_HOME"
printf %s {token} > token
curl --fail --silent --show-error --retry 9 --output agent.pyz {url}/v1/agent/agent.pyz
systemd-run --unit=penstock-agent --working-directory="$AGENT_HOME" --property=Restart=always \\
    --property=OOMPolicy=continue \\
    python3 agent.pyz host --url {url} --host {unit} --token-file token --state state --containers podman
"""


def refusal(error):
    said = error.response["Error"]
    return Refused(503, "ec2", f"{said['Code']}: {said['Message']}", later=30)


class Machines:
    def __init__(self, folder, url, template, type, client):
        self.folder, self.url, self.template, self.type, self.client = Path(folder), url, template, type, client
        self.lock = Lock()  # who was not answered in time asks again, while the first call still goes on

    def status(self, unit):
        known = self.known(unit)
        return {"unit": unit, **{key: known[key] for key in FRESH}}

    def on(self, unit, order):
        with self.lock:
            if order["missed"] and order["serial"] > self.newest(unit, order, "serial"):
                self.stop(unit)  # it was on and did not come
            self.note(unit, order, "serial")
            self.start(unit)
            self.save(unit, power="on")
            return self.status(unit)

    def off(self, unit, order):
        with self.lock:
            self.note(unit, order, "serial")
            self.stop(unit)
            self.save(unit, power="off")
            return self.status(unit)

    def clean(self, unit, lease):  # asked for only if a job has the whole host
        with self.lock:
            if self.newest(unit, lease, "fence") < lease["fence"] or self.known(unit)["state"] != "clean":
                self.note(unit, lease, "fence", state="cleaning")
                self.stop(unit)
                if self.known(unit)["power"] == "on":
                    self.start(unit)
                self.save(unit, state="clean")
        return {**self.status(unit), "proof": {"checked": "its instance is terminated, and its disk with it"}}

    def console(self, unit):
        instance = self.known(unit)["instance"]
        said = self.ec2("get_console_output", InstanceId=instance).get("Output", "") if instance else ""
        return said[-10_000:]

    def start(self, unit):
        if self.state(unit) in ("pending", "running"):
            return
        self.stop(unit)  # it may have ended by itself
        self.save(unit, since=time.time())  # first of all: what may have been launched is asked for again
        self.launch(unit)

    def stop(self, unit):
        known, state = self.known(unit), self.state(unit)
        if state not in ("none", "terminated"):
            self.ec2("terminate_instances", InstanceIds=[self.known(unit)["instance"]])
            raise Later(5, "its instance is being terminated")
        self.save(unit, launch=known["launch"] + (state == "terminated"), since=0.0, instance="")

    def state(self, unit):
        known = self.known(unit)
        if not known["since"]:
            return "none"
        instance = known["instance"] or self.launch(unit)
        if not instance:
            return "terminated"
        found = self.ec2("describe_instances", Filters=[{"Name": "instance-id", "Values": [instance]}])
        states = [each["State"]["Name"] for one in found["Reservations"] for each in one["Instances"]]
        is_new = time.time() < known["since"] + LISTED_AFTER
        return states[0] if states else "pending" if is_new else "terminated"

    def launch(self, unit):
        """The host's instance; None if it ended already. Asked for with the same token, EC2 launches no second one."""
        token = (self.home(unit) / "token").read_text().strip()
        words = {"unit": unit, "url": self.url, "token": token}
        boot = BOOT.format(**{name: shlex.quote(word) for name, word in words.items()})
        tags = [{"Key": "Name", "Value": unit}, {"Key": "penstock-host", "Value": unit}]
        try:
            made = self.client.run_instances(
                LaunchTemplate={"LaunchTemplateId": self.template}, InstanceType=self.type, MinCount=1, MaxCount=1,
                ClientToken=f"{unit}-{self.known(unit)['launch']}", UserData=boot,
                MetadataOptions={"HttpTokens": "required", "HttpPutResponseHopLimit": 1},
                TagSpecifications=[{"ResourceType": kind, "Tags": tags} for kind in ("instance", "volume")],
            )  # fmt: skip
        except ClientError as error:
            code = error.response["Error"]["Code"]
            if code == "IdempotentInstanceTerminated":
                return None
            if error.response["ResponseMetadata"]["HTTPStatusCode"] < 500 and not code.startswith("Idempotent"):
                self.save(unit, since=0.0)  # nothing was launched
            raise refusal(error) from error
        self.save(unit, instance=made["Instances"][0]["InstanceId"])
        return made["Instances"][0]["InstanceId"]

    def ec2(self, call, **asked):
        try:
            return getattr(self.client, call)(**asked)
        except ClientError as error:
            raise refusal(error) from error

    def newest(self, unit, asked, what):
        last = self.known(unit)[what]
        if asked[what] < last:
            raise Refused(409, f"stale-{what}", f"{unit} had {what} {last} since")
        return last

    def note(self, unit, asked, what, **more):
        self.newest(unit, asked, what)
        self.save(unit, **{what: asked[what]}, **more)  # first of all: what is older is refused from now on

    def known(self, unit):
        known = self.home(unit) / "known.json"
        return {**FRESH, **NOTHING, **(json.loads(known.read_text()) if known.exists() else {})}

    def save(self, unit, **news):
        known, new = {**self.known(unit), **news}, self.home(unit) / "new.json"
        new.write_text(json.dumps(known))
        new.replace(self.home(unit) / "known.json")

    def home(self, unit):
        if not re.fullmatch(r"[\w-]+", unit) or not (self.folder / unit).is_dir():  # it is a part of paths
            raise Refused(404, "not-found", f"there is no host {unit}")
        return self.folder / unit


if __name__ == "__main__":
    machines = Machines(*sys.argv[2:6], boto3.client("ec2"))
    http = server(Endpoint(machines, os.environ["HOSTS_SECRET"], of=HOSTS), int(sys.argv[1]))
    print(f"http://127.0.0.1:{http.server_port}", flush=True)
    http.serve_forever()
