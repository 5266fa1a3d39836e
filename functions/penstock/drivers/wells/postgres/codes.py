"""What errors of PostgreSQL mean to us: by SQLSTATE, else by its class, else by what Python says of the network.

Source: PostgreSQL, appendix A, "PostgreSQL Error Codes".
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from aws_lambda_powertools import Logger

from penstock.drivers.metrics import count_unknown
from penstock.kernel.errors import DriverError, Misconfigured, NoCapacity, RateLimited, Unknown

log = Logger(child=True)

MESSAGE = 500
"""Characters of a message that are kept."""

FULL_SECONDS, STARTING_SECONDS = 15, 10
"""For how long nobody calls a server that has no connection left, or that is starting up or stopping."""

STATES: Mapping[str, type[DriverError]] = {
    "28000": Misconfigured,  # no such role, or pg_hba.conf does not let it in
    "28P01": Misconfigured,  # wrong password
    "3D000": Misconfigured,  # no such database to connect to
    "42501": Misconfigured,  # the admin role may not do this
    "0A000": Misconfigured,  # the server has no such extension
    "58P01": Misconfigured,  # files of an extension are missing
    "22023": Misconfigured,  # a value that this server does not take
    "42704": Misconfigured,  # an unknown start parameter, or a role that somebody removed meanwhile
    "25006": Misconfigured,  # a standby: it only reads
    "2BP01": Misconfigured,  # the role owns something where the admin cannot look
    "53300": RateLimited,  # no connection left
    "57P03": RateLimited,  # starting up, shutting down, or recovering
    "53000": NoCapacity,
    "53100": NoCapacity,  # disk full
    "53200": NoCapacity,  # out of memory
    "53400": NoCapacity,  # a limit of the server's configuration
    "42710": Unknown,  # there is a role of this name: another call was faster
    "42P04": Unknown,  # there is such a database: another call was faster
    "23505": Unknown,  # the same, seen by the index
    "55000": Unknown,
    "55006": Unknown,  # in use: somebody connected again
    "55P03": Unknown,  # a lock was not to be had in time
    "57014": Unknown,  # statement_timeout
    "57P01": Unknown,  # our connection was ended by an operator
    "57P02": Unknown,  # the server crashed
    "57P04": Unknown,  # the database that we were connected to was dropped
    "57P05": Unknown,  # our connection was idle for too long
    "58000": Unknown,
    "58030": Unknown,  # its disk fails
}
CLASSES: Mapping[str, type[DriverError]] = {
    "08": Unknown,  # connection exceptions
    "40": Unknown,  # rolled back: deadlocks, serialization
    "XX": Unknown,  # internal errors; also "tuple concurrently updated"
}
SECONDS = {"53300": FULL_SECONDS, "57P03": STARTING_SECONDS}


@contextmanager
def understood(doing: str) -> Iterator[None]:
    """Around what asks the server: what comes out is an error that the core knows. Statements are never repeated."""
    from pg8000.exceptions import DatabaseError, InterfaceError

    try:
        yield
    except DatabaseError as error:
        said = error.args[0] if error.args and isinstance(error.args[0], Mapping) else {}
        raise of_state(doing, str(said.get("C", "")), _told(said)) from error
    except (InterfaceError, OSError) as error:
        raise of_network(doing, error) from error
    except Exception as error:  # the library met what it did not expect, such as an answer that is none
        raise unheard_of(doing, type(error).__name__, "the library failed") from error


def of_state(doing: str, state: str, message: str) -> DriverError:
    """The error for what the server said."""
    kind = STATES.get(state) or CLASSES.get(state[:2])
    if kind is None:
        return unheard_of(doing, state, message)
    said = f"{doing}: {message} ({state})"
    if kind is RateLimited:
        return RateLimited(said, SECONDS[state])
    return Unknown(said, state) if kind is Unknown else kind(said)


def unheard_of(doing: str, code: str, message: str) -> DriverError:
    """The error for what is in no table: it is logged and counted, for somebody should put it there."""
    log.error("a server said what is in no table", extra={"code": code})
    count_unknown("postgres", code)
    return Unknown(f"{doing}: {message} ({code or 'no code'})", code)


def of_network(doing: str, error: Exception) -> DriverError:
    """The error for a server that did not answer, or not as one should."""
    found = error.__cause__ if isinstance(error.__cause__, OSError) else error
    said = f"{doing}: {found}"[:MESSAGE]
    is_nobody = isinstance(found, socket.gaierror) and found.errno in (socket.EAI_NONAME, socket.EAI_FAIL)
    is_wrong = is_nobody or isinstance(found, ssl.SSLCertVerificationError) or "Server refuses SSL" in str(found)
    return Misconfigured(said) if is_wrong else Unknown(said, type(found).__name__)


def _told(said: Mapping[str, str]) -> str:
    """What the server said, with its own hint."""
    parts = (str(said[key]) for key in "MDH" if said.get(key))
    return ". ".join(" ".join(part.split()).rstrip(".") for part in parts)[:MESSAGE]
