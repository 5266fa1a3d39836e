"""A service for the `http` well in Python alone: silos, projects and tokens of a rack. See docs/operators/wells/http.md

    WELL_SECRET=$(openssl rand -hex 32) python3 examples/http_well.py 8700

The rack is a dictionary, and all of it is forgotten when it stops: it is there to be read, tried and replaced.
"""

import hashlib
import json
import os
import secrets
import sys

from penstock.drivers.http.serving import Endpoint, Refused, server


class Rack:
    def __init__(self):
        self.units = {}

    def create(self, unit, order):
        if order["type"] not in ("silo", "project", "token"):
            raise Refused(422, "unsatisfiable", f"a rack has silos, projects and tokens, and no {order['type']}")
        was = self.units.get(unit) or {"unit": unit, "owner": order["owner"], "inside": [], "fence": -1, "digest": None}
        if order["fence"] < was["fence"]:
            raise Refused(409, "stale-fence", "another lease has it")
        if (was["fence"], was.get("state")) != (order["fence"], "ready"):  # what was ready stays as it is: asked twice
            token = {"name": f"{order['type']}-{unit.lower()}", "token": secrets.token_urlsafe(24)}
            self.units[unit] = was = {**was, "fence": order["fence"], "state": "ready", "metadata": token}
        return {**self.status(unit), "metadata": was["metadata"]}

    def status(self, unit):
        if unit not in self.units:
            raise Refused(404, "not-found", f"there is no {unit}")
        return {key: self.units[unit][key] for key in ("unit", "owner", "state", "fence", "digest")}

    def clean(self, unit, lease):
        if self.status(unit)["fence"] != lease["fence"]:
            raise Refused(409, "stale-fence", "another lease has it")
        mine = self.units[unit]
        mine.update(inside=[], state="clean", metadata=None)  # with the token that the last job had
        mine["digest"] = hashlib.sha256(json.dumps(mine["inside"]).encode()).hexdigest()
        proof = {"checked": "no disk, no instance and no token is left in it", "digest": mine["digest"]}
        return {**self.status(unit), "proof": proof}

    def destroy(self, unit, lease):
        if self.status(unit)["fence"] > lease["fence"] > 0:  # 0 is: nobody knows of a lease
            raise Refused(409, "stale-fence", "another lease has it")
        del self.units[unit]
        return {"unit": unit, "proof": {"checked": "it was deleted, with all that was in it"}}

    def list(self, owner, start):
        return sorted(each for each, has in self.units.items() if has["owner"] == owner and each >= start)


if __name__ == "__main__":
    http = server(Endpoint(Rack(), os.environ["WELL_SECRET"]), int(sys.argv[1]))
    print(f"http://127.0.0.1:{http.server_port}", flush=True)
    http.serve_forever()
