"""penstock login, logout: get a token for a service, keep it in a profile, and give it back."""

from __future__ import annotations

import socket
import sys
import time
from typing import Any
from urllib.parse import urlsplit

import click

from penstock.cli import config, terminal
from penstock.cli.client import LOOPBACK, Api, Transport
from penstock.cli.command import Command, Group, Session, arguments, pass_session
from penstock.cli.commands.console import find_console
from penstock.cli.commands.token import SCOPE, Lasting, id_of, lasting
from penstock.cli.config import Profile
from penstock.cli.errors import Broken, CliError, Refused, Unreachable
from penstock.cli.output import Moment

HOST_CHARS = 255
"""How long the service lets a machine's name be."""


class Login(Group):
    """A group whose command `to` need not be named."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        word = next((each for each in args if not each.startswith("-")), None)
        if word not in self.commands and not {"-h", "--help"} & set(args):
            args = ["to", *args]
        return super().parse_args(ctx, args)


group = Login(
    "login",
    help="Sign in to a service. `penstock login URL` is short for `penstock login to URL`.",
    epilog="Example: penstock login https://penstock.example.com",
)


@group.command(cls=Command)
@click.argument("service", required=False, metavar="[URL]")
@click.option("--with-token", is_flag=True, help="Read a token from standard input, instead of asking for a new one.")
@click.option("--no-browser", is_flag=True, help="Open no browser.")
@pass_session
def to(session: Session, service: str | None, with_token: bool, no_browser: bool) -> None:
    """Get a token for a service, save it as a profile, and use that profile from now on.

    Opens the service's console in your browser, where you sign in if you have to, and approve. It also shows a code,
    which you can approve wherever you are signed in already: `penstock login approve CODE`. Without URL, the service
    of the profile in use. The profile has the name that --profile gives it, or that of the service's host.
    """
    address = _address(session, service)
    file, name = session.config_path, session.profile or str(urlsplit(address).hostname)
    was = config.load(file).profiles.get(name)
    if was and was.url.rstrip("/") != address:
        raise Refused(f"the profile {name} is for {was.url}", "give this one another name: --profile NAME")
    made = None if with_token or session.token else _by_code(session, address, opens=not no_browser)
    token = str(made["token"]) if made else session.token or _piped()
    who = _api(session, address, token).get("whoami")
    config.save_profile(file, name, Profile(address, token, made is not None))
    config.use_profile(file, name)
    if was and was.made and was.token != token:
        _revoke_former(session, was)
    session.out.done(
        f"signed in to {address} as {who['name']}; the profile {name} is in use",
        {"url": address, "user": who["name"], "profile": name, "expires": (who.get("token") or {}).get("expires")},
    )
    config.warn_of_variables(session.out.note)


def _address(session: Session, url: str | None) -> str:
    """The service to sign in to. Raises Refused for one to which a token would go unencrypted. [SEC-1]"""
    given = url or session.target.url
    address = config.checked(given if "://" in given else f"https://{given}")
    parts = urlsplit(address)
    if parts.scheme == "http" and parts.hostname not in LOOPBACK:
        raise Refused(f"{address} is not encrypted: everybody on the way would read the token", "give an https:// URL")
    if parts.username is not None or parts.query or parts.fragment:
        raise Refused(f"{address} has more than a URL of a service has", "write it like https://penstock.example.com")
    return address


def _api(session: Session, address: str, token: str | None) -> Api:
    return Api(Transport(address, token, session.out.notice))


def _piped() -> str:
    """The token on standard input; on a terminal it is asked for. Raises Refused for what can be none."""
    text = click.prompt("Token", hide_input=True, err=True) if terminal.can_ask() else sys.stdin.read(4096)
    token = str(text).strip()
    if not token or not token.isascii() or len(token.split()) != 1:
        raise Refused("standard input has no token", "give it one line: penstock login URL --with-token < FILE")
    id_of(token)
    return token


def _by_code(session: Session, address: str, *, opens: bool) -> Any:
    """Ask for a token, show the code, and wait until somebody approved it. Raises Refused when it is over."""
    api = _api(session, address, None)
    begun = api.make("logins", body={"host": socket.gethostname()[:HOST_CHARS]})
    code, until = str(begun["code"]), time.monotonic() + begun["expires_in"]
    session.out.note("To sign in, run this on a machine where you are signed in to this service already:", "")
    session.out.note(f"\n    penstock login approve {code}\n", "bold")
    if url := find_console(api):
        page = f"{url}/login?code={code}"
        is_open = opens and terminal.can_ask() and terminal.open_page(page)
        session.out.note(f"Or approve in the browser, which opens now: {page}" if is_open else f"Or open {page}")
    session.out.note("Nowhere yet? An operator makes a token, and `penstock login URL --with-token < FILE` saves it.")
    session.out.note(f"waiting for {begun['expires_in'] // 60} minutes at most; Ctrl-C ends it")
    while time.monotonic() < until:
        time.sleep(begun["interval"])
        found = _look(session, api, code, str(begun["secret"]))
        if found and found["state"] != "waiting":
            return found
    raise Refused("nobody approved this login", "`penstock login` begins another")


def _look(session: Session, api: Api, code: str, secret: str) -> Any:
    """How far a login is; None if the service could not be reached this time."""
    try:
        return api.make("logins", code, "token", body={"secret": secret})
    except Unreachable as error:
        session.out.notice(error.what)
        return None


def _revoke_former(session: Session, was: Profile) -> None:
    """Revoke the token that the profile had, if it still works."""
    try:
        revoke(session, was)
    except CliError as error:
        session.out.note(f"the token that the profile had before could not be revoked: {error.what}", "yellow")


DISABLED = "user-disabled"
"""Why a token is refused that works again once its user is enabled."""


def revoke(session: Session, profile: Profile) -> bool:
    """Revoke a profile's token; False if it was no longer good. Raises CliError when it could not be revoked."""
    assert profile.token
    try:
        _api(session, profile.url, profile.token).delete("tokens", id_of(profile.token))
    except Refused as error:
        if error.status != 401 or error.code == DISABLED:
            raise
        return False
    return True


