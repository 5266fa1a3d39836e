"""A deployment, step by step: synthesise, upload, ask CloudFormation what would change."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from penstock import sources
from penstock.deploy.account import Account
from penstock.deploy.assembly import Assembly, synthesise
from penstock.deploy.changes import ChangeSet
from penstock.deploy.options import context

Report = Callable[[str], None]


@contextmanager
def synthesised(options: Mapping[str, str], report: Report) -> Iterator[Assembly]:
    """The stack with these options, always made anew: what they name, such as a file of drivers, may have changed.

    Raises DeployError if the stack cannot be made.
    """
    report("synthesising the stack")
    sources.BUILT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=sources.BUILT) as folder:
        synthesise(Path(folder) / "out", **context(options))
        yield Assembly.read(Path(folder) / "out")


def propose(account: Account, assembly: Assembly, report: Report) -> ChangeSet:
    """Upload the assets, and have CloudFormation say what would change. Raises DeployError."""
    report(f"uploading {len(assembly.files)} assets to account {account.number}, {account.region}")
    template = account.publish(assembly)
    report(f"asking what would change in the stack {assembly.stack}")
    return ChangeSet(account, assembly, template)
