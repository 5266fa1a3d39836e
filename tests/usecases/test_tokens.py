"""Tokens: shown, made from others, listed and revoked. [SEC-2]"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from penstock.domain.users.users import (
    ANCESTORS,
    DEFAULT_LIFE,
    HOST,
    KEPT_FOR,
    READ,
    Bearer,
    Token,
    TokenKind,
    token_key,
    token_secret,
)
from penstock.kernel.errors import Refused, Throttled
from penstock.kernel.rows import Delete
from penstock.testing.twin import Twin
from penstock.usecases.users import lifecycle, tokens, users
from penstock.usecases.users.tokens import Lasting, Wish
from tests.usecases.races import before_the_next_commit

TEN_YEARS = 10 * 366 * 24 * 3600


def refused(ask: object, *given: object, **named: object) -> tuple[int, str]:
    with pytest.raises(Refused) as found:
        ask(*given, **named)  # type: ignore[operator]
    return found.value.status, found.value.code


def first(twin: Twin, name: str = "ada", lasts: Lasting = "never", privileges: tuple[str, ...] = ()) -> str:
    """A user with a token that was made from none."""
    users.create(twin.on, name, privileges)
    twin.pass_time(1)
    return tokens.mint_first(twin.on, name, lasts, "")[0]


def show(twin: Twin, secret: str) -> Bearer:
    return users.authenticate(twin.on, f"Bearer {secret}")


def make(twin: Twin, secret: str, name: str = "ada", lasts: Lasting = None, *wanted: str) -> tuple[str, Token]:
    """A token made from another."""
    twin.pass_time(1)
    return tokens.mint(twin.on, show(twin, secret), name, Wish(scopes=wanted, lasts=lasts))


@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer  ", "Basic pst_x", "Bearer pst_unknown"])
def test_who_shows_no_token_is_nobody(twin: Twin, header: str | None) -> None:
    code = "unknown-token" if str(header).startswith("Bearer pst_") else "no-token"
    assert refused(users.authenticate, twin.on, header) == (401, code)


def test_what_is_no_secret_is_not_looked_up(twin: Twin, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(twin.store, "get", noted(asked, "get", twin.store.get))
    for text in ("x", "pst_user_x", first_secret()[:-1]):
        assert refused(show, twin, text) == (401, "unknown-token")
    assert asked == []


def first_secret() -> str:
    """A whole secret of a token that there is not."""
    return token_secret(TokenKind.USER, "0" * 26, "x" * 43)


def test_a_token_is_shown_as_bearer_in_any_case(twin: Twin) -> None:
    secret = first(twin)
    assert users.authenticate(twin.on, f"bearer {secret} ").name == "ada"
    assert refused(users.authenticate, twin.on, f"Basic {secret}") == (401, "no-token")


def test_tokens_of_the_old_form_are_refused_as_such(twin: Twin) -> None:
    assert refused(show, twin, "pst_" + "a" * 43) == (401, "old-token")


def test_a_token_is_good_until_it_expires(twin: Twin) -> None:
    secret, lasting = first(twin, lasts=60), first(twin, "bob")
    twin.pass_time(58)
    assert show(twin, secret).name == "ada"
    twin.pass_time(1)
    assert refused(show, twin, secret) == (401, "token-expired")
    assert show(twin, lasting).name == "bob"


def test_a_token_whose_row_is_gone_is_refused(twin: Twin) -> None:
    secret = first(twin)
    show(twin, secret)
    twin.store.commit([Delete(show(twin, secret).token)])
    assert refused(show, twin, secret) == (401, "unknown-token")


def test_a_token_of_a_user_that_is_not_there_is_refused(twin: Twin) -> None:
    secret = first(twin)
    twin.store.commit([Delete(users.find(twin.on, "ada"))])
    assert refused(show, twin, secret) == (401, "unknown-token")


def test_a_secret_with_a_known_id_and_another_chance_is_refused(twin: Twin) -> None:
    """SEC-2: an id is no secret."""
    id = show(twin, first(twin)).token.id
    assert refused(show, twin, token_secret(TokenKind.USER, id, "x" * 43)) == (401, "unknown-token")


@pytest.mark.parametrize(("seconds", "good"), [(0, False), (1, True), (TEN_YEARS, True), (TEN_YEARS + 1, False)])
def test_how_long_a_token_may_last(twin: Twin, seconds: int, good: bool) -> None:
    secret = first(twin)
    if good:
        assert make(twin, secret, "ada", seconds)[1].expires
    else:
        assert refused(make, twin, secret, "ada", seconds) == (400, "bad-request")


def test_a_token_lasts_90_days_unless_more_is_asked_for(twin: Twin) -> None:
    secret = first(twin)
    _, usual = make(twin, secret)
    assert usual.expires == usual.created + DEFAULT_LIFE
    assert make(twin, secret, "ada", "never")[1].expires is None


def test_a_token_never_outlives_its_parent(twin: Twin) -> None:
    """SEC-2: neither for ever, nor for a second; without a wish it ends with its parent."""
    secret = first(twin, lasts=3600)
    until = show(twin, secret).token.expires
    assert refused(make, twin, secret, "ada", "never") == (422, "outlives-parent")
    assert refused(make, twin, secret, "ada", 3600) == (422, "outlives-parent")
    child, made = make(twin, secret)
    assert made.expires == until
    assert make(twin, child)[1].expires == until
    assert make(twin, secret, "ada", 60)[1].expires


def test_a_token_may_last_exactly_as_long_as_its_parent(twin: Twin, monkeypatch: pytest.MonkeyPatch) -> None:
    bearer = show(twin, first(twin, lasts=60))
    monkeypatch.setattr(twin.world, "now", lambda: bearer.token.created)
    assert tokens.mint(twin.on, bearer, "ada", Wish(lasts=60))[1].expires == bearer.token.expires
    assert refused(tokens.mint, twin.on, bearer, "ada", Wish(lasts=61)) == (422, "outlives-parent")


def test_a_token_gives_no_scope_that_it_lacks(twin: Twin) -> None:
    """SEC-2."""
    narrow, made = make(twin, first(twin), "ada", None, "read", "submit:oxide:hubris")
    assert made.scopes == ("read", "submit:oxide:hubris")
    for wider in ("all", "submit", "submit:oxide:idol", "users"):
        assert refused(make, twin, narrow, "ada", None, wider) == (403, "scope-missing")
    assert make(twin, narrow, "ada", None, "read")[1].scopes == ("read",)
    assert make(twin, narrow)[1].scopes == made.scopes


def test_how_many_scopes_a_token_may_have(twin: Twin) -> None:
    assert make(twin, first(twin), "ada", None, *["read"] * 20)[1].scopes == ("read",)


@pytest.mark.parametrize("wanted", [["root"], ["read", "host"], ["read"] * 21])
def test_scopes_that_are_none_are_refused(twin: Twin, wanted: list[str]) -> None:
    assert refused(make, twin, first(twin), "ada", None, *wanted) == (400, "bad-request")


def test_a_host_token_makes_nothing(twin: Twin) -> None:
    """SEC-2: on any route but a host's it is refused."""
    secret, made = make(twin, first(twin), "ada", None, "host:target/lab/bench-7")
    assert secret.startswith("pst_host_")
    assert refused(show, twin, secret) == (403, "scope-missing")
    assert users.authenticate(twin.on, f"Bearer {secret}", HOST).token.id == made.id
    with pytest.raises(Refused, match="a host's token is for the host's own calls only"):
        show(twin, secret)
    with pytest.raises(Refused, match="needs a token with the scope 'read'; the scopes of this one: host:target/lab"):
        users.authenticate(twin.on, f"Bearer {secret}", READ)


