"""Sessions of the console: begun with a token, or with a login that was approved; and ended. [SEC-2]

A session is a token. Each is newly made, so nobody can know its secret before, and it ends with the token that it was
made from. docs/decisions/0086-a-session-is-a-token.md
"""

from __future__ import annotations

from penstock.domain.users import sessions
from penstock.domain.users.users import Bearer
from penstock.kernel.errors import Refused
from penstock.system import System
from penstock.usecases.users import logins, tokens, users


def begin(on: System, token: str, agent: str) -> tuple[str, Bearer]:
    """A session of who shows a token: its secret, and who has it. `agent` is what the browser calls itself.

    Raises Refused 401, 403, 409 or 422 as `users.authenticate` and `tokens.mint` do. [SEC-2]
    """
    shown = users.authenticate(on, f"Bearer {token}")
    secret, _ = tokens.mint_session(on, shown, sessions.name_for(agent))
    return secret, users.authenticate_session(on, secret)


def begin_by_code(on: System, code: str, secret: str, agent: str) -> tuple[str, Bearer]:
    """A session by a login that somebody approved, once. [SEC-2]

    Raises Refused 409 for one that waits, and 404, 409 or 410 as `logins.take` does.
    """
    taken = logins.take(on, code, secret, session=sessions.name_for(agent))
    if taken is None:
        raise Refused(409, "login-waits", "nobody approved this login yet")
    return taken[0], users.authenticate_session(on, taken[0])


def end(on: System, secret: str) -> bool:
    """Revoke a session. Whether there was one: who shows none that lasts is signed out already. [SEC-2]

    Also that of a user who is disabled, who may be enabled while it would still last.
    """
    shown = users.shown_token(on, secret)
    if shown is None or shown.session is None or not shown.is_good(on.world.now()):
        return False
    tokens.end(on, shown)
    return True
