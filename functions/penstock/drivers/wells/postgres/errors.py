"""What errors of PostgreSQL mean for Penstock: by SQLSTATE, else by its class; network errors by exception.

Source: PostgreSQL, appendix A, "PostgreSQL Error Codes".
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from penstock.drivers.errors import report_unknown
from penstock.kernel.errors import DriverError, Misconfigured, NoCapacity, RateLimited, Unknown

MESSAGE = 500
"""Characters of an error message that are kept."""

FULL_SECONDS, STARTING_SECONDS = 15, 10
"""Seconds without calls of a server that has no free connection, or that is starting or stopping."""

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
def server_errors(doing: str) -> Iterator[None]:
    """Around every call of the server: raises only DriverError. Statements are never repeated."""
    from pg8000.exceptions import DatabaseError, InterfaceError

    try:
        yield
    except DatabaseError as error:
        fields = error.args[0] if error.args and isinstance(error.args[0], Mapping) else {}
        raise error_of_state(doing, str(fields.get("C", "")), _message(fields)) from error
    except (InterfaceError, OSError) as error:
        raise error_of_network(doing, error) from error
    except Exception as error:  # pg8000 failed, for example over an answer that breaks the protocol
        raise unknown_error(doing, type(error).__name__, "pg8000 failed") from error


def error_of_state(doing: str, state: str, message: str) -> DriverError:
    """The error for a SQLSTATE of the server."""
    kind = STATES.get(state) or CLASSES.get(state[:2])
    if kind is None:
        return unknown_error(doing, state, message)
    text = f"{doing}: {message} ({state})"
    if kind is RateLimited:
        return RateLimited(text, SECONDS[state])
    return Unknown(text, state) if kind is Unknown else kind(text)


def unknown_error(doing: str, code: str, message: str) -> DriverError:
    """The error for a code that the tables do not have, which is reported."""
    report_unknown("postgres", code, doing)
    return Unknown(f"{doing}: {message} ({code or 'no code'})", code)


def error_of_network(doing: str, error: Exception) -> DriverError:
    """The error for a server that cannot be reached, or does not answer correctly."""
    found = error.__cause__ if isinstance(error.__cause__, OSError) else error
    text = f"{doing}: {found}"[:MESSAGE]
    is_unknown_host = isinstance(found, socket.gaierror) and found.errno in (socket.EAI_NONAME, socket.EAI_FAIL)
    is_wrong = is_unknown_host or isinstance(found, ssl.SSLCertVerificationError) or "Server refuses SSL" in str(found)
    return Misconfigured(text) if is_wrong else Unknown(text, type(found).__name__)


def _message(fields: Mapping[str, str]) -> str:
    """The server's message, detail and hint."""
    parts = (str(fields[key]) for key in "MDH" if fields.get(key))
    return ". ".join(" ".join(part.split()).rstrip(".") for part in parts)[:MESSAGE]
