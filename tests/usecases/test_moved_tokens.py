"""The token of a host that the site moves to another target: it is for one target. [SEC-2] [UNIT-1]"""

from __future__ import annotations

import pytest

from penstock.domain.users.users import HOST, Token, User, bearer
from penstock.kernel.errors import Refused
from penstock.testing.site import site_toml
from penstock.testing.twin import START, Twin
from tests.usecases.lab_hosts import IMAGE, SHARED, Bench, Part, apply, host_of, lab, states
from tests.usecases.steps import submit, worker_of


def site(*, share: bool, moved: bool = False) -> str:
    had = {"lab": ["bench-8", "bench-7"], "new": ["bench-9"]}
    if moved:
        had = {"lab": ["bench-8"], "new": ["bench-9", "bench-7"]}
    targets = {name: {**SHARED, "share": share, "names": names} for name, names in had.items()}
    return site_toml(factories={"lab": {"driver": "hosts", "image": IMAGE}}, targets=targets)


def with_token(bench: Bench, target: str) -> Bench:
    """A host with a token for one target."""
    scope = f"host:target/{target}/bench-7"
    user = User(name="bench-7", privileges=("host.bench-7",), created=START)
    shown = bearer(user, Token(id="T", digest="", user=user.name, created=START, scopes=(scope,)), HOST)
    assert shown
    bench.user = shown
    return bench


def moved(ada: User, *, share: bool) -> tuple[Twin, Bench]:
    """A host that works, and that the site moves; it has the token for its last target. Its worker's job has ended."""
    twin = lab(site(share=share))
    with_token(Bench(twin), "lab").ask()
    job = submit(twin, ada, target="lab")
    twin.run()
    bench = with_token(Part(twin, "bench-7", int(worker_of(twin, job).lease.slot[8:])) if share else Bench(twin), "lab")
    assert bench.do() == "work"
    assert bench.hello() == job
    apply(twin, site(share=share, moved=True))
    assert bench.do() == "wait"
    bench.report(job)
    return twin, bench


@pytest.mark.parametrize("share", [False, True])
def test_a_host_cleans_up_with_the_token_for_its_last_target_and_does_nothing_else_with_it(
    ada: User, share: bool
) -> None:
    twin, bench = moved(ada, share=share)
    own = with_token(Bench(twin), "lab")
    said = own.ask()
    assert (said.parts, said.busy) == (None, (bench.part,) if isinstance(bench, Part) else None)
    assert bench.clean().do == "forget"
    before = host_of(twin)
    with pytest.raises(Refused, match="it needs the scope host:target/new/bench-7"):
        own.ask()
    assert host_of(twin) == before, "it is not there for that"
    assert "free" not in states(twin, "target/new").values()
    with_token(Bench(twin), "new").ask()
    assert "free" in states(twin, "target/new").values()


@pytest.mark.parametrize("share", [False, True])
def test_so_it_does_with_the_token_for_its_next(ada: User, share: bool) -> None:
    _, bench = moved(ada, share=share)
    assert with_token(bench, "new").clean().do == "forget"


def test_a_token_for_a_target_that_it_never_had_is_refused_all_the_same(ada: User) -> None:
    _, bench = moved(ada, share=False)
    with pytest.raises(Refused, match="it needs the scope host:target/new/bench-7"):
        with_token(bench, "other").ask()


def test_a_token_for_a_host_that_nobody_knows_is_refused() -> None:
    """Neither the site names it, nor did it ever come."""
    stranger = Bench(lab(site(share=False).replace("bench-7", "bench-6")))
    with pytest.raises(Refused, match="this token is not for that host: the site has no such host"):
        with_token(stranger, "lab").ask()