def test_only_operators_make_tokens_of_others(twin: Twin) -> None:
    """SEC-2."""
    secret, root = first(twin), first(twin, "root", privileges=("admin",))
    assert refused(make, twin, secret, "root") == (403, "privilege-missing")
    given, made = make(twin, root, "ada")
    assert (made.user, made.by, show(twin, given).name) == ("ada", "root", "ada")
    assert refused(make, twin, root, "nobody") == (404, "user-not-found")
    assert refused(make, twin, secret, "nobody") == (403, "privilege-missing")


def test_only_tokens_that_manage_users_make_tokens_of_others(twin: Twin) -> None:
    """SEC-2: else a token that only submits would do so as anybody."""
    root, _ = first(twin, "root", privileges=("admin",)), first(twin)
    submits, _ = make(twin, root, "root", None, "submit", "review", "operate")
    assert refused(make, twin, submits, "ada", None, "submit") == (403, "scope-missing")
    assert make(twin, submits, "root", None, "submit")[1].user == "root"
    manages, _ = make(twin, root, "root", None, "submit", "users")
    assert make(twin, manages, "ada", None, "submit")[1].user == "ada"


def test_a_revoked_token_takes_all_with_it_that_was_made_from_it(twin: Twin) -> None:
    """SEC-2: also what those made, at once, with one write."""
    root = first(twin, "root", privileges=("admin",))
    first(twin)
    parent, made = make(twin, root)
    child, _ = make(twin, parent)
    grandchild, _ = make(twin, child)
    other, _ = make(twin, root)
    before = twin.store.commits
    tokens.revoke(twin.on, show(twin, root), made.id)
    assert twin.store.commits == before + 1
    for secret in (parent, child, grandchild):
        assert refused(show, twin, secret) == (401, "token-revoked")
    assert (show(twin, other).name, show(twin, root).name) == ("ada", "root")


