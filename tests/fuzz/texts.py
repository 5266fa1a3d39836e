"""Readers of the texts that people write. What is wrong with one is told with its place; nothing else is raised."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from penstock.domain.github import policy as policies
from penstock.domain.github.policy import Policy
from penstock.domain.jobfile import JobFile, Problem, Problems, parse, sets
from penstock.domain.jobs.admission import check_names
from penstock.domain.site import parse as site_parse
from penstock.domain.site.differences import compare
from penstock.domain.site.site import Site, Target
from penstock.drivers import Registry
from penstock.kernel.errors import Fault, Refused
from penstock.system import System
from penstock.testing.twin import Twin
from penstock.usecases.site import apply

SAID = 4000
"""How many characters a message or a hint has at most, however long what it is about is."""


def job_file(data: bytes) -> None:
    """A job file is read the same from its own script, and its jobs are found; or it is said why not, and where."""
    found = parse(data, "job.sh")
    text = data.decode("utf-8", "replace")
    if isinstance(found, Problems):
        _placed(text, found.items)
        return
    assert found.script.encode() == data
    assert parse(found.script, "job.sh") == found
    arranged = sets.arrange([found])
    if isinstance(arranged, Problems):
        _placed(text, arranged.items)
    else:
        assert all(each.file.matrix is None for each in arranged)


def site(data: bytes) -> None:
    """A site that passes can be asked for all that the service asks of it, and differs in nothing from itself."""
    text = data.decode("utf-8", "surrogatepass" if data.isascii() else "replace")
    try:
        found = apply.check(_on(), text, "site.toml")
    except Refused as refused:
        _bad_site(text, refused)
        return
    assert site_parse.parse(text, "site.toml") == found
    assert compare(found, found, {}, {}) == []
    _asked(found)


def _bad_site(text: str, refused: Refused) -> None:
    assert (refused.status, refused.code) == (422, "bad-site")
    _placed(text, refused.faults)


def _asked(found: Site) -> None:
    """What the service asks of a site with every submit and every sweep."""
    pools = found.pools()
    assert found.guarded() <= pools.keys()
    assert found.canaries().keys() <= pools.keys() | {target.pool for target in found.targets.values()}
    for name, target in found.targets.items():
        assert isinstance(check_names(found, JobFile("job.sh", "", target=name)), Target)
        assert found.takes(target.uses).keys() <= pools.keys()
    for kind in found.resources.values():
        assert found.maker(kind)
        assert found.takes(kind.uses).keys() <= pools.keys()


def policy(data: bytes) -> None:
    """A repository's policy; without a word it lets nobody in."""
    text = data.decode("utf-8", "replace")
    found = policies.parse(text)
    if not isinstance(found, Policy):
        _placed(text, found)
        return
    assert found.lets("eve") == (not found.org_only or "eve" in [each.lower() for each in found.allow_users])
    assert set(found.granted(outsider=True).values()) <= {"read"}
    assert found.granted(outsider=False).keys() <= set(policies.GRANTABLE)


def _placed(text: str, found: Iterable[Problem | Fault]) -> None:
    told = list(found)
    assert told, "nothing is wrong with it, and it is refused"
    _noted(text, told)


def _noted(text: str, found: Iterable[Problem | Fault]) -> None:
    """Each is at a place in the text, or just behind it, and short. What a driver says knows of no line."""
    lines = text.count("\n") + 1
    for each in found:
        assert 0 < len(each.message) <= SAID, each
        assert len(each.hint or "") <= SAID, each
        if each.line is not None:
            assert 1 <= each.line <= lines + 1, each
            assert (each.column or 0) >= 1, each


@cache
def _on() -> System:
    """A system of which only the drivers are asked: those that there are, and `hand`."""
    assert isinstance(Twin().on.drivers, Registry)
    return Twin().on