@group.command(cls=Command)
@arguments("CODE")
@click.option("--scope", "scopes", multiple=True, metavar="SCOPE", help=SCOPE)
@click.option("--expires", type=lasting, metavar="D", help="Lifetime, such as 12h, 30d, or never (default: 90d).")
@click.option("--yes", is_flag=True, help="Do not ask.")
@pass_session
def approve(session: Session, code: str, scopes: tuple[str, ...], expires: Lasting, yes: bool) -> None:
    """Let the machine that shows CODE sign in as you, with a new token that is made from yours.

    Only approve a code that you see on a machine of your own. Whoever gets the token can do what it is good for, in
    your name. `penstock token list` shows it, `penstock token revoke` ends it.
    """
    asked, who = session.api.get("logins", code), session.api.get("whoami")
    granted = list(scopes) or who["token"]["scopes"]
    if not session.json:
        _show(session, asked, who["name"], granted, expires)
    if not yes:
        if not terminal.can_ask():
            raise Refused("there is no terminal to ask at", "give --yes, after you have compared the code")
        click.confirm(f"Is {code} the code on a machine of your own, and may it sign in as you?", abort=True, err=True)
    body = {"scopes": granted, **({} if expires is None else {"expires_in": expires})}
    answer = session.api.act("logins", code, "approve", body=body)
    until = f"until {answer['expires']}" if answer["expires"] else "until it is revoked"
    session.out.done(f"approved: its token is good for {', '.join(answer['scopes'])}, {until}", answer)


def _show(session: Session, asked: Any, name: str, scopes: list[str], expires: Lasting) -> None:
    """Who asks for a token, and what it will be good for."""
    facts = [
        ("machine", f"{asked['host'] or '(no name)'} (as it calls itself)"),
        ("address", asked["address"]),
        ("asked", Moment(asked["created"])),
        ("will act as", name),
        ("scopes", scopes),
        ("expires", "never" if expires == "never" else f"in {expires} s" if expires else "in 90 days, or with yours"),
    ]
    session.out.details(facts)


@click.command(cls=Command)
@pass_session
def logout(session: Session) -> None:
    """Revoke the token that `penstock login` got, and remove it from the profile. The profile keeps the URL."""
    name = session.target.profile
    if name is None:
        raise Refused(
            "no profile is in use, so there is nothing to sign out of", "--profile names one; unset PENSTOCK_URL"
        )
    profile = config.load(session.config_path).profiles[name]
    if not profile.token:
        raise Refused(f"the profile {name} has no token", "`penstock login` gets one")
    what = _end(session, name, profile)
    session.out.done(f"signed out of {profile.url}; {what}", {"profile": name, "url": profile.url, "what": what})


def _end(session: Session, name: str, profile: Profile) -> str:
    """Remove a profile's token; revoke it if `login` had it made. Raises Broken if it could not be revoked."""
    trouble = None
    was_good = False
    if profile.made:
        try:
            was_good = revoke(session, profile)
        except CliError as error:
            trouble = error
    config.save_profile(session.config_path, name, Profile(profile.url))
    if trouble:
        what = f"the token is removed from the profile {name}, but could not be revoked: {trouble.what}"
        raise Broken(what, f"`penstock token revoke {id_of(str(profile.token))}` does, where you are signed in")
    if not profile.made:
        return "the token was not made by `penstock login`, and still works"
    return "its token is revoked" if was_good else "its token did not work any more"
