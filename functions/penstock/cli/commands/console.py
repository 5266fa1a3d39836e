"""penstock console: open the console in a browser, signed in."""

from __future__ import annotations

import click

from penstock.cli import terminal
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
    url = console_url(session.api)
    address = f"{url}/#sign-in={_approved(session)}"
    if prints or session.json:
        session.out.done(address, {"url": address})
        session.out.note("this address signs one browser in, once; it works for ten minutes")
    elif terminal.open_page(address):
        session.out.line(f"opened {url} in your browser")
    else:
        raise Refused("no browser can be opened here", "`penstock console --print` prints the address")


def console_url(api: Api) -> str:
    """The address of the service's console. Raises Refused for a service without one."""
    found = find_console(api)
    if found is None:
        raise Refused("this service has no console", "an operator can deploy it: it is older, or was left out")
    return found


def find_console(api: Api) -> str | None:
    """The address of the service's console; None if it has none."""
    try:
        found = api.get("console")["url"]
        return str(found) if found else None
    except Refused as error:
        if error.status == 404:
            return None
        raise


def _approved(session: Session) -> str:
    """A login that was begun here and approved with the own token: its code and secret, as the console takes them."""
    begun = Api(Transport(session.target.url, None, session.out.notice)).make("logins", body={"host": "console"})
    session.api.act("logins", str(begun["code"]), "approve")
    return f"{begun['code']}.{begun['secret']}"
