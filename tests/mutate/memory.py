"""What tests evaluate, remembered in build/ for as long as neither they nor the code have changed."""

from __future__ import annotations

import hashlib
import json

from tests.mutate.hunt import Profile, Profiles
from tests.mutate.scope import ROOT, modules, source
from tests.mutate.watch import VERSION

PATH = ROOT / "build" / "mutate.json"


def load() -> Profiles:
    """The profiles that are still true. A helper that changed is not noticed; `--all` forgets everything."""
    told = json.loads(PATH.read_text(encoding="utf-8")) if PATH.exists() else {}
    if told.get("code") != _code():
        return {}
    same = {file for file, digest in told["files"].items() if digest == _digest(file)}
    return {
        name: Profile(seconds, frozenset(told["signs"][at] for at in seen))
        for name, (seconds, seen) in told["tests"].items()
        if name.partition("::")[0] in same
    }


def save(profiles: Profiles) -> None:
    """Remember profiles."""
    signs = sorted({sign for profile in profiles.values() for sign in profile.seen})
    places = {sign: at for at, sign in enumerate(signs)}
    tests = {name: (each.seconds, [places[sign] for sign in each.seen]) for name, each in profiles.items()}
    files = {file: _digest(file) for file in {name.partition("::")[0] for name in profiles}}
    PATH.parent.mkdir(exist_ok=True)
    PATH.write_text(json.dumps({"code": _code(), "files": files, "signs": signs, "tests": tests}), encoding="utf-8")


def _code() -> str:
    return hashlib.sha256("".join([VERSION, *(source(name) for name in modules())]).encode()).hexdigest()


def _digest(file: str) -> str:
    path = ROOT / file
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else ""
