"""A service for the `http` well in Python alone: silos, projects and tokens of a rack. docs/wells/http.md tells of it.

    WELL_SECRET=$(openssl rand -hex 32) python3 examples/http_well.py 8700

The rack is a dictionary, and all of it is forgotten when it stops: it is there to be read, tried and replaced.
"""

import hashlib
import hmac
import json
import os
import secrets
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock
from urllib.parse import parse_qsl, urlsplit

WINDOW = 300
units, seen, lock = {}, {}, Lock()  # what there is; when each request came, by its id


def signature(*lines):
    secret = os.environ["WELL_SECRET"].encode()
    return "v1=" + hmac.new(secret, "\n".join(("penstock-v1", *lines)).encode(), hashlib.sha256).hexdigest()


def refused(code, detail):
    return {"type": "about:blank", "code": code, "detail": detail}


def shown(unit):
    return {key: unit[key] for key in ("unit", "owner", "state", "fence", "digest")}


def put(name, ask):
    if ask["type"] not in ("silo", "project", "token"):
        return 422, refused("unsatisfiable", f"a rack has silos, projects and tokens, and no {ask['type']}")
    unit = units.get(name) or {"unit": name, "owner": ask["owner"], "inside": [], "fence": -1, "digest": None}
    if ask["fence"] < unit["fence"]:
        return 409, refused("stale-fence", "another lease has it")
    if (unit["fence"], unit.get("state")) != (ask["fence"], "ready"):  # what was ready stays as it is: asked twice
        token = {"name": f"{ask['type']}-{name.lower()}", "token": secrets.token_urlsafe(24)}
        units[name] = unit = {**unit, "fence": ask["fence"], "state": "ready", "metadata": token}
    return 200, {**shown(unit), "metadata": unit["metadata"]}


def clean(name, ask):
    unit = units[name]
    if ask["fence"] != unit["fence"]:
        return 409, refused("stale-fence", "another lease has it")
    unit.update(inside=[], state="clean", metadata=None)  # with the token that the last job had
    unit["digest"] = hashlib.sha256(json.dumps(unit["inside"]).encode()).hexdigest()
    proof = {"checked": "no disk, no instance and no token is left in it", "digest": unit["digest"]}
    return 200, {**shown(unit), "proof": proof}


def listed(query):
    mine = [each for each in sorted(units) if units[each]["owner"] == query["owner"] and each >= query.get("from", "")]
    most = int(query["limit"])
    page = [{"unit": each, "owner": query["owner"]} for each in mine[:most]]
    return 200, {"units": page, "next": mine[most] if mine[most:] else None}


def answer(method, path, query, ask):
    """What is said to whom we know. Without a name it is the list that is asked for."""
    name, _, do = path.partition("/resources")[2].strip("/").partition("/")
    if name and method != "PUT" and name not in units:
        return 404, refused("not-found", f"there is no {name}")
    if method == "DELETE":
        return 200, {"unit": units.pop(name)["unit"], "proof": {"checked": "it was deleted, with all that was in it"}}
    if method == "GET":
        return (200, shown(units[name])) if name else listed(query)
    return clean(name, ask) if do == "clean" else put(name, ask)


class Handler(BaseHTTPRequestHandler):
    def handle_request(self):
        body = self.rfile.read(min(int(self.headers.get("Content-Length") or 0), 65536))
        at, request = self.headers.get("Penstock-Timestamp", "0"), self.headers.get("Penstock-Request", "")
        parts = urlsplit(self.path)
        told = (self.command, parts.path, parts.query, at, request, hashlib.sha256(body).hexdigest())
        is_ours = hmac.compare_digest(self.headers.get("Penstock-Signature", ""), signature("request", *told))
        with lock:
            if not is_ours or abs(time.time() - int(at)) > WINDOW or request in seen:
                self.say(request, 401, refused("unknown-request", "it is not signed, too old, or was here before"))
                return
            for old in [each for each, when in seen.items() if when < time.time() - 2 * WINDOW]:
                del seen[old]
            seen[request] = time.time()
            status, said = answer(self.command, parts.path, dict(parse_qsl(parts.query)), json.loads(body or b"{}"))
        self.say(request, status, said)

    do_GET = do_PUT = do_POST = do_DELETE = handle_request

    def say(self, request, status, said):
        body = json.dumps(said).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json" if status < 400 else "application/problem+json")
        self.send_header("Content-Length", str(len(body)))
        digest = hashlib.sha256(body).hexdigest()
        self.send_header("Penstock-Signature", signature("answer", str(status), request, digest))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
