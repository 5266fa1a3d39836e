"""Which service to talk to, and with which token.

    --url, --token  >  PENSTOCK_URL, PENSTOCK_TOKEN  >  --profile  >  PENSTOCK_PROFILE  >  default_profile  >  `local`

A profile's token is sent only to that profile's URL.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import tomlkit

from penstock.cli.errors import Refused

LOCAL = "local"
NOWHERE = (
    "`penstock login URL` signs you in to a service, `penstock local up` starts one here; "
    "or set PENSTOCK_URL and PENSTOCK_TOKEN"
)


@dataclass(frozen=True)
class Profile:
    """A service and a token for it. `made` says that `penstock login` had it made; so `logout` revokes it."""

    url: str
    token: str | None = None
    made: bool = False


@dataclass(frozen=True)
class Config:
    """What the configuration file says."""

    profiles: Mapping[str, Profile] = field(default_factory=dict)
    default: str | None = None


@dataclass(frozen=True)
class Target:
    """Where requests go. `profile` is the one that the URL came from, if any."""

    url: str
    token: str | None
    profile: str | None


def path(environment: Mapping[str, str]) -> Path:
    """Where the configuration file is, whether or not it exists."""
    base = environment.get("XDG_CONFIG_HOME") or Path(environment.get("HOME") or Path.home()) / ".config"
    return Path(base) / "penstock" / "config.toml"


def load(file: Path) -> Config:
    """Read the configuration. A missing file is an empty one; raises Refused for a malformed one."""
    try:
        document = tomllib.loads(file.read_text())
    except FileNotFoundError:
        return Config()
    except (OSError, ValueError) as error:
        raise Refused(f"{file}: {error}", "repair the file, or move it away") from error
    tables = document.get("profile", {})
    if not isinstance(tables, dict):
        raise Refused(f"{file}: `profile` is not a table", "write profiles as [profile.NAME]")
    profiles = {name: _profile(file, name, table) for name, table in tables.items()}
    return Config(profiles, document.get("default_profile"))


def _profile(file: Path, name: str, table: object) -> Profile:
    if not isinstance(table, dict) or not isinstance(table.get("url"), str):
        raise Refused(f"{file}: [profile.{name}] has no url", 'write url = "https://..." below it')
    token = table.get("token")
    if token is not None and not isinstance(token, str):
        raise Refused(f"{file}: [profile.{name}]: token is not a string", "put the token in double quotes")
    return Profile(table["url"], token, table.get("made_by_login") is True)


def resolve(
    config: Config, environment: Mapping[str, str], *, url: str | None, token: str | None, profile: str | None
) -> Target:
    """Where requests go. Raises Refused when nothing says so, or when a profile that is named doesn't exist."""
    url = url or environment.get("PENSTOCK_URL") or None
    token = token or environment.get("PENSTOCK_TOKEN") or None
    named = profile or environment.get("PENSTOCK_PROFILE") or config.default
    if named and named not in config.profiles and (profile or not url):
        known = ", ".join(sorted(config.profiles)) or "none yet"
        raise Refused(f"there is no profile `{named}`", f"profiles: {known}. {NOWHERE}")
    name = named or LOCAL
    found = config.profiles.get(name)
    if not url and not found:
        raise Refused("no service is configured", NOWHERE)
    chosen = found if found and (not url or url.rstrip("/") == found.url.rstrip("/")) else None
    address = checked(url or (chosen.url if chosen else ""))
    return Target(address, token or (chosen.token if chosen else None), name if chosen else None)


def checked(url: str) -> str:
    """The URL of a service, without a slash at its end. Raises Refused for what is none."""
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        good = False
    if not good:
        raise Refused(f"`{url}` is not the URL of a service", "write it like https://penstock.example.com")
    return url.rstrip("/")


@contextlib.contextmanager
def _edit(file: Path) -> Iterator[tomlkit.TOMLDocument]:
    """The file's document, written back whole and readable by its owner only; comments stay."""
    try:
        document = tomlkit.parse(file.read_text()) if file.exists() else tomlkit.document()
        yield document
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, name = tempfile.mkstemp(dir=file.parent, prefix=".config-")  # made with mode 0600
        with os.fdopen(handle, "w") as out:
            out.write(tomlkit.dumps(document))
        Path(name).replace(file)
    except (OSError, ValueError) as error:
        raise Refused(f"can't write {file}: {error}", "repair the file, or move it away") from error


def save_profile(file: Path, name: str, profile: Profile) -> None:
    """Add a profile, or replace what is in it. Raises Refused when the file can't be written."""
    with _edit(file) as document:
        tables = document.setdefault("profile", tomlkit.table(is_super_table=True))
        table = tables.setdefault(name, tomlkit.table())
        table["url"] = profile.url
        for key, value in (("token", profile.token), ("made_by_login", profile.made)):
            if value:
                table[key] = value
            elif key in table:
                table.remove(key)


def remove_profile(file: Path, name: str) -> None:
    """Remove a profile. If it was the default, the one before it is again. An unknown profile is ignored."""
    config = load(file)
    if name not in config.profiles:
        return
    with _edit(file) as document:
        document["profile"].remove(name)
        before = document.get("former_default")
        if config.default == name:
            document.remove("default_profile")
            if before in config.profiles and before != name:
                document["default_profile"] = before
        if before is not None and before in (name, document.get("default_profile")):
            document.remove("former_default")


def use_profile(file: Path, name: str) -> None:
    """Set the default profile. Raises Refused when it doesn't exist."""
    known = load(file).profiles
    if name not in known:
        raise Refused(f"there is no profile `{name}`", f"profiles: {', '.join(sorted(known)) or 'none yet'}")
    with _edit(file) as document:
        before = document.get("default_profile")
        if before != name:
            _put(document, "former_default", before)
            _put(document, "default_profile", name)


def _put(document: tomlkit.TOMLDocument, key: str, value: str | None) -> None:
    """Set a key at the top of the file, above all tables; or remove it."""
    if value is not None:
        document[key] = value
    elif key in document:
        document.remove(key)


def warn_of_variables(note: Callable[[str, str], None], environment: Mapping[str, str] = os.environ) -> None:
    """Say which variables go before the profile that was just chosen."""
    found = [name for name in ("PENSTOCK_URL", "PENSTOCK_TOKEN", "PENSTOCK_PROFILE") if environment.get(name)]
    if found:
        verb = "is set, and goes" if len(found) == 1 else "are set, and go"
        note(f"{' and '.join(found)} {verb} before the profile: unset it to use the profile", "yellow")
