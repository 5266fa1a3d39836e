"""penstock console: open the console in a browser, signed in."""

from __future__ import annotations

import webbrowser
from typing import Any

import click

from penstock.cli.client import Api, Transport
from penstock.cli.command import Command, Session, pass_session
from penstock.cli.errors import Refused


@click.command(cls=Command)
@click.option("--print", "prints", is_flag=True, help="Print the address, and open no browser.")
@pass_session
def console(session: Session, prints: bool) -> None:
    """Open the console in a browser, signed in as you.

    The browser is signed in for 12 hours at most, with a session that is made from your token: it can do what your
    token can. `penstock token list` shows it. The address that opens it works once, for ten minutes: keep it to
    yourself.
    """
    require_console(session.api)
    address = f"{session.target.url}/#sign-in={_approved(session)}"
    if prints or session.json:
        session.out.done(address, {"url": address})
        session.out.note("this address signs one browser in, once; it works for ten minutes")
    elif webbrowser.open(address):
        session.out.line(f"opened {session.target.url} in your browser")
    else:
        raise Refused("no browser can be opened here", "`penstock console --print` prints the address")


def require_console(api: Api) -> None:
    """Raises Refused for a service without a console."""
    if find_console(api) is None:
        raise Refused("this service has no console", "it is older than this program; an operator can upgrade it")


def find_console(api: Api) -> Any:
    """How one may sign in to the service's console; None if it has none."""
    try:
        return api.get("console")
    except Refused as error:
        if error.status == 404:
            return None
        raise


def _approved(session: Session) -> str:
    """A login that was begun here and approved with the own token: its code and secret, as the console takes them."""
    begun = Api(Transport(session.target.url, None, session.out.notice)).make("logins", body={"host": "console"})
    session.api.act("logins", str(begun["code"]), "approve")
    return f"{begun['code']}.{begun['secret']}"