def test_a_child_made_while_its_parent_is_revoked_is_refused(twin: Twin) -> None:
    """SEC-2: there is no race to win: the child names its parent."""
    root = first(twin, "root", privileges=("admin",))
    parent, made = make(twin, root, "root")
    bearer, operator = show(twin, parent), show(twin, root)
    before_the_next_commit(twin, lambda: tokens.revoke(twin.on, operator, made.id))
    child, _ = tokens.mint(twin.on, bearer, "root", Wish())
    assert refused(show, twin, child) == (401, "token-revoked")


def test_the_children_of_a_forgotten_token_are_refused(twin: Twin) -> None:
    root = first(twin, "root", privileges=("admin",))
    parent, made = make(twin, root, "root", "never")
    child, _ = make(twin, parent, "root", "never")
    row = twin.store.get(token_key(made.id), Token)
    assert row
    twin.store.commit([Delete(row)])
    assert refused(show, twin, child) == (401, "token-revoked")


def test_how_many_ancestors_a_token_may_have(twin: Twin) -> None:
    secret = first(twin)
    for _ in range(ANCESTORS):
        secret, made = make(twin, secret)
    assert len(made.ancestors) == ANCESTORS
    assert refused(make, twin, secret) == (422, "too-many-ancestors")


def noted(asked: list[str], name: str, real: Callable[..., object]) -> Callable[..., object]:
    """A call that notes its name first."""

    def call(*given: object, **named: object) -> object:
        asked.append(name)
        return real(*given, **named)

    return call


