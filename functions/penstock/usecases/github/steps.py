"""Takes the step that a message names. Truth is a row: without a due row, nothing happens.

Each step first postpones its row's due time, so that it is repeated if it dies: later each time, and not for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from penstock.domain.github import checks, commits
from penstock.domain.github.commits import MAX_TRIES, CheckSet, Stage, set_key
from penstock.domain.github.deliveries import Delivery, delivery_key
from penstock.kernel.errors import RateLimited
from penstock.kernel.rows import Replace
from penstock.system import System
from penstock.usecases.github import check_runs, tokens, webhook
from penstock.usecases.github import commits as github_commits


def step(on: System, message: Mapping[str, Any]) -> bool:
    """Take a step; False for an unknown message."""
    match message:
        case {"delivery": str(id)}:
            _delivery(on, id)
        case {"set": [int(repository), str(sha)]}:
            _set(on, repository, sha)
        case {"check": str(id)}:
            check_runs.sync(on, checks.key_of(id))
        case {"token": str(job)}:
            tokens.mint(on, job)
        case {"revoke": str(job)}:
            _until_rate_limited(on, lambda: tokens.revoke(on, job))
        case _:
            return False
    return True


def _delivery(on: System, id: str) -> None:
    row = on.store.get(delivery_key(id), Delivery)
    if row is None or row.due is None:
        return
    begun = replace(row, tries=row.tries + 1, due=on.world.now() + commits.pause(row.tries))
    if row.tries >= MAX_TRIES:
        webhook.record(on, row, webhook.GIVEN_UP)
    elif on.store.commit([Replace(row, begun)]):
        _until_rate_limited(on, lambda: _process_delivery(on, id))


def _until_rate_limited(on: System, act: Callable[[], None]) -> None:
    """Take a step; if GitHub asks for a pause, the row's due time repeats it."""
    try:
        act()
    except RateLimited:
        return


def _process_delivery(on: System, id: str) -> None:
    row = on.store.get(delivery_key(id), Delivery)
    if row and row.due and row.event:
        webhook.record(on, row, webhook.process(on, row.event))


def _set(on: System, repository: int, sha: str) -> None:
    row = on.store.get(set_key(repository, sha), CheckSet)
    if row is None or row.due is None:
        return
    if row.tries >= MAX_TRIES:
        on.store.commit([Replace(row, commits.move_to(row, Stage.SETTLED, "GitHub could not be asked what to run"))])
        return
    begun = replace(row, tries=row.tries + 1, due=on.world.now() + commits.pause(row.tries))
    if on.store.commit([Replace(row, begun)]):
        _until_rate_limited(on, lambda: github_commits.advance(on, repository, sha))
