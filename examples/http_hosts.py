"""A controller of hosts in Python alone: a lab whose hosts are processes. See docs/operators/hosts.md

    HOSTS_SECRET=$(openssl rand -hex 32) python3 examples/http_hosts.py 8702 /tmp/hosts http://127.0.0.1:8000

Each folder below /tmp/hosts is a host, and has its token in the file `token`. A host that is on is a process that
fetches the agent from the deployment, and runs it again whenever it ends, as systemd would. A lab would switch an
outlet here, and write an image to a disk.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from penstock.drivers.factories.process import kill, kill_all, tagged
from penstock.drivers.http.protocol import HOSTS
from penstock.drivers.http.serving import Endpoint, Later, Refused, server

HOST, WORKER = "LAB_HOST", "PENSTOCK_WORKER_ID"  # by which the processes of a host, and those of its jobs, are found
FRESH = {"state": "ready", "fence": 0, "digest": None, "power": "off", "serial": 0}
BOOT = """
import sys, subprocess, time, urllib.request
url, *words = sys.argv[1:]
while True:
    try:
        open("agent.pyz", "wb").write(urllib.request.urlopen(url + "/v1/agent/agent.pyz", timeout=30).read())
        subprocess.run([sys.executable, "agent.pyz", "host", "--url", url, *words])
    except Exception as why:
        print("the agent could not be fetched:", why, file=sys.stderr, flush=True)
    time.sleep(2)
"""


class Lab:
    def __init__(self, folder, url):
        self.folder, self.url = Path(folder), url

    def status(self, unit):
        known = self.home(unit) / "known.json"
        return {**FRESH, "unit": unit, **(json.loads(known.read_text()) if known.exists() else {})}

    def on(self, unit, order):
        if order["missed"] and order["serial"] > self.newest(unit, order, "serial"):
            self.stop(unit)  # it was on and did not come
        self.note(unit, order, "serial")
        if not tagged(HOST, unit):
            self.start(unit)
        return self.save(unit, power="on")

    def off(self, unit, order):
        self.note(unit, order, "serial")
        self.stop(unit)
        return self.save(unit, power="off")

    def clean(self, unit, lease):
        if self.newest(unit, lease, "fence") < lease["fence"] or self.status(unit)["state"] != "clean":
            self.note(unit, lease, "fence", state="cleaning")
            self.stop(unit)
            shutil.rmtree(self.home(unit) / "disk", ignore_errors=True)
            if self.status(unit)["power"] == "on":
                self.start(unit)
        return {
            **self.save(unit, state="clean"),
            "proof": {"checked": "no process of it was left, and its disk is new"},
        }

    def console(self, unit):
        console = self.home(unit) / "console"
        return console.read_text(errors="replace")[-10_000:] if console.exists() else ""

    def newest(self, unit, asked, what):
        last = self.status(unit)[what]
        if asked[what] < last:
            raise Refused(409, f"stale-{what}", f"{unit} had {what} {last} since")
        return last

    def note(self, unit, asked, what, **more):
        self.newest(unit, asked, what)
        self.save(unit, **{what: asked[what]}, **more)  # first of all: what is older is refused from now on

    def save(self, unit, **news):
        known, new = {**self.status(unit), **news}, self.home(unit) / "new.json"
        new.write_text(json.dumps(known))
        new.replace(self.home(unit) / "known.json")
        return known

    def start(self, unit):
        home = self.home(unit)
        words = ["--host", unit, "--token-file", str(home / "token"), "--state", str(home / "disk")]
        command = [sys.executable, "-c", BOOT, self.url, *words]
        environment = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8", HOST: unit}
        with (home / "console").open("ab") as out:
            more = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": out, "start_new_session": True}
            subprocess.Popen(command, cwd=home, env=environment, **more)

    def stop(self, unit):
        standing = self.home(unit) / "disk" / "standing.json"
        job = json.loads(standing.read_text()) if standing.exists() else {"pid": 0, "worker": ""}
        kill({job["pid"]} - {0}, signal.SIGKILL)
        if not (kill_all(HOST, unit) and kill_all(WORKER, job["worker"] or "none")):
            raise Later(1, "its processes are being killed")

    def home(self, unit):
        if not re.fullmatch(r"[\w-]+", unit) or not (self.folder / unit).is_dir():  # it is a part of paths
            raise Refused(404, "not-found", f"there is no host {unit}")
        return self.folder / unit


if __name__ == "__main__":
    http = server(Endpoint(Lab(*sys.argv[2:4]), os.environ["HOSTS_SECRET"], of=HOSTS), int(sys.argv[1]))
    print(f"http://127.0.0.1:{http.server_port}", flush=True)
    http.serve_forever()