def test_a_token_is_read_in_two_requests_however_many_ancestors_it_has(
    twin: Twin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cost of a request: one row, and one batch."""
    secret = first(twin)
    for _ in range(ANCESTORS):
        secret, _ = make(twin, secret)
    show(twin, secret)
    asked: list[str] = []
    for name in ("get", "rows_at", "find", "listed", "commit"):
        monkeypatch.setattr(twin.store, name, noted(asked, name, getattr(twin.store, name)))
    show(twin, secret)
    assert asked == ["get", "rows_at"]


def test_the_last_use_is_written_once_an_hour(twin: Twin) -> None:
    secret = first(twin)
    used = []
    for _ in range(5):
        show(twin, secret)
        row = twin.store.get(token_key(show(twin, secret).token.id), Token)
        assert row
        used.append(row.used)
        twin.pass_time(1800)
    assert used[0] == used[1]
    assert used[2] == used[3]
    assert used[1]
    assert used[2] == used[1] + timedelta(hours=1)


def test_a_token_that_is_used_follows_its_user_to_the_new_name(twin: Twin, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also before the rename has come to it."""
    monkeypatch.setattr(lifecycle, "advance", lambda *_: None)
    secret = first(twin)
    lifecycle.rename(twin.on, "root", "ada", "adele")
    twin.pass_time(3600)
    row = twin.store.get(token_key(show(twin, secret).token.id), Token)
    assert row
    assert row.user == "adele"


def test_a_last_use_that_cannot_be_written_refuses_nobody(twin: Twin, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = first(twin)

    def busy(_: object) -> bool:
        raise Throttled("too much to do")

    monkeypatch.setattr(twin.store, "commit", busy)
    assert show(twin, secret).name == "ada"


def test_a_use_does_not_undo_a_revocation(twin: Twin) -> None:
    """SEC-2: who writes the last use of a token that is revoked meanwhile loses."""
    root, secret = first(twin, "root", privileges=("admin",)), first(twin)
    operator = show(twin, root)
    id = tokens.list_tokens(twin.on, operator, "ada", 10, "")[0].id
    before_the_next_commit(twin, lambda: tokens.revoke(twin.on, operator, id))
    show(twin, secret)
    assert refused(show, twin, secret) == (401, "token-revoked")


def test_a_revocation_does_not_undo_a_use(twin: Twin) -> None:
    root, secret = first(twin, "root", privileges=("admin",)), first(twin)
    operator = show(twin, root)
    id = tokens.list_tokens(twin.on, operator, "ada", 10, "")[0].id
    before_the_next_commit(twin, lambda: show(twin, secret))
    assert tokens.revoke(twin.on, operator, id).used


def test_tokens_are_listed_by_their_user_and_by_operators(twin: Twin) -> None:
    secret, root = first(twin), first(twin, "root", privileges=("admin",))
    eve = first(twin, "eve")
    made = [make(twin, secret)[1].id for _ in range(3)]
    own = tokens.list_tokens(twin.on, show(twin, secret), "ada", 10, "")
    assert [each.id for each in own][1:] == made
    assert tokens.list_tokens(twin.on, show(twin, root), "ada", 10, "") == own
    assert [each.id for each in tokens.list_tokens(twin.on, show(twin, secret), "ada", 1, made[0])] == made[1:2]
    assert refused(tokens.list_tokens, twin.on, show(twin, eve), "ada", 10, "") == (403, "privilege-missing")
    assert refused(tokens.list_tokens, twin.on, show(twin, root), "nobody", 10, "") == (404, "user-not-found")


def test_who_revokes_which_token(twin: Twin) -> None:
    """SEC-2: every token itself and what it made; others only with the scope `users`; another user's only operators."""
    secret, eve = first(twin), first(twin, "eve")
    narrow, made = make(twin, secret, "ada", None, "read")
    _, child = make(twin, narrow)
    _, other = make(twin, secret)
    bearer = show(twin, narrow)
    assert refused(tokens.revoke, twin.on, show(twin, eve), made.id) == (404, "token-not-found")
    assert refused(tokens.revoke, twin.on, bearer, other.id) == (403, "scope-missing")
    assert refused(tokens.revoke, twin.on, bearer, "x") == (404, "token-not-found")
    for id in (child.id, made.id):
        gone = tokens.revoke(twin.on, bearer, id)
        assert gone.revoked
        assert gone.expiry == gone.revoked.at + KEPT_FOR
    assert tokens.revoke(twin.on, show(twin, secret), other.id).revoked


def test_only_a_whole_token_makes_operators(twin: Twin) -> None:
    """SEC-2: a token that only manages users cannot make another user what it is not."""
    root = first(twin, "root", privileges=("admin",))
    narrow, _ = make(twin, root, "root", None, "users")
    assert refused(tokens.check_gives, show(twin, narrow), ["target.lab", "admin"]) == (403, "scope-missing")
    tokens.check_gives(show(twin, narrow), ["target.lab"])
    tokens.check_gives(show(twin, root), ["admin"])


def test_an_id_that_is_there_is_not_given_twice(twin: Twin) -> None:
    """SEC-2: whatever the dice say."""
    secret = first(twin)
    bearer = show(twin, secret)
    twin.world.ulid = lambda: bearer.token.id  # type: ignore[method-assign]
    assert refused(tokens.mint, twin.on, bearer, "ada", Wish()) == (409, "token-exists")
    assert show(twin, secret) == replace(bearer, token=show(twin, secret).token)
