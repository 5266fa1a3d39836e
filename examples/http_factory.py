"""A controller for the `http` factory in Python alone: a lab whose machines are processes. See docs/operators/http.md

    FACTORY_SECRET=$(openssl rand -hex 32) python3 examples/http_factory.py 8701 /tmp/lab

Each worker has a folder, and a process that fetches the agent, checks it and becomes it, as a machine does that boots.
A hypervisor would start a virtual machine here, with `order["boot"]` as its user data.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from penstock.drivers.factories.process import kill_all
from penstock.drivers.http.protocol import GONE, WORKERS
from penstock.drivers.http.serving import Endpoint, Later, Refused, server

TAG = "PENSTOCK_WORKER_ID"  # the agent gives it to every process of a job: all of them are found by it
CONSOLE_CHARS = 10_000
BOOT = """
import hashlib, os, sys, urllib.request
url, digest = sys.argv[1:]
agent = urllib.request.urlopen(url, timeout=30).read()
if hashlib.sha256(agent).hexdigest() != digest:
    sys.exit("this is not the agent")
open("agent.pyz", "wb").write(agent)
os.execv(sys.executable, [sys.executable, "agent.pyz", "run", "--config", "agent.json"])
"""


class Lab:
    def __init__(self, folder):
        self.machines, self.gone = Path(folder) / "machines", Path(folder) / "gone"
        for each in (self.machines, self.gone):
            each.mkdir(parents=True, exist_ok=True, mode=0o700)

    def create(self, unit, order):
        if (self.gone / name(unit)).exists():  # this order comes late
            raise Refused(409, GONE, f"{unit} was destroyed")
        home = self.machines / unit
        if not (home / "started").exists():
            kill_all(TAG, unit)  # if this program ended halfway the last time
            home.mkdir(exist_ok=True)
            (home / "owner").write_text(order["owner"])
            self.start(unit, home, order["agent"])
            (home / "started").touch()
        return {**self.status(unit), "metadata": {"folder": str(home)}}

    def start(self, unit, home, agent):
        config = os.open(home / "agent.json", os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
        with os.fdopen(config, "w") as file:  # it has the key of the worker
            json.dump({**agent["config"], "root": str(home / "root")}, file)
        environment = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8", TAG: unit}
        command = [sys.executable, "-c", BOOT, agent["url"], agent["sha256"]]
        with (home / "console").open("ab") as console:
            out = {"stdin": subprocess.DEVNULL, "stdout": console, "stderr": console}
            subprocess.Popen(command, cwd=home, env=environment, start_new_session=True, **out)

    def status(self, unit):
        if not (self.machines / name(unit)).exists():
            raise Refused(404, "not-found", f"there is no {unit}")
        return {"unit": unit, "state": "ready"}

    def destroy(self, unit, query):
        (self.gone / name(unit)).touch()
        if not kill_all(TAG, unit):
            raise Later(1, "its processes are being killed")
        if (self.machines / unit).exists():
            shutil.rmtree(self.machines / unit)
        return {"proof": {"checked": f"no process has {TAG}={unit}, and its folder is deleted"}}

    def console(self, unit):
        self.status(unit)
        console = self.machines / unit / "console"
        return console.read_text(errors="replace")[-CONSOLE_CHARS:] if console.exists() else ""

    def list(self, owner, start):
        owners = {each.parent.name: each.read_text() for each in self.machines.glob("*/owner")}
        return sorted(unit for unit, has in owners.items() if has == owner and unit >= start)


def name(unit):
    if not re.fullmatch(r"[\w-]+", unit):  # it is a part of paths
        raise Refused(422, "unsatisfiable", "an id of a worker has letters, digits and dashes")
    return unit


if __name__ == "__main__":
    http = server(Endpoint(Lab(sys.argv[2]), os.environ["FACTORY_SECRET"], of=WORKERS), int(sys.argv[1]))
    print(f"http://127.0.0.1:{http.server_port}", flush=True)
    http.serve_forever()
